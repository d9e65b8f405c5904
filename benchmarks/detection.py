"""Who finds the corrupt pairs: average precision of our suspicion scores and of cleanlab's, attack by attack.

python benchmarks/detection.py [--seeds 5] [--epsilon 0.1] [--pairs 6000] [--families ...] [--estimators ...]

Prints a Markdown table of real choices (`real_sets.py`): the share of corrupted pairs among the ⌊εN⌋ that `flag` names
(precision = recall), and among as many by the plain fit's surprise and by cleanlab. Then one per family of the
`coverage` preset: for each attack the median average precision of the suspicion of each estimator named (by default
`fit_reward`, `filtered`, which is Algorithm 1's filter and trimming, and the plain fit's surprise), and of cleanlab's
label quality (self-confidence of out-of-fold probabilities, scikit-learn's logistic regression on the same differences
x, 5 folds). Chance has an average precision of the share of changed pairs.
"""

import argparse
from importlib import metadata
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from cleanlab.rank import get_label_quality_scores
from real_sets import KINDS, RealSet, corrupt, fitted, real_sets
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from studies import LEVELS, SHARED

from robust_rlhf_jax import changed_pairs, sample_preferences
from robust_rlhf_jax.audit import average_precision, flag, suspicion_scores
from robust_rlhf_jax.lab.attacks import ATTACKS
from robust_rlhf_jax.lab.sweeps.families import PRESETS, build_worlds
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.preferences import preferences_from_options
from robust_rlhf_jax.rewards.registry import ESTIMATORS

OURS = ("fit_reward", "filtered", "maximum_likelihood")
DETERMINISTIC = "flip_confident"
FAMILIES = tuple(PRESETS["coverage"].families)


def cleanlab_suspicion(x, labels):
    """1 − cleanlab's label quality [N]; every pair is turned round at random, so that both classes are as common."""
    turn = np.random.default_rng(0).choice([-1.0, 1.0], len(x))
    x, classes = x * turn[:, None], (labels * turn > 0).astype(int)
    model = LogisticRegression(fit_intercept=False, max_iter=500)
    chances = cross_val_predict(model, x, classes, cv=5, method="predict_proba")
    return 1.0 - get_label_quality_scores(classes, chances)


def found_share(mask, corrupt) -> float:
    """Share of the flagged pairs that are corrupt: as many are flagged as are corrupt."""
    return float(np.sum(mask & corrupt) / max(np.sum(corrupt), 1))


def highest(scores, count):
    mask = np.zeros(len(scores), bool)
    mask[np.argsort(-np.asarray(scores), kind="stable")[:count]] = True
    return mask


def measure_real(data: RealSet, kind: str, epsilon: float, seeds: range):
    """Mean over seeds of the share found by `flag` with ε, by the plain fit's surprise, and by cleanlab."""
    found = []
    for seed in seeds[:1] if kind == DETERMINISTIC else seeds:
        attacked, corrupted = corrupt(np.random.default_rng(seed), data, kind, epsilon)
        pairs = preferences_from_options(np.zeros_like(attacked.x), attacked.x, attacked.labels)
        ours = np.asarray(flag(pairs, epsilon, groups=attacked.groups))
        plain = -attacked.labels * (attacked.x @ fitted(attacked.x, attacked.labels))
        size = np.sqrt(np.mean(attacked.x.astype(float) ** 2, axis=0))
        theirs = cleanlab_suspicion(attacked.x / size, attacked.labels)
        count = int(corrupted.sum())
        masks = (ours, highest(plain, count), highest(theirs, count))
        found.append([found_share(mask, corrupted) for mask in masks])
    return np.mean(found, axis=0)


def print_real(seeds: int, folder: Path) -> None:
    print("| data | corruption | ε = chance | flag | plain surprise | cleanlab |")
    print("|---|---|---|---|---|---|")
    for name, data in real_sets(folder).items():
        for kind in KINDS:
            for epsilon in LEVELS:
                row = measure_real(data, kind, epsilon, range(100, 100 + seeds))
                cells = " | ".join(f"{value:.2f}" for value in row)
                print(f"| {name} | `{kind}` | {epsilon:g} | {cells} |", flush=True)


def measure(family, attack, epsilon, pairs, seeds, estimators):
    """Median over seeds of (share changed, AP of each estimator, AP of cleanlab)."""
    (world,) = build_worlds("coverage", (family,), jax.random.key(0))
    behaviour = (world.behaviour,) * 2
    corrupt_data = jax.jit(lambda key, data: ATTACKS[attack](key, data, epsilon, world.mdp))
    found = []
    for seed in range(seeds):
        clean = sample_preferences(jax.random.key(seed), world.mdp, pairs, behaviour=behaviour)
        data = corrupt_data(jax.random.key(100 + seed), clean)
        changed = changed_pairs(clean, data)
        ours = [suspicion_scores(data, epsilon, estimator=name, ask_table=False) for name in estimators]
        theirs = jnp.asarray(cleanlab_suspicion(np.asarray(data.differences()), np.asarray(data.labels)))
        scores = [*ours, theirs]
        found.append([float(jnp.mean(changed)), *[float(average_precision(s, changed)) for s in scores]])
    return np.median(found, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--pairs", type=int, default=6_000)
    parser.add_argument("--families", nargs="+", default=FAMILIES, choices=(*FAMILIES, "none"))
    parser.add_argument("--estimators", nargs="+", default=OURS, choices=tuple(ESTIMATORS))
    parser.add_argument("--shared", type=Path, default=SHARED)
    given = parser.parse_args()
    print_real(given.seeds, given.shared)
    for family in (name for name in given.families if name != "none"):
        print(f"\n**{family}**\n")
        print(f"| attack | changed | {' | '.join(given.estimators)} | cleanlab |")
        print("|---" * (len(given.estimators) + 3) + "|")
        for attack in ATTACKS:
            row = measure(family, attack, given.epsilon, given.pairs, given.seeds, given.estimators)
            print(f"| {attack} | " + " | ".join(f"{value:.2f}" for value in row) + " |", flush=True)
    facts = environment()
    print(
        f"\n{given.seeds} seeds, {given.pairs:,} pairs, ε = {given.epsilon:g}, {facts['date']}, {facts['cores']}-core "
        f"{facts['platform']}, jax {facts['versions']['jax']}, cleanlab {metadata.version('cleanlab')}"
    )


if __name__ == "__main__":
    main()
