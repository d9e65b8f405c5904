"""Few pairs, many features: `python benchmarks/few_pairs.py [--seeds 10] [--parts texts shapes harm] [--out FILE]`.

- texts: files of 300 to 1,500 honest pairs from two generators, with the audit's default features, without ε and
  ε = .1. Bars: at most 1 % of the pairs left out; log-loss within .02 of plain's.
- shapes: 50 to 2,000 honest pairs × 2 to 500 features (normal, sparse, one-hot). Bars: at most 1 file in 100 loses any
  pair; log-loss within .01 of the best ridge of 13, found in hindsight on the held-out pairs. Beside it, the ridge that
  cross-validation chooses.
- harm: the same shapes with 5 and 10 % of the labels flipped where the truth is surest, or as many planted copies of
  one pair: how often any pair is left out, and accuracy of plain and robust. No bar: it shows from where on harm is
  seen.

Exits with 1 where a bar fails.
"""

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from rich.progress import track
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from text_faults import text_set, write

from robust_rlhf_jax.io import load_pairs
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards import CEILING, RewardFit, fit_differences

TEXT_SIZES = (300, 500, 600, 800, 1500)
SHAPES = ((50, 2), (50, 20), (100, 5), (100, 100), (300, 20), (300, 500), (1000, 50), (2000, 10), (2000, 500))
KINDS = ("normal", "sparse", "one-hot")
FRESH = 2000
FLAGGED, DEARER, BEHIND_RIDGE, LOSING = 0.01, 0.02, 0.01, 0.01
FLIPS = 0.0, 0.05, 0.1
# Of the ridges beside the fit, as scikit-learn's C.
STRENGTHS = np.logspace(-3, 3, 13)
TUNED_UP_TO = 300


class Judged(NamedTuple):
    """`left_out`: share of the training pairs; `accuracy`, `log_loss` on held-out honest pairs."""

    left_out: float
    accuracy: float
    log_loss: float


def judged(found: RewardFit, x, labels) -> Judged:
    first = np.asarray(found.probability(jnp.asarray(x, jnp.float32)), float)
    chance = np.clip(np.where(labels > 0, first, 1 - first), 1e-12, 1)
    out = 1.0 - float(np.mean(np.asarray(found.weights)))
    return Judged(out, float(np.mean(chance > 0.5)), float(-np.mean(np.log(chance))))


def fitted(x, labels, epsilon: float) -> RewardFit:
    return fit_differences(*(jnp.asarray(part, jnp.float32) for part in (x, labels, epsilon)))


WORDS = ["".join(parts) for parts in np.random.default_rng(7).choice(
    ["ka", "lo", "mi", "ru", "te", "sha", "vo", "ne", "pi", "du"], size=(300, 3))]  # fmt: skip


def invented_words(n: int, seed: int) -> list[dict]:
    """Honest pairs over texts of invented words: twelve frequent ones are liked or disliked, length is disliked."""
    rng = np.random.default_rng([seed, 77])
    frequency = 1.0 / np.arange(1, len(WORDS) + 1)
    liked = np.zeros(len(WORDS))
    liked[rng.permutation(60)[:12]] = 1.5 * rng.normal(size=12)
    rows = []
    for i in range(n):
        sides = [rng.choice(len(WORDS), rng.integers(8, 50), p=frequency / frequency.sum()) for _ in range(2)]
        worth = [liked[words].sum() - 0.02 * len(words) for words in sides]
        first = rng.uniform() < 1 / (1 + np.exp(worth[1] - worth[0]))
        chosen, rejected = (" ".join(WORDS[w] for w in words) for words in (sides if first else sides[::-1]))
        rows.append({"prompt": f"case {i}", "chosen": chosen, "rejected": rejected})
    return rows


def helpful_answers(n: int, seed: int) -> list[dict]:
    """The generator of `text_faults.py`, without faults."""
    columns = ("prompt", "chosen", "rejected")
    return [{name: row[name] for name in columns} for row in text_set(n, seed=seed).rows]


GENERATORS: dict[str, Callable[[int, int], list[dict]]] = {
    "helpful answers": helpful_answers,
    "invented words": invented_words,
}


def differences_of(rows: list[dict], folder: Path):
    path = folder / "pairs.jsonl"
    write(path, rows)
    pairs = load_pairs(path)
    turn = np.random.default_rng(0).choice([-1.0, 1.0], pairs.n_pairs)
    return np.asarray(pairs.preferred_differences(), float) * turn[:, None], turn


def texts(seeds: int) -> Iterator[tuple[str, bool]]:
    """A line for each generator and size, and whether it holds its bars."""
    yield (
        "| texts | pairs | features | left out, without ε / .1 | worst file | log-loss plain / without ε / .1 | |",
        True,
    )
    yield "|---|---|---|---|---|---|---|", True
    with tempfile.TemporaryDirectory() as folder:
        for name, generate in GENERATORS.items():
            for n in TEXT_SIZES:
                found = []
                for seed in track(range(seeds), f"{name}, {n}"):
                    x, labels = differences_of(generate(n + FRESH, seed), Path(folder))
                    fits = [fitted(x[:n], labels[:n], e) for e in (0.0, CEILING, 0.1)]
                    found.append([judged(fit, x[n:], labels[n:]) for fit in fits])
                means = np.mean(found, axis=0)
                held = max(means[1:, 0]) <= FLAGGED and max(means[1:, 2]) <= means[0, 2] + DEARER
                worst = max(part.left_out for fit in found for part in fit)
                cells = [
                    name,
                    f"{n:,}",
                    x.shape[1],
                    " / ".join(f"{v:.2%}" for v in means[1:, 0]),
                    f"{worst:.1%}",
                ]
                cells += [" / ".join(f"{v:.3f}" for v in means[:, 2]), "pass" if held else "FAIL"]
                yield "| " + " | ".join(map(str, cells)) + " |", held


def honest(rng, kind: str, n: int, d: int):
    """(x, labels, θ): honest pairs, margins of standard deviation 1.5."""
    if kind == "one-hot":
        x = np.zeros((n, d))
        sides = np.stack([rng.permutation(d)[:2] for _ in range(n)])
        x[np.arange(n), sides[:, 0]], x[np.arange(n), sides[:, 1]] = 1.0, -1.0
    else:
        x = rng.normal(size=(n, d))
        if kind == "sparse":
            x *= rng.random(size=(n, d)) < 0.1
    theta = rng.normal(size=d)
    theta *= 1.5 / max(np.std(x @ theta), 1e-9)
    return x, np.where(rng.random(n) < 1 / (1 + np.exp(-x @ theta)), 1.0, -1.0), theta


def log_loss(model, fresh, fresh_labels) -> float:
    return float(np.mean(np.logaddexp(0, -fresh_labels * (fresh @ model.coef_[0]))))


def best_ridge(x, labels, fresh, fresh_labels) -> float:
    losses = []
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, fit_intercept=False, max_iter=300).fit(x, labels)
        losses.append(log_loss(model, fresh, fresh_labels))
    return min(losses)


def tuned_ridge(x, labels, fresh, fresh_labels) -> float:
    """The ridge that tenfold cross-validation chooses; NaN where pairs are many, and it would take minutes."""
    if len(x) > TUNED_UP_TO:
        return float("nan")
    model = LogisticRegressionCV(
        Cs=STRENGTHS, cv=10, fit_intercept=False, scoring="neg_log_loss", max_iter=300
    )
    with warnings.catch_warnings():  # of scikit-learn 1.8, that names of attributes not used here will change
        warnings.simplefilter("ignore", FutureWarning)
        return log_loss(model.fit(x, labels), fresh, fresh_labels)


def corrupted(rng, how: str, share: float, x, labels, theta):
    x, labels = x.copy(), labels.copy()
    bad = np.argsort(-labels * (x @ theta))[: int(share * len(x))]
    if how == "planted":
        bad = rng.permutation(len(x))[: len(bad)]
        x[bad] = x[np.argmax(np.abs(x @ theta))]
        labels[bad] = np.sign(x[bad] @ theta)
    labels[bad] *= -1
    return x, labels


def shapes(seeds: int) -> Iterator[tuple[str, bool]]:
    yield (
        "| kind | pairs × features | files that lose pairs | log-loss plain / robust / best ridge | cross-validated "
        "| bars |",
        True,
    )
    yield "|---|---|---|---|---|---|", True
    lost, files = 0, 0
    for kind in KINDS:
        for n, d in SHAPES:
            found, ridges, tuned = [], [], []
            for seed in track(range(seeds), f"{kind}, {n} × {d}"):
                rng = np.random.default_rng([seed, n, d])
                x, labels, theta = honest(rng, kind, n, d)
                fresh, fresh_labels, _ = honest_like(rng, kind, d, theta)
                fits = [judged(fitted(x, labels, e), fresh, fresh_labels) for e in (0.0, CEILING)]
                found.append(fits)
                ridges.append(best_ridge(x, labels, fresh, fresh_labels))
                tuned.append(tuned_ridge(x, labels, fresh, fresh_labels))
            means, losing = np.mean(found, axis=0), sum(fit[1].left_out > 1e-6 for fit in found)
            lost, files = lost + losing, files + seeds
            held = max(means[:, 2]) <= np.mean(ridges) + BEHIND_RIDGE
            cells = [
                kind,
                f"{n:,} × {d}",
                losing,
                f"{means[0, 2]:.3f} / {means[1, 2]:.3f} / {np.mean(ridges):.3f}",
                "" if n > TUNED_UP_TO else f"{np.mean(tuned):.3f}",
            ]
            yield "| " + " | ".join(map(str, [*cells, "pass" if held else "FAIL"])) + " |", held
    yield f"\n{lost} of {files} honest files lose any pair.", lost <= LOSING * files


def honest_like(rng, kind: str, d: int, theta):
    """Fresh pairs of the same law and reward."""
    x, _, _ = honest(rng, kind, FRESH, d)
    return x, np.where(rng.random(FRESH) < 1 / (1 + np.exp(-x @ theta)), 1.0, -1.0), theta


def harm(seeds: int) -> Iterator[tuple[str, bool]]:
    yield (
        "| kind | pairs × features | attack | share | files that lose pairs | accuracy plain / robust |",
        True,
    )
    yield "|---|---|---|---|---|---|", True
    for n, d in SHAPES:
        for how in ("confident", "planted"):
            for share in FLIPS[1:]:
                found = []
                for seed in track(range(seeds), f"{how} {share}, {n} × {d}"):
                    rng = np.random.default_rng([seed, n, d])
                    x, labels, theta = honest(rng, "normal", n, d)
                    fresh, fresh_labels, _ = honest_like(rng, "normal", d, theta)
                    given = corrupted(rng, how, share, x, labels, theta)
                    found.append([judged(fitted(*given, e), fresh, fresh_labels) for e in (0.0, CEILING)])
                losing, means = sum(fit[1].left_out > 1e-6 for fit in found), np.mean(found, axis=0)
                cells = ["normal", f"{n:,} × {d}", how, share, f"{losing} of {seeds}"]
                yield (
                    "| " + " | ".join(map(str, [*cells, f"{means[0, 1]:.3f} / {means[1, 1]:.3f}"])) + " |",
                    True,
                )


PARTS = {"texts": texts, "shapes": shapes, "harm": harm}


def main(words=None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=tuple(PARTS))
    parser.add_argument("--out", type=Path, help="write the tables to this file, too")
    given = parser.parse_args(words)
    lines, held = [], True
    for part in given.parts:
        for line, fine in PARTS[part](given.seeds):
            lines.append(line)
            held &= fine
            print(line, flush=True)
        lines.append("")
    lines.append(f"{given.seeds} seeds. {environment()}")
    print(lines[-1])
    if given.out:
        given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
