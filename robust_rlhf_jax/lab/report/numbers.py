"""The numbers of the report's tables."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from robust_rlhf_jax.lab.attacks import ATTACKS
from robust_rlhf_jax.lab.reproduce.worst_case import WorstCase, worst_cases
from robust_rlhf_jax.lab.sweeps.curves import LABELS
from robust_rlhf_jax.lab.sweeps.programs import REFERENCE
from robust_rlhf_jax.lab.sweeps.summary import quartiles, setting_of, unconverged

Row = dict[str, Any]
PLAIN = "standard"
NO_ATTACK = "none"


class Axes(NamedTuple):
    """What the cells range over, in the order of the page."""

    families: list[str]
    attacks: list[str]
    epsilons: list[float]
    algorithms: list[str]
    seeds: list[int]


def axes_of(rows: list[Row]) -> Axes:
    """Families as they come; attacks and algorithms in the order of their registries, unknown names after."""
    known = {name: i for i, name in enumerate([NO_ATTACK, *ATTACKS, *LABELS])}
    distinct = {
        name: list(dict.fromkeys(row[name] for row in rows)) for name in ("family", "attack", "algorithm")
    }
    place = lambda name: known.get(name, len(known))  # noqa: E731
    return Axes(
        families=distinct["family"],
        attacks=sorted(distinct["attack"], key=place),
        epsilons=sorted({row["epsilon"] for row in rows}),
        algorithms=sorted(distinct["algorithm"], key=place),
        seeds=sorted({row["seed"] for row in rows}),
    )


class GapLine(NamedTuple):
    """Quartiles of the normalised gap over `n` seeds, of which `bad` did not converge."""

    family: str
    attack: str
    algorithm: str
    epsilon: float
    low: float
    median: float
    high: float
    n: int
    bad: int


def gap_lines(rows: list[Row]) -> list[GapLine]:
    """One line per family, attack, algorithm and ε; a NaN counts as 1."""
    counts = Counter(map(setting_of, rows))
    found, bad = quartiles(rows), unconverged(rows)
    axes = axes_of(rows)
    places = [
        {name: i for i, name in enumerate(names)} for names in (axes.families, axes.attacks, axes.algorithms)
    ]
    order = sorted(
        counts, key=lambda key: (*(p[name] for p, name in zip(places, key[:3], strict=True)), key[3])
    )
    return [GapLine(*key, *found[key], counts[key], bad[key]) for key in order]


def comparable(rows: list[Row]) -> list[Row]:
    """The cells (family, attack, ε, seed) that every algorithm of that family has: of an unfinished sweep, what a
    worst case may be compared over. An algorithm that has not met the worst attack yet would look best.
    """
    algorithms: dict[str, set[str]] = {}
    done: dict[tuple, set[str]] = {}
    for row in rows:
        algorithms.setdefault(row["family"], set()).add(row["algorithm"])
        done.setdefault(_draw(row), set()).add(row["algorithm"])
    return [row for row in rows if done[_draw(row)] == algorithms[row["family"]]]


def _draw(row: Row) -> tuple:
    return row["family"], row["attack"], row["epsilon"], row["seed"]


class WorstLine(NamedTuple):
    """Quartiles over seeds of the return under the attack that hurts most; `attack`: the one that costs most on average
    over seeds, empty where all cost the same; `attacks`: how many the worst was taken over; `bad` of `cells` under all
    those attacks did not converge.
    """

    family: str
    algorithm: str
    epsilon: float
    low: float
    median: float
    high: float
    attack: str
    attacks: int
    bad: int
    cells: int


def worst_lines(rows: list[Row]) -> list[WorstLine]:
    """One line per family, algorithm and ε."""
    tried: dict[tuple, set[str]] = {}
    for row in rows:
        tried.setdefault((row["family"], row["algorithm"], row["epsilon"]), set()).add(row["attack"])
    axes = axes_of(rows)
    cases = worst_cases(rows)
    cells = Counter((row["family"], row["algorithm"], row["epsilon"]) for row in rows)
    bad: Counter[tuple[str, str, float]] = Counter()
    for (family, _, algorithm, epsilon), n in unconverged(rows).items():
        bad[family, algorithm, epsilon] += n
    keys = ((f, a, e) for f in axes.families for a in axes.algorithms for e in axes.epsilons)
    return [
        WorstLine(*key, *cases[key].quartiles, _named(key, cases[key]), len(tried[key]), bad[key], cells[key])
        for key in keys
        if key in cases
    ]


def _named(key: tuple[str, str, float], case: WorstCase) -> str:
    return case.attack if key[2] > 0 else NO_ATTACK  # at ε = 0 all attacks are the same


class Glance(NamedTuple):
    """The algorithm that keeps most under its worst attack; `plain`: what plain RLHF keeps, None if it did not run."""

    best: WorstLine
    plain: float | None


def glances(lines: list[WorstLine]) -> dict[tuple[str, float], Glance]:
    """(family, ε) → the best by median worst-case return; the reference, which saw clean data, does not compete."""
    found: dict[tuple[str, float], Glance] = {}
    plain = {(line.family, line.epsilon): line.median for line in lines if line.algorithm == PLAIN}
    for line in lines:
        place = line.family, line.epsilon
        held = found.get(place)
        if line.algorithm != REFERENCE and (held is None or line.median > held.best.median):
            found[place] = Glance(line, plain.get(place))
    return found


class CallsLine(NamedTuple):
    """Planner calls of an algorithm over all its cells."""

    algorithm: str
    low: int
    median: float
    high: int


def calls_lines(rows: list[Row]) -> list[CallsLine]:
    """One line per algorithm that reports its calls."""
    found: dict[str, list[int]] = {name: [] for name in axes_of(rows).algorithms}
    for row in rows:
        if row["oracle_calls"] is not None:
            found[row["algorithm"]].append(row["oracle_calls"])
    return [CallsLine(name, min(c), float(np.median(c)), max(c)) for name, c in found.items() if c]


class StatusLine(NamedTuple):
    """`n` of `of` seeds ended with `status`."""

    family: str
    attack: str
    algorithm: str
    epsilon: float
    status: str
    n: int
    of: int


def status_lines(rows: list[Row]) -> list[StatusLine]:
    """One line per family, attack, algorithm, ε and status other than `converged`, the most frequent first."""
    cells = Counter(map(setting_of, rows))
    bad = Counter(
        (*setting_of(row), row["status"]) for row in rows if row["status"] not in ("converged", None)
    )
    lines = [StatusLine(*key, n, cells[key[:4]]) for key, n in bad.items()]
    return sorted(lines, key=lambda line: (-line.n / line.of, line))


class UnscaledLine(NamedTuple):
    """Suboptimality V★ − V^π over `n` seeds, of worlds whose gap is not normalised."""

    family: str
    attack: str
    algorithm: str
    epsilon: float
    mean: float
    low: float
    median: float
    high: float
    n: int


def unscaled_lines(rows: list[Row]) -> list[UnscaledLine]:
    """One line per family, attack, algorithm and ε; the mean too, since some worlds lose all or nothing."""
    groups: dict[tuple, list[float]] = {}
    for row in rows:
        groups.setdefault(setting_of(row), []).append(row["suboptimality"])
    return [_unscaled_line(key, groups[key]) for key in sorted(groups)]


def _unscaled_line(key: tuple[str, str, str, float], losses: list[float]) -> UnscaledLine:
    low, median, high = np.quantile(losses, (0.25, 0.5, 0.75)).tolist()
    return UnscaledLine(*key, float(np.mean(losses)), low, median, high, len(losses))
