"""The geometry of the page's figures: reliability, margins, effects, as SVG paths and points."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 320, 220, 40, 18, 8, 34
BINS, MOST_MARGIN = 10, 6.0
# Pairs that a point of the reliability curve stands for, at least.
FEWEST = 20


class Curve(NamedTuple):
    """`path`: SVG; `points`: (x, y, text) with their error bars (y from, to); `cells`: (said, found, 95 % half-width,
    pairs) of each point, as numbers.
    """

    path: str
    points: list[tuple[float, float, float, float, str]]
    cells: list[tuple[float, float, float, int]]


class Bar(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    text: str


def reliability(margins: np.ndarray) -> Curve:
    """Share of pairs in which the predicted side won, against how sure the prediction was (½ to 1)."""
    sure = expit(np.abs(margins))
    right = (margins > 0) + 0.5 * (margins == 0)
    cell = np.minimum(((sure - 0.5) * 2 * BINS).astype(int), BINS - 1)
    points, cells = [], []
    for i in range(BINS):
        mine = cell == i
        if mine.sum() < FEWEST:
            continue
        said, found = float(sure[mine].mean()), float(right[mine].mean())
        error = 1.96 * (found * (1 - found) / mine.sum()) ** 0.5
        text = f"said {said:.0%}, right {found:.1%} of {int(mine.sum()):,} pairs"
        points.append(
            (_x((said - 0.5) * 2), _y(found), _y(max(found - error, 0)), _y(min(found + error, 1)), text)
        )
        cells.append((said, found, error, int(mine.sum())))
    return Curve("M" + "L".join(f"{x},{y}" for x, y, *_ in points) if points else "", points, cells)


def margin_bars(margins: np.ndarray) -> list[Bar]:
    """A histogram of held-out margins; those beyond ±6 are in the outer bars."""
    counts, edges = np.histogram(np.clip(margins, -MOST_MARGIN, MOST_MARGIN), 48, (-MOST_MARGIN, MOST_MARGIN))
    top = max(int(counts.max()), 1)
    width = (WIDTH - LEFT - RIGHT) / len(counts)
    return [
        Bar(round(LEFT + i * width, 2), _y(count / top), round(width * 0.92, 2), round(_y(0) - _y(count / top), 2),
            f"{count:,} pairs with a margin from {low:.2f} to {high:.2f}")
        for i, (count, low, high) in enumerate(zip(counts, edges[:-1], edges[1:], strict=True))
    ]  # fmt: skip


def _x(share: float) -> float:
    return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def _y(share: float) -> float:
    return round(TOP + (1 - share) * (HEIGHT - TOP - BOTTOM), 1)


TICKS_SURE = [(_x((share - 0.5) * 2), f"{share:.0%}") for share in (0.5, 0.75, 1.0)]
TICKS_SHARE = [(_y(share), f"{share:.0%}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
TICKS_MARGIN = [
    (_x((m + MOST_MARGIN) / (2 * MOST_MARGIN)), f"{m:+d}" if m else "0") for m in (-6, -3, 0, 3, 6)
]
DIAGONAL = f"M{_x(0)},{_y(0.5)}L{_x(1)},{_y(1)}"
ZERO = _x(0.5)
