"""Results of matches as tables of sports and chess have them: `1-0`, `1/2-1/2`, `2:1`, and H, D and A of home, draw and
away."""

import re

from robust_rlhf_jax.io.labels import is_missing, word
from robust_rlhf_jax.io.schemas.sides import plain_name

POINTS = r"(\d+(?:\.5)?|½|1/2)"
SCORE = re.compile(rf"\s*{POINTS}\s*[-–:]\s*{POINTS}\s*")
AT_HOME = re.compile("^home(?:_?team|_?side)?$")
# The last three are those of betting slips.
LETTERS = {"h": 0, "home": 0, "home win": 0, "a": 1, "away": 1, "away win": 1, "d": None, "draw": None, "1": 0, "2": 1,
           "x": None}  # fmt: skip


def read_results(cells: list, sides: tuple[str, str]) -> list:
    """The cells with the name of the side that won, or a tie, where they are results of matches; else as they are.

    **Example:**

    >>> from robust_rlhf_jax.leaderboard.match_results import read_results
    >>> read_results(["1-0", "1/2-1/2", "0-2"], ("white", "black"))
    ['white', 'tie', 'black']
    """
    there = [cell for cell in cells if not is_missing(cell)]
    scores = [isinstance(cell, str) and SCORE.fullmatch(cell) is not None for cell in there]
    if there and 2 * sum(scores) > len(there):
        return [_by_score(cell, sides) for cell in cells]
    if AT_HOME.match(plain_name(sides[0])) and all(word(cell) in LETTERS for cell in there):
        return [cell if is_missing(cell) else _called(LETTERS[word(cell)], sides) for cell in cells]
    return cells


def _by_score(cell: object, sides: tuple[str, str]) -> object:
    found = SCORE.fullmatch(cell) if isinstance(cell, str) else None
    if found is None:
        return cell
    first, second = (0.5 if points in ("½", "1/2") else float(points) for points in found.groups())
    return _called(None if first == second else int(first < second), sides)


def _called(winner: int | None, sides: tuple[str, str]) -> str:
    return "tie" if winner is None else sides[winner]
