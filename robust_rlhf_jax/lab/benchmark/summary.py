"""What a benchmark found: every estimator on every file, honest and at its worst, and who leads."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from robust_rlhf_jax.lab.diagnostics.calibration import BINS, expected_calibration_error
from robust_rlhf_jax.rewards.registry import DEFAULT

from .config import CLEAN
from .contestant import PLAIN

# Up to this ε the worst case decides who leads, and by so much accuracy.
LEADS_UP_TO, LEAD = 0.1, 0.01


class Mean(NamedTuple):
    """Mean scores of the held-out parts of one file, attack, ε and estimator; `calibration`: Σ|mean gap|."""

    accuracy: float
    log_loss: float
    calibration: float
    found: float
    raters_found: float
    raters_right: float
    backdoor: float
    seconds: float


class Line(NamedTuple):
    """One estimator on one file; of `worst` and `attack`, one for each ε.

    `clean`: on honest pairs, the largest ε told; `harm`: log-loss there less plain's; `worst`: the lowest accuracy over
    the attacks; `attack`: which; `log_loss`, `calibration`: the highest over attacks and ε; `found`: mean share of the
    changed pairs that it finds; `raters_found`, `raters_right`: recall and precision of bad raters; `backdoor`: the
    highest share of honest pairs whose loser wins once it bears the mark of an attack; `seconds`: median.
    """

    estimator: str
    clean: float
    harm: float
    worst: tuple[float, ...]
    attack: tuple[str, ...]
    log_loss: float
    calibration: float
    found: float
    raters_found: float
    raters_right: float
    backdoor: float
    seconds: float


class Standing(NamedTuple):
    """The lines of one file, the best worst case up to `LEADS_UP_TO` first; `leader`: of them; `behind`: by how much
    accuracy `fit_reward` trails it there, 0 where it leads or is not run; `attack`, `epsilon`: where; `tested`: honest
    pairs that judge.

    **Example:**

    >>> from robust_rlhf_jax.lab.benchmark import Standing
    >>> Standing("rail", (0.1,), [], "sever", 0.02, "near", 0.1, tested=600).leader
    'sever'
    """

    file: str
    epsilons: tuple[float, ...]
    lines: list[Line]
    leader: str
    behind: float
    attack: str
    epsilon: float
    tested: int

    def decisive(self, line: Line) -> float:
        """The worst accuracy that orders the lines: up to ε = `LEADS_UP_TO`."""
        return _decisive(line, self.epsilons)

    @property
    def where(self) -> str:
        """The ε at which `leader` leads, in words."""
        return "ε ≤ .1" if self.epsilons[0] <= LEADS_UP_TO else f"ε = {self.epsilons[0]:g}"

    def level_with(self, name: str) -> list[str]:
        """Who else has the worst case of this estimator."""
        worst = {line.estimator: self.decisive(line) for line in self.lines}
        return [other for other, value in worst.items() if other != name and value == worst[name]]

    @property
    def error(self) -> float:
        """The standard error of the leader's accuracy if pairs are independent, √(p(1 − p)/n)."""
        p = self.lines[0].worst[0]
        return float(np.sqrt(p * (1 - p) / max(self.tested, 1)))


Means = dict[tuple[str, str, float, str], Mean]


def cell_of(row: dict[str, Any]) -> tuple[str, str, float, str]:
    """(file, attack, ε, estimator): what held-out parts are averaged over."""
    return row["file"], row["attack"], row["epsilon"], row["estimator"]


def means(rows: Iterable[dict[str, Any]]) -> Means:
    """(file, attack, ε, estimator) → the mean over held-out parts."""
    together: dict[tuple[str, str, float, str], list[dict[str, Any]]] = {}
    for row in rows:
        together.setdefault(cell_of(row), []).append(row)
    return {key: _mean(parts) for key, parts in together.items()}


