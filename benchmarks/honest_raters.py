"""Honest raters of many minds: who of them is called bad, and what does leaving them out cost?

`python benchmarks/honest_raters.py [--crowds …] [--seeds 4]`. Crowds of raters who all answer as they think, with six
features: 30 raters × 20 answers, 150 × 15 and 45 × 80. Prints, over the files of each crowd, how many raters are named
bad, noisy and of another taste, in how many files anybody is named bad, and accuracy and log-loss of `fit_weighed` on
the answers of a quarter of the people, who are left out, less those of maximum likelihood: mean, and the worst. Exits
with 1 where more than 1 in 20 raters of a crowd are named bad and log-loss is worse than plain's by more than .01.
"""

import argparse
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from rich.progress import track
from scipy.special import expit

from robust_rlhf_jax import Pairs
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.raters import fit_weighed
from robust_rlhf_jax.raters.kinds import BAD
from robust_rlhf_jax.rewards import plain_fit

# Raters, a quarter of them left out, and answers of each.
SIZES = ((40, 20), (200, 15), (60, 80))
FEATURES = 6
# The most of a crowd that may be named bad, and how much worse than plain's the log-loss may be where more are.
MOST_BAD, WORSE = 0.05, 0.01


class Answers(NamedTuple):
    """Of rater `of` [N], about differences `x` [N, 6], with `utility` [N] of the first option over the second."""

    of: np.ndarray
    x: np.ndarray
    utility: np.ndarray


def _asked(rng: np.random.Generator, raters: int, each: int) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(raters), each), rng.standard_normal((raters * each, FEATURES))


def _of_tastes(of: np.ndarray, x: np.ndarray, tastes: np.ndarray) -> Answers:
    return Answers(of, x, 1.5 * np.einsum("nk,nk->n", x, tastes[of]))


def alike(rng: np.random.Generator, raters: int, each: int) -> Answers:
    """All have one taste."""
    of, x = _asked(rng, raters, each)
    return Answers(of, x, 1.5 * x @ rng.standard_normal(FEATURES))


def own_scale(rng: np.random.Generator, raters: int, each: int) -> Answers:
    """One taste; the temperature of each rater is log-normal, with a standard deviation of 1."""
    of, x = _asked(rng, raters, each)
    scale = np.exp(rng.standard_normal(raters))
    return Answers(of, x, 1.5 * scale[of] * (x @ rng.standard_normal(FEATURES)))


def own_taste(rng: np.random.Generator, raters: int, each: int) -> Answers:
    """Normal tastes around a common one."""
    of, x = _asked(rng, raters, each)
    tastes = rng.standard_normal(FEATURES) + 0.7 * rng.standard_normal((raters, FEATURES))
    return _of_tastes(of, x, tastes)


def two_camps(rng: np.random.Generator, raters: int, each: int) -> Answers:
    """Three in ten raters share a taste that has nothing to do with the others'."""
    of, x = _asked(rng, raters, each)
    one, other = 1.5 * rng.standard_normal((2, FEATURES))
    return _of_tastes(of, x, np.where(rng.random((raters, 1)) < 0.3, other, one))


def one_reason(rng: np.random.Generator, raters: int, each: int) -> Answers:
    """Three in ten raters look at one feature alone, each at his own, in the direction of the crowd."""
    of, x = _asked(rng, raters, each)
    common, feature = rng.standard_normal(FEATURES), rng.integers(0, FEATURES, raters)
    single = 4 * np.sign(common[feature])[:, None] * np.eye(FEATURES)[feature]
    return _of_tastes(of, x, np.where(rng.random((raters, 1)) < 0.3, single, common))


def harder_pairs(rng: np.random.Generator, raters: int, each: int) -> Answers:
    """One taste; the options that some raters see differ much less than those of others."""
    of, x = _asked(rng, raters, each)
    x = x * np.exp(1.2 * rng.standard_normal(raters))[of][:, None]
    return Answers(of, x, 1.5 * x @ rng.standard_normal(FEATURES))


def own_topics(rng: np.random.Generator, raters: int, each: int) -> Answers:
    """Each rater's pairs differ mostly along features of his own, and the utility is not linear in them."""
    of, x = _asked(rng, raters, each)
    topics = rng.standard_normal((raters, FEATURES))
    topics /= np.linalg.norm(topics, axis=1, keepdims=True)
    x = x * (0.2 + 1.5 * np.abs(topics[of]))
    return Answers(of, x, 1.5 * x @ rng.standard_normal(FEATURES) + np.abs(x[:, 0]) * np.sign(x[:, 1]))


def uneven(rng: np.random.Generator, raters: int, each: int) -> Answers:
    """As `own_taste`, and a few raters give most of the answers (Pareto, from 1 to 300)."""
    answers = np.clip((rng.pareto(1.2, raters) * each / 3).astype(int), 1, 300)
    of = np.repeat(np.arange(raters), answers)
    tastes = rng.standard_normal(FEATURES) + 0.5 * rng.standard_normal((raters, FEATURES))
    return _of_tastes(of, rng.standard_normal((len(of), FEATURES)), tastes)


def skewed(rng: np.random.Generator, raters: int, each: int) -> Answers:
    """As `own_taste`, of three heavy-tailed features and three tags that are mostly equal on both sides."""
    of, _ = _asked(rng, raters, each)
    heavy = rng.gamma(0.4, 2.0, (2, len(of), 3))
    tagged = (rng.random((len(of), 3)) < 0.2) * rng.choice([-1.0, 1.0], (len(of), 3))
    tastes = rng.standard_normal(FEATURES) + 0.5 * rng.standard_normal((raters, FEATURES))
    return _of_tastes(of, np.concatenate([heavy[0] - heavy[1], tagged], axis=1), tastes)


CROWDS: dict[str, Callable[[np.random.Generator, int, int], Answers]] = {
    crowd.__name__: crowd
    for crowd in (
        alike, own_scale, own_taste, two_camps, one_reason, harder_pairs, own_topics, uneven, skewed,
    )
}  # fmt: skip


class File(NamedTuple):
    """`pairs`, with the first option in either place, and answers [M, 6] of others, chosen less rejected."""

    pairs: Pairs
    fresh: np.ndarray


def drawn(crowd: str, raters: int, each: int, seed: int) -> File:
    rng = np.random.default_rng([seed, raters, sum(map(ord, crowd))])
    answers = CROWDS[crowd](rng, raters, each)
    labels = np.where(rng.random(len(answers.of)) < expit(answers.utility), 1.0, -1.0)
    left_out = (rng.permutation(raters) < raters // 4)[answers.of]
    turn = rng.choice([-1.0, 1.0], len(labels))
    x, labels = answers.x * turn[:, None], labels * turn
    pairs = Pairs.of_differences(
        x[~left_out].astype(np.float32), labels[~left_out], raters=answers.of[~left_out]
    )
    return File(pairs, (x * labels[:, None])[left_out])


def scored(theta: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    """Accuracy and log-loss."""
    margins = fresh @ np.asarray(theta, float)
    return np.array(
        [np.mean(margins > 0) + 0.5 * np.mean(margins == 0), np.mean(np.logaddexp(0.0, -margins))]
    )


def row_of(crowd: str, seeds: int) -> tuple[list[str], bool]:
    """The cells of a crowd, and whether it keeps to `MOST_BAD` or `WORSE`."""
    gains, named, files = [], np.zeros(4, int), 0
    for raters, each in SIZES:
        for seed in range(seeds):
            file = drawn(crowd, raters, each, seed)
            found = fit_weighed(file.pairs)
            x = file.pairs.preferred_differences().astype(np.float32)
            plain, _ = plain_fit(x, np.ones(len(x), np.float32))
            gains.append(scored(np.asarray(found.theta), file.fresh) - scored(np.asarray(plain), file.fresh))
            counts = found.table.counts()
            bad = sum(counts.get(kind, 0) for kind in BAD)
            named += [sum(counts.values()), bad, counts["noisy"], counts["other taste"]]
            files += bad > 0
    accuracy, loss = np.array(gains).T
    everybody, bad, noisy, other = named.tolist()
    return [
        crowd,
        f"{bad} of {everybody:,}",
        f"{files} of {len(gains)}",
        f"{noisy / everybody:.2f}",
        f"{other / everybody:.2f}",
        f"{accuracy.mean():+.4f} / {loss.mean():+.4f}",
        f"{accuracy.min():+.4f} / {loss.max():+.4f}",
    ], bool(bad <= MOST_BAD * everybody or loss.mean() <= WORSE)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--crowds", nargs="+", choices=CROWDS, default=tuple(CROWDS))
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args(words)
    rows = [row_of(crowd, options.seeds) for crowd in track(options.crowds, "crowds")]
    print("| crowd | named bad | files with any | noisy | other taste | less plain | worst less plain |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for cells, _ in rows:
        print("| " + " | ".join(cells) + " |")
    print(f"\n{environment()}")
    return 0 if all(kept for _, kept in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
