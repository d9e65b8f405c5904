"""`fit_reward` on eleven files from elsewhere: `python benchmarks/files_from_elsewhere.py [--files NAME …]`.

The choices of `choice_files.py`, honest and attacked. Honest: all pairs, 300 and 100 of them, every pair with the
chosen option first or turned at random, ε = .1 or untold; the worst of these beside the plain fit, on the choices of
other people. Attacked: ε = .1, a fifth of the people held out; means over the attacks of `ATTACKS`.

Exits with 1 if a clean row loses more than .005 of accuracy or .01 of log-loss, or if a pair of it is left out.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd
from choice_files import FILES, choice_files
from jaxtyping import Float, Int
from rich.progress import track
from studies import short

from robust_rlhf_jax import Pairs, fit_reward, preferences_from_options
from robust_rlhf_jax.lab.benchmark import BenchmarkConfig, contestants, read_problem, run_benchmark
from robust_rlhf_jax.lab.pair_attacks import PAIR_ATTACKS, by_raters
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards import RewardModel

SIZES = (None, 300, 100)
EPSILON, MOST = 0.1, 5_000
ATTACKS = (
    "confident", "planted_real", "planted_far", "far", "leverage", "contrary_raters", "random_flips", "trigger",
    "corner", "goal_haters",
)  # fmt: skip
PLAIN, TOLD, UNTOLD = "maximum_likelihood", "fit_reward", "fit_reward_untold"
ACCURACY, LOG_LOSS, WORSE = 0.005, 0.01, 0.05


class Harm(NamedTuple):
    """The worst of the honest fits beside plain ones: accuracy and log-loss above plain's, pairs left out."""

    accuracy: float
    log_loss: float
    left_out: int


def honest(pairs: Pairs, seed: int = 0) -> Harm:
    """Of all sizes, both orientations, ε and no ε."""
    rng = np.random.default_rng(seed)
    people = (
        np.arange(pairs.n_pairs) if pairs.raters is None else np.unique(pairs.raters, return_inverse=True)[1]
    )
    test = rng.random(people.max() + 1)[people] < 0.2
    found = []
    for size in SIZES:
        train = np.flatnonzero(~test)
        if size is not None and size >= len(train):
            continue
        rows = train if size is None else rng.choice(train, size, replace=False)
        found += [_harm(pairs, rows, test, turned, epsilon) for turned in both_ways(rng, len(rows)) for epsilon in
                  (EPSILON, None)]  # fmt: skip
    accuracy, log_loss, left_out = zip(*found, strict=True)
    return Harm(min(accuracy), max(log_loss), max(left_out))


def both_ways(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Whether each pair is turned: none, and half of them."""
    return np.zeros(n, bool), rng.random(n) < 0.5


def _harm(pairs: Pairs, rows: Int[np.ndarray, " m"], test, turned, epsilon: float | None) -> Harm:
    chosen, rejected = pairs.chosen[rows], pairs.rejected[rows]
    first, second = (np.where((turned == side)[:, None], chosen, rejected) for side in (False, True))
    data = preferences_from_options(second, first, np.where(turned, -1.0, 1.0))
    robust, plain = fit_reward(data, epsilon=epsilon), fit_reward(data, epsilon=0)
    held_out = pairs.chosen[test], pairs.rejected[test]
    (accuracy, log_loss), (before, loss_before) = (score(model, *held_out) for model in (robust, plain))
    return Harm(accuracy - before, log_loss - loss_before, int(np.sum(np.asarray(robust.weights) < 0.5)))


def score(
    model: RewardModel, chosen: Float[np.ndarray, "n k"], rejected: Float[np.ndarray, "n k"]
) -> tuple[float, float]:
    """(accuracy, log-loss) on choices."""
    chance = np.asarray(model.probability(chosen, rejected), float)
    return float(np.mean(chance > 0.5)), float(-np.mean(np.log(np.maximum(chance, 1e-12))))


def attacked(name: str, pairs: Pairs, folder: Path) -> pd.DataFrame:
    """Accuracy and log-loss of the three fits under each attack that the file can have."""
    columns = {
        f"{side}_{i}": values
        for side, matrix in (("chosen", pairs.chosen), ("rejected", pairs.rejected))
        for i, values in enumerate(matrix.T)
    }
    if pairs.raters is not None:
        columns["rater"] = pairs.raters
    file = folder / f"{name.replace(' ', '_')}.csv"
    pd.DataFrame(columns).to_csv(file, index=False)
    attacks = tuple(a for a in ATTACKS if pairs.raters is not None or not by_raters(a))
    config = BenchmarkConfig(attacks, (EPSILON,), (TOLD, UNTOLD, PLAIN), 1, MOST, 0)
    rows = run_benchmark([read_problem(str(file), MOST, 0)], config, PAIR_ATTACKS, contestants())
    return pd.DataFrame(rows).pivot(index="attack", columns="estimator", values=["accuracy", "log_loss"])


def row(name: str, pairs: Pairs, harm: Harm, cells: pd.DataFrame) -> str:
    """One line of the table."""
    accuracy, log_loss = cells["accuracy"], cells["log_loss"]
    under = accuracy.drop(index="none")
    people = "—" if pairs.raters is None else f"{len(np.unique(pairs.raters)):,}"
    worse = {fit: int(np.sum(under[fit] < under[PLAIN] - 0.01)) for fit in (TOLD, UNTOLD)}
    losing = {fit: int(np.sum(log_loss[fit] > log_loss[PLAIN] + WORSE)) for fit in (TOLD, UNTOLD)}
    words = [name, f"{pairs.n_pairs:,}", people, str(pairs.chosen.shape[1]), str(harm.left_out),
             f"{harm.accuracy:+.3f}", f"{harm.log_loss:+.3f}", short(accuracy.loc["none", PLAIN])]  # fmt: skip
    words += [short(under[fit].mean()) for fit in (PLAIN, TOLD, UNTOLD)]
    words += [f"{counts[TOLD]} / {counts[UNTOLD]} of {len(under)}" for counts in (worse, losing)]
    return "| " + " | ".join(words) + " |"


COLUMNS = (
    "file", "pairs", "people", "features", "left out", "accuracy", "log-loss", "plain, honest", "plain", "told ε",
    "untold", "worse", "more log-loss",
)  # fmt: skip


def main(words=None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", nargs="+", choices=FILES, default=list(FILES))
    given, failed = parser.parse_args(words), False
    files = choice_files()
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    with tempfile.TemporaryDirectory() as folder:
        for name in track(given.files, "files"):
            harm, cells = honest(files[name]), attacked(name, files[name], Path(folder))
            print(row(name, files[name], harm, cells), flush=True)
            failed |= harm.accuracy < -ACCURACY or harm.log_loss > LOG_LOSS or harm.left_out > 0
            jax.clear_caches()
    print(f"\n{environment()}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
