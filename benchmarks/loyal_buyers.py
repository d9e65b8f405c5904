"""Buyers with a brand of their own: does the fit harm them, or follow attackers? `python benchmarks/loyal_buyers.py`.

Panels of people who buy one of four brands, drawn from a mixed logit with habits (`Panel`): each has tastes of his own
for the brands, and likes the brand that he bought last. The features know price, display, advertising and brand, not
who buys, so that no reward of the features explains the choices well. Two tables: honest panels whole and in parts, in
both orientations; and every attack of `lab/pair_attacks/`, judged on the choices of people left out.
"""

import argparse
import dataclasses
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.progress import track
from studies import LEVELS

from robust_rlhf_jax import Pairs, fit_reward, load
from robust_rlhf_jax.lab import benchmark
from robust_rlhf_jax.outputs import environment

SIZES = (300, 100)
BEHIND = 0.02
PLAIN, TOLD, UNTOLD = ESTIMATORS = ("maximum_likelihood", "fit_reward", "fit_reward_untold")


class Panel(NamedTuple):
    """Utility of brand j to person k on trip t: (b + `spread`·z_k)_j − 3·`price`·(p_tj − p̄_j) + .6·advertised +
    .8·displayed + `habit`·[bought last] + Gumbel noise, with b = 1.5·`shares`; `rivals`: how many of the three brands
    that were not bought make a pair with the one that was.
    """

    spread: float
    habit: float
    shares: tuple[float, ...] = (1.0, 0.5, 0.2, 0.0)
    people: int = 200
    trips: int = 15
    rivals: int = 1
    price: float = 2.0


PANELS = {
    "habits": Panel(1.0, 0.5),
    "loyal": Panel(2.0, 1.0),
    "hardly ever change": Panel(3.0, 2.0),
    "all rivals": Panel(2.0, 1.0, trips=8, rivals=3),
    "one large brand": Panel(1.5, 1.0, (2.5, 0.0, -0.5, -1.5), trips=10),
}
USUAL_PRICE = np.array([1.2, 1.0, 0.9, 0.6])


def purchases(panel: Panel, seed: int) -> pd.DataFrame:
    """One row a pair, as a file has it: rater, chosen_… and rejected_…"""
    rng = np.random.default_rng(seed)
    brands = len(panel.shares)
    taste = 1.5 * np.array(panel.shares) + panel.spread * rng.standard_normal((panel.people, brands))
    rows = []
    for person in range(panel.people):
        last = -1
        for _ in range(panel.trips):
            offer = _offer(rng)
            utility = taste[person] - 3 * panel.price * (offer[:, 0] - USUAL_PRICE)
            utility += offer[:, 1:3] @ [0.6, 0.8] + panel.habit * (np.arange(brands) == last)
            last = int(np.argmax(utility + rng.gumbel(size=brands)))
            others = rng.permutation([j for j in range(brands) if j != last])[: panel.rivals]
            rows += [
                {"rater": person} | _side("chosen", offer[last]) | _side("rejected", offer[j]) for j in others
            ]
    return pd.DataFrame(rows)


def _offer(rng: np.random.Generator) -> np.ndarray:
    """Price, advertised, displayed and three dummies of the brand, [4, 6]."""
    brands = len(USUAL_PRICE)
    price = (
        USUAL_PRICE
        * np.exp(0.15 * rng.standard_normal(brands))
        * np.where(rng.random(brands) < 0.2, 0.8, 1.0)
    )
    return np.column_stack([price, rng.random((brands, 2)) < 0.15, np.eye(brands)[:, :-1]])


def _side(name: str, offer: np.ndarray) -> dict[str, float]:
    features = ("price", "advertised", "displayed", "brand1", "brand2", "brand3")
    return {f"{name}_{feature}": value for feature, value in zip(features, offer, strict=True)}


def parts(pairs: Pairs, seed: int) -> Iterator[Pairs]:
    """All pairs and random parts of them, as the file has them and with options exchanged at random."""
    rng = np.random.default_rng(seed)
    for n in (pairs.n_pairs, *SIZES):
        some = pairs.take(rng.choice(pairs.n_pairs, n, replace=False))
        yield some
        yield dataclasses.replace(some, swapped=rng.random(n) < 0.5)


def harmed(pairs: Pairs, seed: int) -> tuple[int, int]:
    """Of the fits to honest parts, told .1 and nothing, how many leave out a pair or move θ; and how many there are."""
    differ = total = 0
    for part in parts(pairs, seed):
        plain = fit_reward(part, epsilon=0.0)
        for epsilon in (0.1, None):
            found = fit_reward(part, epsilon=epsilon)
            same = np.allclose(found.theta, plain.theta, rtol=1e-4, atol=1e-5)
            differ, total = differ + (not same or np.min(found.weights) < 1), total + 1
    return differ, total


def attacked(path: Path, attacks: tuple[str, ...]) -> pd.DataFrame:
    """Accuracy and log-loss of every cell, a row for each attack and ε."""
    config = benchmark.BenchmarkConfig(attacks, LEVELS, ESTIMATORS)
    problem = benchmark.read_problem(str(path), config.pairs, config.seed)
    rows = benchmark.run_benchmark([problem], config, benchmark.PAIR_ATTACKS, benchmark.contestants())
    table = pd.DataFrame(rows).query("attack != 'none'")
    return table.pivot_table(
        index=["attack", "epsilon"], columns="estimator", values=["accuracy", "log_loss"]
    )


def row_of(name: str, epsilon: float, cells: Any) -> list[str]:
    accuracy = cells["accuracy"]
    behind = accuracy[PLAIN] - accuracy[TOLD]
    means = [
        f"{accuracy[who].mean():.3f} / {cells['log_loss'][who].mean():.3f}" for who in (PLAIN, TOLD, UNTOLD)
    ]
    worst = f"{behind.max():.3f} ({behind.idxmax()[0]})"
    return [name, f"{epsilon:g}", *means, f"{(behind > BEHIND).sum()} of {len(behind)}", worst]


def main(words=None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--panels", nargs="+", choices=PANELS, default=tuple(PANELS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--attacks", nargs="+", choices=benchmark.PAIR_ATTACKS, default=tuple(benchmark.PAIR_ATTACKS)
    )
    given = parser.parse_args(words)
    honest, tables = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in track(given.panels, "panels"):
            path = Path(folder) / f"{name.replace(' ', '_')}.csv"
            purchases(PANELS[name], given.seed).to_csv(path, index=False)
            pairs = load(path)
            honest.append([name, f"{pairs.n_pairs:,}", "{} of {}".format(*harmed(pairs, given.seed))])
            cells = attacked(path, tuple(given.attacks))
            tables += [
                row_of(name, level, cells.xs(level, level="epsilon", drop_level=False)) for level in LEVELS
            ]
    print_table(["panel", "pairs", "honest fits that differ from the plain one"], honest)
    print_table(
        [
            "panel",
            "ε",
            "plain",
            "`fit_reward`",
            "without ε",
            f"told, more than {BEHIND} behind plain",
            "most behind",
        ],
        tables,
    )
    print(f"Accuracy / log-loss, means over {len(given.attacks)} attacks. {environment()}")
    return int(any(not row[2].startswith("0 of") for row in honest))


def print_table(head: list[str], rows: list[list[str]]) -> None:
    print(
        "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]),
        end="\n\n",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
