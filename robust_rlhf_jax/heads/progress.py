"""Passes over a source as a bar with the time left of the pass; nothing where nobody watches."""

import contextlib
from collections.abc import Iterator

from robust_rlhf_jax.rewards.streamed.config import Tell


@contextlib.contextmanager
def shown_passes(quiet: bool = False) -> Iterator[Tell]:
    """A block that gets `tell(doing, pairs read, pairs in all)`; without pairs the bar pulses."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    shown = not quiet and Console().is_terminal
    with Progress(*columns, transient=True, disable=not shown) as bar:
        task, now = bar.add_task("reading", total=None), ""

        def tell(doing: str, done: int, total: int) -> None:
            nonlocal now
            if doing != now:
                now = doing
                bar.reset(task, description=doing, total=total or None)
            bar.update(task, completed=done, total=total or None)

        yield tell
