"""Rate and time left count what is computed, not what was there before."""

import io

import pytest
from rich.console import Console

from robust_rlhf_jax.lab.sweeps import progress as module
from robust_rlhf_jax.lab.sweeps.progress import Pace, progress


def test_resumed_cells_do_not_fool_the_rate():
    pace = Pace(total=1000)
    pace.add(800, free=800, now=50.0)
    assert pace.rate(55.0) is None
    assert pace.text(55.0) == "800/1000 cells"
    pace.add(20, free=0, now=60.0)
    pace.add(100, free=0, now=110.0)
    assert pace.rate(110.0) == pytest.approx(2.0)
    assert pace.text(110.0) == "920/1000 cells, 2 cells/s, 0:00:40 left"


def test_what_compiles_before_the_first_cells_is_not_in_the_rate():
    pace = Pace(total=100)
    pace.add(50, free=40, now=1000.0)
    assert pace.text(1000.0) == "50/100 cells"
    pace.add(10, free=0, now=1010.0)
    assert pace.text(1010.0) == "60/100 cells, 1 cells/s, 0:00:40 left"


def test_copies_between_batches_tell_nothing():
    pace = Pace(total=100)
    pace.add(1, free=0, now=0.0)
    pace.add(30, free=20, now=10.0)
    assert pace.rate(10.0) == pytest.approx(1.0)


def test_of_a_resumed_sweep_a_tenth_of_the_rest_tells():
    pace = Pace(total=1000)
    pace.add(960, free=960, now=0.0)
    pace.add(1, free=0, now=10.0)
    pace.add(5, free=0, now=15.0)
    assert pace.text(15.0) == "966/1000 cells, 1 cells/s, 0:00:34 left"


@pytest.mark.parametrize(("cells", "seconds", "told"), [(9, 10.0, False), (10, 10.0, True), (9, 120.0, True)])
def test_a_few_cells_foretell_nothing_until_they_have_taken_long(cells, seconds, told):
    pace = Pace(total=100)
    pace.add(1, free=0, now=0.0)
    pace.add(cells, free=0, now=seconds)
    assert (pace.rate(seconds) is not None) is told


def test_what_compiles_between_the_first_cells_is_not_multiplied_by_the_cells_left():
    """Nine programs of 30 s each, and cells of a tenth of a second: 99 s are left, not 45 minutes."""
    pace = Pace(total=1000, compiled=lambda start, end: max(0.0, min(end, 270.0) - start))
    pace.add(1, free=0, now=30.0)
    for program in range(2, 10):
        pace.add(1, free=0, now=30.0 * program)
    assert pace.text(270.0) == "9/1000 cells"
    pace.add(92, free=0, now=280.0)
    assert pace.text(280.0) == "101/1000 cells, 10 cells/s, at least 0:01:30 left"


@pytest.mark.parametrize(("begun", "cells", "told"), [(0.0, 20, "at least "), (0.0, 40, ""), (60.0, 20, "")])
def test_where_compilation_took_longer_than_cells_as_much_may_lie_ahead(begun, cells, told):
    """A program of 60 s and cells of a second; the next ones may be of another program."""
    compiled = lambda start, end: max(0.0, min(end, 60.0) - start)  # noqa: E731
    pace = Pace(total=100, begun=begun, compiled=compiled)
    pace.add(1, free=0, now=60.0)
    pace.add(cells, free=0, now=60.0 + cells)
    assert pace.text(60.0 + cells).endswith(
        f" 1 cells/s, {told}0:0{(99 - cells) // 60}:{(99 - cells) % 60:02} left"
    )


def test_nothing_left_is_no_bound():
    pace = Pace(total=12, compiled=lambda start, end: max(0.0, min(end, 60.0) - start))
    pace.add(1, free=0, now=0.0)
    pace.add(11, free=0, now=61.0)
    assert pace.text(61.0).endswith(" cells/s, 0:00:00 left")


@pytest.mark.parametrize("quiet", [True, False])
def test_plain_lines_are_few(quiet, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    console = Console(file=io.StringIO(), force_terminal=quiet)
    with progress("sweep", 100, console, quiet=quiet) as advance:
        for _ in range(100):
            now[0] += 1.0
            advance(1)
    lines = console.file.getvalue().splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "sweep: 1/100 cells",
        "sweep: 31/100 cells",
        "sweep: 61/100 cells",
        "sweep: 91/100 cells",
        "sweep: 100/100 cells",
    ]
    assert lines[1].endswith("1 cells/s, 0:01:09 left")


def test_a_terminal_gets_a_bar():
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with progress("sweep", 4, console) as advance:
        advance(2, 2)
        advance(2)
    text = console.file.getvalue()
    assert "4/4 cells" in text
    assert "━" in text
