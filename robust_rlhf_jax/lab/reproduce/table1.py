"""`robust-rlhf reproduce table1`: the paper's Table 1, measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from robust_rlhf_jax.lab.diagnostics import (
    condition_number_bound,
    coverage,
    coverage_ratio_bound,
    lower_bound,
    uniform_bound,
)
from robust_rlhf_jax.lab.sweeps import SweepConfig, run_sweep
from robust_rlhf_jax.lab.sweeps.families import build_worlds
from robust_rlhf_jax.lab.sweeps.store import Store
from robust_rlhf_jax.mdp import optimal_policy

from .exponents import Exponent, fit_exponent
from .lower_bound import lower_bound_rows


class CoverageRow(NamedTuple):
    """A row of Table 1: the family that meets its assumption, our algorithm for it and the promised exponent."""

    family: str
    algorithm: str
    promised: float


ROWS = (
    CoverageRow("uniform", "uniform_coverage", 1.0),
    CoverageRow("condition_number", "condition_number", 0.25),
    CoverageRow("coverage_ratio", "first_order", 0.5),
)
CONSTANTS = ("xi", "alpha", "nu", "kappa")
# The paper's bound of each family, and the constants that it is stated in.
BOUNDS = {
    "uniform": (uniform_bound, ("xi",)),
    "condition_number": (condition_number_bound, ("alpha", "kappa")),
    "coverage_ratio": (coverage_ratio_bound, ("nu", "kappa")),
}
# This is no promise but a limit: no algorithm can do better than ε¹ there.
LOWER_BOUND = CoverageRow("lower_bound", "uniform_coverage", 1.0)


@dataclasses.dataclass(frozen=True)
class Table1Config:
    """`preset`: worlds; `attacks`: per seed and ε the one counts that hurts most; `epsilons` > 0; `seeds`; `n_pairs`;
    `uniform_pairs`: as many as the gap under uniform coverage needs to stand above chance at the smallest ε;
    `lower_bound`: sizes of `hard_instance`; `lanes`: cells per batch.
    """

    preset: str = "coverage"
    attacks: tuple[str, ...] = ("push_features", "praise_rare", "impersonate")
    epsilons: tuple[float, ...] = (0.01, 0.02, 0.04, 0.08)
    seeds: int = 6
    n_pairs: int = 20_000
    uniform_pairs: int = 200_000
    lower_bound: tuple[tuple[str, float], ...] = (("n_actions", 4), ("horizon", 5), ("rare_probability", 0.1))
    lower_bound_seeds: int = 100
    lanes: int = 6

    def sweeps(self) -> list[SweepConfig]:
        """Per row: clean data first, then the attacks."""
        shared = {"preset": self.preset, "seeds": self.seeds, "lanes": self.lanes}
        both = (("flip_random",), (0.0,)), (self.attacks, self.epsilons)
        return [
            SweepConfig(
                families=(row.family,),
                algorithms=(row.algorithm,),
                attacks=attacks,
                epsilons=epsilons,
                n_pairs=self.pairs(row),
                **shared,
            )
            for row in ROWS
            for attacks, epsilons in both
        ]

    def pairs(self, row: CoverageRow) -> int:
        return self.uniform_pairs if row.family == "uniform" else self.n_pairs

    @property
    def n_cells(self) -> int:
        return sum(sweep.n_cells for sweep in self.sweeps()) + len(self.epsilons) * self.lower_bound_seeds


FULL = Table1Config()
# For CI: worlds, seeds and pairs at which everything but compilation takes seconds.
QUICK = Table1Config(
    preset="coverage_tiny",
    attacks=("push_features", "praise_rare"),
    epsilons=(0.05, 0.1, 0.2),
    seeds=3,
    n_pairs=1_500,
    uniform_pairs=1_500,
    lower_bound_seeds=40,
    lanes=3,
)


def run_table1(
    config: Table1Config, on_batch: Callable[[int, int], None], store: Store
) -> list[dict[str, Any]]:
    """One row per cell: family, algorithm, attack, ε, seed, `suboptimality` V★ − V^π, `oracle_calls`."""
    rows: list[dict[str, Any]] = []
    for sweep in config.sweeps():
        (world,) = build_worlds(sweep.preset, sweep.families, jax.random.key(sweep.seed))
        best = float(optimal_policy(world.mdp)[1])
        attack = "none" if sweep.epsilons == (0.0,) else None
        rows += [
            {**row, "suboptimality": best - row["value"], "attack": attack or row["attack"]}
            for row in run_sweep(sweep, on_batch, store).rows
        ]
    sizes = dict(config.lower_bound)
    hard = lower_bound_rows(config.epsilons, config.lower_bound_seeds, config.n_pairs, sizes, on_batch, store)
    cell = {"family": LOWER_BOUND.family, "algorithm": LOWER_BOUND.algorithm, "attack": "impersonate"}
    return rows + [{**cell, "oracle_calls": 1, **row} for row in hard]


def worst_gaps(rows: list[dict[str, Any]], family: str, epsilons: Sequence[float]) -> np.ndarray:
    """[E, S]: per ε and seed the largest suboptimality over the attacks."""
    found: dict[tuple[float, int], float] = {}
    for row in rows:
        if row["family"] == family:
            key = (round(row["epsilon"], 6), row["seed"])
            found[key] = max(found.get(key, -np.inf), row["suboptimality"])
    seeds = sorted({seed for _, seed in found})
    return np.asarray([[found[round(float(e), 6), s] for s in seeds] for e in epsilons])


class Curve(NamedTuple):
    """A row of the table: gaps [E, S] by ε and seed, their middle [E], the gap at ε = 0, exponents, oracle calls.

    The middle is the median, and on the lower bound's worlds, where a gap is all or nothing per step, the mean.
    """

    row: CoverageRow
    epsilons: np.ndarray
    gaps: np.ndarray
    middle: np.ndarray
    clean: float | None
    fitted: Exponent
    oracle_calls: int


def curves(config: Table1Config, rows: list[dict[str, Any]]) -> list[Curve]:
    """The rows of Table 1 and the lower bound, from the cells."""
    return [_curve(config, rows, row) for row in (*ROWS, LOWER_BOUND)]


def _curve(config: Table1Config, rows: list[dict[str, Any]], row: CoverageRow) -> Curve:
    epsilons, gaps = np.asarray(config.epsilons), worst_gaps(rows, row.family, config.epsilons)
    statistic = np.mean if row is LOWER_BOUND else np.median
    clean = None if row is LOWER_BOUND else float(np.median(worst_gaps(rows, row.family, (0.0,))))
    fitted = fit_exponent(epsilons, gaps, statistic=statistic)
    calls = max(cell["oracle_calls"] for cell in rows if cell["family"] == row.family)
    return Curve(row, epsilons, gaps, statistic(gaps, axis=1), clean, fitted, calls)


def constants(config: Table1Config) -> dict[str, dict[str, float]]:
    """Per family ξ, α, ν, κ and the paper's bound, constants and logarithms left out, at the middle ε."""
    epsilon = config.epsilons[len(config.epsilons) // 2]
    found = {}
    for row in ROWS:
        (world,) = build_worlds(config.preset, (row.family,), jax.random.key(0))
        measured = coverage(world.mdp, (world.behaviour, world.behaviour))
        own = {name: float(getattr(measured, name)) for name in CONSTANTS}
        bound, needs = BOUNDS[row.family]
        needed = {name: own[name] for name in needs}
        promised = bound(epsilon, horizon=world.mdp.horizon, dim=world.mdp.dim, **needed)
        found[row.family] = own | {"bound": float(promised)}
    sizes = dict(config.lower_bound)
    found["lower_bound"] = {
        "bound": float(lower_bound(epsilon, horizon=int(sizes["horizon"]), dim=int(sizes["n_actions"])))
    }
    return found


def table1_markdown(config: Table1Config, found: list[Curve], measured: dict[str, dict[str, float]]) -> str:
    """The table: worst gap by ε, exponents with intervals, oracle calls, constants, the paper's bound."""
    middle = config.epsilons[len(config.epsilons) // 2]
    header = ["coverage", "algorithm", "pairs", "ε = 0", *[f"ε = {e:g}" for e in config.epsilons]]
    header += ["exponent [95 %]", "paper", "oracle calls", "ξ, α, ν, κ", f"bound at ε = {middle:g}"]
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    lines += ["| " + " | ".join(_cells(config, curve, measured[curve.row.family])) + " |" for curve in found]
    return "\n".join(lines)


def _cells(config: Table1Config, curve: Curve, constants: dict[str, float]) -> list[str]:
    row, fitted = curve.row, curve.fitted
    names = [constants[name] for name in CONSTANTS if name in constants]
    return [
        row.family.replace("_", " "),
        f"`{row.algorithm}`",
        f"{config.pairs(row):,}",
        "–" if curve.clean is None else f"{curve.clean:.4f}",
        *[f"{gap:.4f}" for gap in curve.middle],
        f"{fitted.slope:.2f} [{fitted.lower:.2f}, {fitted.upper:.2f}]",
        f"{'at most' if row is LOWER_BOUND else 'at least'} {row.promised:g}",
        f"{curve.oracle_calls:,}",
        ", ".join(f"{value:.2g}" for value in names) or "–",
        f"{constants['bound']:.3g}",
    ]