def _mean(parts: list[dict[str, Any]]) -> Mean:
    def mean(name: str) -> float:
        known = [part[name] for part in parts if part[name] is not None and not np.isnan(part[name])]
        return float(np.mean(known)) if known else np.nan

    gaps = expected_calibration_error([mean(f"gap{b}") for b in range(BINS)])
    found = [mean(name) for name in ("found", "raters_found", "raters_right", "backdoor", "seconds")]
    return Mean(mean("accuracy"), mean("log_loss"), gaps, *found)


def standings(rows: list[dict[str, Any]]) -> list[Standing]:
    """One for each file, in the order of the rows.

    **Example:**

    >>> from robust_rlhf_jax.lab import benchmark
    >>> gaps = {f"gap{b}": 0.0 for b in range(10)}
    >>> nobody = {"found": None, "raters_found": None, "raters_right": None, "backdoor": None}
    >>> place = {"file": "rail", "fold": 0, "tested": 600, "epsilon": 0.1, "estimator": "sever", **gaps, **nobody}
    >>> place |= {"seconds": 0.1, "log_loss": 0.6}
    >>> rows = [{**place, "attack": a, "accuracy": v} for a, v in (("none", 0.7), ("near", 0.6), ("far", 0.65))]
    >>> found = benchmark.standings(rows)[0]
    >>> found.leader, found.lines[0].worst, found.lines[0].attack
    ('sever', (0.6,), ('near',))
    """
    known = means(rows)
    tested = {(row["file"], row["fold"]): row["tested"] for row in rows}
    files = dict.fromkeys(key[0] for key in known)
    return [_standing(f, known, sum(n for (g, _), n in tested.items() if g == f)) for f in files]


def _standing(file: str, known: Means, tested: int) -> Standing:
    mine = {key[1:]: value for key, value in known.items() if key[0] == file}
    epsilons = tuple(sorted({epsilon for _, epsilon, _ in mine}))
    names = dict.fromkeys(estimator for *_, estimator in mine)
    lines = sorted(
        (_line(name, epsilons, mine) for name in names), key=lambda line: -_decisive(line, epsilons)
    )
    leader = lines[0].estimator
    behind, attack, epsilon = 0.0, "", 0.0
    ours = next((line for line in lines if line.estimator == DEFAULT), None)
    if ours is not None:
        at = min(_deciding(epsilons), key=lambda i: ours.worst[i])
        behind = max(_decisive(lines[0], epsilons) - _decisive(ours, epsilons), 0.0)
        attack, epsilon = ours.attack[at], epsilons[at]
    return Standing(file, epsilons, lines, leader, behind, attack, epsilon, tested)


def _deciding(epsilons: tuple[float, ...]) -> list[int]:
    """The places of the ε up to `LEADS_UP_TO`, or of the smallest."""
    return [i for i, epsilon in enumerate(epsilons) if epsilon <= LEADS_UP_TO] or [0]


def _decisive(line: Line, epsilons: tuple[float, ...]) -> float:
    return min(line.worst[i] for i in _deciding(epsilons))


def _line(name: str, epsilons: tuple[float, ...], mine: dict[tuple[str, float, str], Mean]) -> Line:
    cells = {(attack, epsilon): m for (attack, epsilon, who), m in mine.items() if who == name}
    attacked = {key: m for key, m in cells.items() if key[0] != CLEAN} or cells
    clean, plain = (mine.get((CLEAN, epsilons[-1], who)) for who in (name, PLAIN))
    worst = [min((m.accuracy, a) for (a, e), m in attacked.items() if e == epsilon) for epsilon in epsilons]
    return Line(
        name,
        clean.accuracy if clean else np.nan,
        clean.log_loss - plain.log_loss if clean and plain else np.nan,
        tuple(accuracy for accuracy, _ in worst),
        tuple(attack for _, attack in worst),
        max(m.log_loss for m in attacked.values()),
        max(m.calibration for m in attacked.values()),
        _mean_known(m.found for m in attacked.values()),
        _mean_known(m.raters_found for m in attacked.values()),
        _mean_known(m.raters_right for m in attacked.values()),
        max((m.backdoor for m in attacked.values() if not np.isnan(m.backdoor)), default=np.nan),
        float(np.median([m.seconds for m in cells.values()])),
    )


def _mean_known(values: Iterable[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan
