"""Honest people who do not choose by a logistic model: does the fit harm them, and does it still help?

`python benchmarks/other_choosers.py [--choosers …] [--seeds 3] [--attacked 2000]`. Each way to choose (`choosers.py`)
draws honest files of 150, 600 and 4,000 pairs, every pair chosen first, and fresh choices of the same people. The first
table tells how many of the fits without ε and with ε = .1 leave a pair out, and accuracy and log-loss on the fresh
choices less those of maximum likelihood: means, and the worst. The second table has a tenth of the pairs corrupted and
means over the attacks of `catch_harm.py` and `beside_rivals.py`. Exits with 1 where the mean of the honest files of a
way is worse than plain by more than .005 in accuracy or .01 in log-loss.
"""

import argparse
import sys
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from choosers import CHOOSERS, Drawn
from rich.progress import track
from scipy.special import expit
from studies import PLANTED, RELABELLED, short

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.lab.pair_attacks import PAIR_ATTACKS, AttackedPairs
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards import plain_fit

SIZES, FRESH, EPSILON = (150, 600, 4000), 4000, 0.1
TOLD = (None, EPSILON)
# How much worse than plain the mean of a way may be, in accuracy and in log-loss.
WORSE = (0.005, 0.01)
# How far behind plain's accuracy a fit under attack counts as behind.
BEHIND = 0.02
HONEST = ("way to choose", "plain", "fits that lose a pair", "most out", "less plain", "worst less plain")
ATTACKED = (
    "way to choose", "plain, clean", "plain", "without ε", "ε = .1", f"more than {short(BEHIND)} behind plain",
    "most behind",
)  # fmt: skip


class Scores(NamedTuple):
    """Accuracy and log-loss on fresh choices; `out`: the share of the pairs that are left out."""

    accuracy: float
    loss: float
    out: float = 0.0


def drawn(name: str, n: int, seed: int) -> tuple[Drawn, np.ndarray]:
    """The file, and fresh choices [M, k] of the same people, chosen less rejected."""
    rng = np.random.default_rng([seed, n, sum(map(ord, name))])
    found = CHOOSERS[name](rng, n + FRESH)
    return Drawn(found.x[:n], found.wins[:n]), Drawn(found.x[n:], found.wins[n:]).preferred()


def scored(chance: np.ndarray, out: float = 0.0) -> Scores:
    """`chance` [M]: what a fit says that the preferred options are preferred."""
    accuracy = np.mean(chance > 0.5) + 0.5 * np.mean(chance == 0.5)
    return Scores(float(accuracy), float(-np.mean(np.log(np.clip(chance, 1e-12, 1.0)))), out)


def plain_theta(x: np.ndarray) -> np.ndarray:
    """Maximum likelihood on `x`, chosen less rejected."""
    return np.asarray(plain_fit(x.astype(np.float32), np.ones(len(x), np.float32))[0], float)


def plain_scores(theta: np.ndarray, fresh: np.ndarray) -> Scores:
    return scored(expit(fresh @ theta))


def robust_scores(x: np.ndarray, fresh: np.ndarray, epsilon: float | None) -> Scores:
    """Of `RewardModel.probability`."""
    model = fit_reward(Pairs.of_differences(x.astype(np.float32), np.ones(len(x))), epsilon)
    rows = jnp.asarray(fresh, jnp.float32)
    chance = model.probability(rows, jnp.zeros_like(rows))
    return scored(np.asarray(chance, float), float(np.mean(np.asarray(model.weights) < 0.5)))


def honest_row(name: str, seeds: int) -> tuple[list[str], bool]:
    """The cells of the first table, and whether the mean of all files keeps `WORSE`."""
    plain, gains, lose = [], [], 0
    for n in SIZES:
        for seed in range(seeds):
            file, fresh = drawn(name, n, seed)
            x = file.preferred()
            plain.append(plain_scores(plain_theta(x), fresh))
            for epsilon in TOLD:
                found = robust_scores(x, fresh, epsilon)
                lose += found.out > 0
                gains.append((found.accuracy - plain[-1].accuracy, found.loss - plain[-1].loss, found.out))
    accuracy, loss, out = np.array(gains).T
    means = np.mean([scores[:2] for scores in plain], axis=0)
    kept = accuracy.mean() >= -WORSE[0] and loss.mean() <= WORSE[1]
    return [
        name,
        " / ".join(map(short, means)),
        f"{lose} of {len(gains)}",
        f"{out.max():.3f}",
        f"{accuracy.mean():+.4f} / {loss.mean():+.4f}",
        f"{accuracy.min():+.4f} / {loss.max():+.4f}",
    ], kept


def attacked_row(name: str, n: int) -> list[str]:
    """The cells of the second table: means over the attacks, and the row that is most behind plain."""
    file, fresh = drawn(name, n, 0)
    x = file.preferred()
    turn = np.random.default_rng(n).choice([-1.0, 1.0], n)
    clean = AttackedPairs(x * turn[:, None], turn, np.concatenate([x, -x]))
    theta = plain_theta(x)
    scores = []
    for attack in (*PLANTED, *RELABELLED):
        found = PAIR_ATTACKS[attack](np.random.default_rng(0), clean, EPSILON, theta)
        x = found.x * found.labels[:, None]
        scores.append(
            [plain_scores(plain_theta(x), fresh), *(robust_scores(x, fresh, epsilon) for epsilon in TOLD)]
        )
    means = np.mean(np.array(scores), axis=0)
    behind = np.array([plain.accuracy - min(fit.accuracy for fit in fits) for plain, *fits in scores])
    worst = (*PLANTED, *RELABELLED)[int(behind.argmax())]
    return [
        name,
        " / ".join(map(short, plain_scores(theta, fresh)[:2])),
        *(" / ".join(map(short, mean[:2])) for mean in means),
        f"{int(np.sum(behind > BEHIND))} of {len(behind)}",
        f"{behind.max():.3f} ({worst})",
    ]


def printed(header: tuple[str, ...], rows: list[list[str]]) -> None:
    for cells in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(cells) + " |")


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--choosers", nargs="+", choices=CHOOSERS, default=tuple(CHOOSERS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--attacked", type=int, default=2000, help="pairs of the attacked files; 0: none")
    options = parser.parse_args(words)
    rows, kept = [], True
    for name in track(options.choosers, "honest files"):
        cells, fine = honest_row(name, options.seeds)
        rows, kept = [*rows, cells], kept and fine
    printed(HONEST, rows)
    if options.attacked:
        rows = [attacked_row(name, options.attacked) for name in track(options.choosers, "attacked files")]
        print()
        printed(ATTACKED, rows)
    print(f"\n{environment()}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
