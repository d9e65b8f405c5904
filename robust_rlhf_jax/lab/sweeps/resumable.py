"""What all resumable commands do around their work: the store of parts, progress, a clean end on Ctrl-C."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .interrupt import interruptible
from .progress import progress
from .store import PartStore


class Work(NamedTuple):
    """What a resumable block is given; `first_batch()`: seconds until the first batch was computed, None if none."""

    store: PartStore
    on_batch: Callable[..., None]
    first_batch: Callable[[], float | None]


@contextlib.contextmanager
def resumable(title: str, cells: int, out: Path, console: Any, quiet: bool = False) -> Iterator[Work]:
    """A block that computes `cells` cells and keeps them in `out`/parts.

    **Raises:** KeyboardInterrupt after Ctrl-C, with the sentence that says what is saved.
    """
    started = time.monotonic()
    seconds: list[float] = []
    done = 0
    parts = Path(out) / "parts"
    try:
        with progress(title, cells, console, quiet) as advance:

            def on_batch(n: int, free: int = 0) -> None:
                nonlocal done
                done = advance(n, free).done
                if free < n and not seconds:
                    seconds.append(time.monotonic() - started)

            with interruptible(on_batch) as checked:
                yield Work(PartStore(parts), checked, lambda: seconds[0] if seconds else None)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped: {done} of {cells} cells are saved in {parts}; the same command resumes there."
        ) from None
