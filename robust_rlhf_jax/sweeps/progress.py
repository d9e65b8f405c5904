"""How far long work is: cells done, time left."""

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress_bar(title: str, total: int, console) -> Iterator[Callable[[int], None]]:
    """A bar on `console` for `total` cells; the block gets `advance(cells)`."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("cells, elapsed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeLeft(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(f"{title} (compiling first)", total=total)

        def advance(cells: int) -> None:
            progress.update(task, advance=cells, description=title)

        yield advance
