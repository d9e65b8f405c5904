"""How far long work is: cells done, cells a second, time left."""

import contextlib
import dataclasses
import datetime
import time
from collections.abc import Callable, Iterator
from typing import Any

from . import compiling

# Between two plain lines.
SECONDS_BETWEEN_LINES = 30.0
# A rate is told once this share of the missing cells is computed, or after this long without compilation: the first
# cells may be of the slowest algorithm alone, or of the fastest.
TELLING_SHARE, TELLING_SECONDS = 0.1, 120.0
# Beyond this share of the time computed, compilation so far may mean as much of it ahead, and the time left is a lower
# bound.
COMPILED_SHARE = 2.0


@dataclasses.dataclass
class Pace:
    """Cells done of `total`, and how fast. Free cells are done but tell nothing about speed.

    The clock starts with the first cells that are computed: until then programs compile. `computed`: cells since.
    `compiled(start, end)`: seconds in which further programs compiled, which the cells left do not wait for again,
    though for others perhaps; `begun`: when the first one may have.
    """

    total: int
    done: int = 0
    computed: int = 0
    started: float | None = None
    begun: float | None = None
    compiled: Callable[[float, float], float] = lambda start, end: 0.0

    def add(self, cells: int, free: int, now: float) -> None:
        self.done += cells
        if self.started is not None:
            self.computed += cells - free
        elif cells > free:
            self.started = now

    def rate(self, now: float) -> float | None:
        """Computed cells a second; None while too few are to tell."""
        if self.started is None or not self.computed:
            return None
        passed = now - self.started - self.compiled(self.started, now)
        to_compute = self.computed + self.total - self.done
        tells = self.computed >= TELLING_SHARE * to_compute or passed >= TELLING_SECONDS
        return self.computed / max(passed, 1e-9) if tells else None

    def text(self, now: float) -> str:
        """Such as "48/540 cells, 4.1 cells/s, 0:02:00 left", or "at least 0:02:00 left" where programs still to compile
        may take longer than the cells."""
        rate = self.rate(now)
        text = f"{self.done}/{self.total} cells"
        if rate is None:
            return text
        left = datetime.timedelta(seconds=round((self.total - self.done) / rate))
        least = "at least " if left and self._compiles_for_long(now) else ""
        return f"{text}, {rate:.3g} cells/s, {least}{left} left"

    def _compiles_for_long(self, now: float) -> bool:
        assert self.started is not None
        computing = now - self.started - self.compiled(self.started, now)
        begun = self.started if self.begun is None else self.begun
        return self.compiled(begun, now) > COMPILED_SHARE * computing


@contextlib.contextmanager
def progress(title: str, total: int, console: Any, quiet: bool = False) -> Iterator[Callable[..., Pace]]:
    """The block gets `advance(cells, free=0)`: a bar on a terminal, plain lines in a file or where `quiet`."""
    compiling.listen()
    pace = Pace(total, begun=time.monotonic(), compiled=compiling.seconds_between)
    show = _lines if quiet or not console.is_terminal else _bar
    with show(title, pace, console) as update:

        def advance(cells: int, free: int = 0) -> Pace:
            now = time.monotonic()
            pace.add(cells, free, now)
            update(now)
            return pace

        yield advance


@contextlib.contextmanager
def _lines(title: str, pace: Pace, console: Any):
    """The first cells, then one line every so often, and the last."""
    printed = [-float("inf")]

    def update(now: float) -> None:
        if now - printed[0] >= SECONDS_BETWEEN_LINES or pace.done == pace.total:
            # That nobody reads the lines any more, for which rich would exit, is no reason to stop.
            with contextlib.suppress(OSError, SystemExit):
                console.print(f"{title}: {pace.text(now)}", highlight=False, soft_wrap=True)
            printed[0] = now

    yield update


@contextlib.contextmanager
def _bar(title: str, pace: Pace, console: Any):
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[pace]}"))
    with Progress(*columns, TextColumn("elapsed"), TimeElapsedColumn(), console=console) as bar:
        task = bar.add_task(f"{title} (compiling first)", total=pace.total, pace=pace.text(0.0))

        def update(now: float) -> None:
            name = f"{title} (compiling first)" if pace.started is None else title
            bar.update(task, completed=pace.done, description=name, pace=pace.text(now))

        yield update
