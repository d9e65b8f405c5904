"""The geometry of the figures: every panel as paths and points for `templates/section.html` to draw.

A new section is made in `page.py` (`_section`).
"""

from collections.abc import Iterable
from typing import NamedTuple

from .numbers import NO_ATTACK, GapLine, WorstLine
from .styles import Style

# Labels of ticks that stand closer than this would touch.
TICK_DISTANCE = 26


class Frame(NamedTuple):
    """A panel's size and margins in units of its view box."""

    width: int
    height: int
    left: int = 32
    right: int = 10
    top: int = 8
    bottom: int = 24


SMALL = Frame(300, 190)
LARGE = Frame(420, 300)


class Point(NamedTuple):
    """`bad`: a seed of it did not converge."""

    x: float
    y: float
    text: str
    bad: bool


class Line(NamedTuple):
    """`band`: between the quartiles, empty for a single ε; `path`: through the medians."""

    style: Style
    band: str
    path: str
    points: list[Point]


class Panel(NamedTuple):
    """`ticks_x`, `ticks_y`: (place, label); a label may be empty."""

    family: str
    title: str
    frame: Frame
    ticks_x: list[tuple[float, str]]
    ticks_y: list[tuple[float, str]]
    lines: list[Line]


# (ε, lower quartile, median, upper quartile, "2 of 4 cells did not converge" or "")
Quartiles = tuple[float, float, float, float, str]


def gap_panels(lines: list[GapLine], styles: dict[str, Style]) -> list[Panel]:
    """A panel per family and attack. At ε = 0 all attacks are the same: a point measured once starts every line."""
    curves: dict[tuple[str, str], dict[str, list[Quartiles]]] = {}
    clean: dict[tuple[str, str], Quartiles] = {}
    for line in lines:
        point = line.epsilon, line.low, line.median, line.high, unfinished_cells(line.bad, line.n)
        if line.epsilon == 0:
            clean.setdefault((line.family, line.algorithm), point)
        curves.setdefault((line.family, line.attack), {}).setdefault(line.algorithm, []).append(point)
    # Clean data are no panel of their own, unless there is nothing else.
    attacked = [key for key in curves if key[1] != NO_ATTACK] or list(curves)
    return [
        _panel(family, attack.replace("_", " "), SMALL, _begun(curves[family, attack], clean, family), styles)
        for family, attack in attacked
    ]


def unfinished_cells(bad: int, of: int) -> str:
    return f"{bad} of {of} cells did not converge" if bad else ""


def _begun(curves: dict[str, list[Quartiles]], clean, family: str) -> dict[str, list[Quartiles]]:
    return {
        name: points if points[0][0] == 0 or (family, name) not in clean else [clean[family, name], *points]
        for name, points in curves.items()
    }


def worst_panels(lines: list[WorstLine], styles: dict[str, Style]) -> list[Panel]:
    """A panel per family: return under the worst attack."""
    curves: dict[str, dict[str, list[Quartiles]]] = {}
    for line in lines:
        point = line.epsilon, line.low, line.median, line.high, unfinished_cells(line.bad, line.cells)
        curves.setdefault(line.family, {}).setdefault(line.algorithm, []).append(point)
    return [_panel(name, name.replace("_", " "), LARGE, found, styles) for name, found in curves.items()]


def _panel(family: str, title: str, frame: Frame, curves: dict[str, list[Quartiles]], styles) -> Panel:
    epsilons = sorted({point[0] for points in curves.values() for point in points})
    x, y = _scale_x(frame, epsilons), _scale_y(frame)
    return Panel(
        family=family,
        title=title,
        frame=frame,
        ticks_x=list(_ticks((x(e), f"{e:g}") for e in epsilons)),
        ticks_y=[
            (y(share), label) for share, label in ((0, "0"), (0.25, ""), (0.5, "0.5"), (0.75, ""), (1, "1"))
        ],
        lines=[_line(styles[name], points, x, y) for name, points in curves.items()],
    )


def _scale_x(frame: Frame, epsilons: list[float]):
    low, high = epsilons[0], epsilons[-1]
    width = frame.width - frame.left - frame.right
    if low == high:
        return lambda epsilon: frame.left + width / 2
    # Half a marker from the axes.
    return lambda epsilon: round(frame.left + 6 + (width - 12) * (epsilon - low) / (high - low), 1)


def _scale_y(frame: Frame):
    height = frame.height - frame.top - frame.bottom
    clip = lambda share: min(1.0, max(0.0, share))  # noqa: E731
    return lambda share: round(frame.top + 4 + (height - 8) * (1 - clip(share)), 1)


def _ticks(ticks: Iterable[tuple[float, str]]) -> Iterable[tuple[float, str]]:
    """The label of a tick that stands too close to the last labelled one is left out."""
    last = -TICK_DISTANCE
    for place, label in ticks:
        near = place - last < TICK_DISTANCE
        last = last if near else place
        yield place, "" if near else label


def _line(style: Style, points: list[Quartiles], x, y) -> Line:
    upper = [f"{x(e)},{y(high)}" for e, _, _, high, _ in points]
    lower = [f"{x(e)},{y(low)}" for e, low, _, _, _ in points]
    return Line(
        style=style,
        band="M" + "L".join(upper + lower[::-1]) + "Z" if len(points) > 1 else "",
        path="M" + "L".join(f"{x(e)},{y(median)}" for e, _, median, _, _ in points),
        points=[
            Point(
                x(e),
                y(median),
                f"{style.label}, ε = {e:g}: {median:.3f} ({low:.3f}–{high:.3f}){'; ' if bad else ''}{bad}",
                bool(bad),
            )
            for e, low, median, high, bad in points
        ],
    )
