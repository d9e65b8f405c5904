"""What a long audit is doing, as bars on a terminal; nothing where nobody watches."""

import contextlib
from collections.abc import Callable, Iterator

Tell = Callable[[int, int], None]


@contextlib.contextmanager
def shown_steps() -> Iterator[Callable[[str], Tell]]:
    """A block in which `step(name)` begins a step and gives `tell(done, total)`; a step without a total pulses.

    The bar goes when the block ends. A bar in a file would be nothing but a line's end, and one on a pipe that nobody
    reads would end the work, so there is none.

    **Raises:** ImportError without the extra `cli`.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, transient=True, disable=not Console().is_terminal) as bar:
        task = bar.add_task("", total=None)

        def step(name: str) -> Tell:
            bar.reset(task, description=name, total=None)
            return lambda done, total: bar.update(task, completed=done, total=total)

        yield step
