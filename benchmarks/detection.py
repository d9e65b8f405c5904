"""Who finds the corrupt pairs: average precision of our suspicion scores and of cleanlab's, attack by attack.

python benchmarks/detection.py [--seeds 5] [--epsilon 0.1] [--pairs 6000]

Prints a Markdown table per family of the `coverage` preset: for each attack the median average precision of the
suspicion of `filtered` (Algorithm 1's filter and trimming), of the plain fit's surprise, and of cleanlab's label
quality (self-confidence of out-of-fold probabilities, scikit-learn's logistic regression on the same differences x,
5 folds), then precision at recall .5 of the first and the last. Chance has an average precision of the share of
changed pairs.
"""

import argparse
from importlib import metadata

import jax
import jax.numpy as jnp
import numpy as np
from cleanlab.rank import get_label_quality_scores
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from robust_rlhf_jax import changed_pairs, sample_preferences
from robust_rlhf_jax.attacks import ATTACKS
from robust_rlhf_jax.diagnostics import average_precision, precision_recall_curve, suspicion_scores
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.sweeps.families import PRESETS, build_worlds

OURS = ("filtered", "maximum_likelihood")
FAMILIES = tuple(PRESETS["coverage"].families)


def cleanlab_suspicion(x, labels):
    """1 − cleanlab's label quality [N]; every pair is turned round at random, so that both classes are as common."""
    turn = np.random.default_rng(0).choice([-1.0, 1.0], len(x))
    x, classes = x * turn[:, None], (labels * turn > 0).astype(int)
    model = LogisticRegression(fit_intercept=False, max_iter=500)
    chances = cross_val_predict(model, x, classes, cv=5, method="predict_proba")
    return 1.0 - get_label_quality_scores(classes, chances)


def precision_at_half_recall(scores, corrupt):
    precisions, recalls, _ = precision_recall_curve(scores, corrupt)
    return float(precisions[np.argmax(np.asarray(recalls) >= 0.5)])


def measure(family, attack, epsilon, pairs, seeds):
    """Median over seeds of (share changed, AP of each of ours, AP of cleanlab, precision at recall ½ of two)."""
    (world,) = build_worlds("coverage", (family,), jax.random.key(0))
    behaviour = (world.behaviour,) * 2
    corrupt_data = jax.jit(lambda key, data: ATTACKS[attack](key, data, epsilon, world.mdp))
    found = []
    for seed in range(seeds):
        clean = sample_preferences(jax.random.key(seed), world.mdp, pairs, behaviour=behaviour)
        data = corrupt_data(jax.random.key(100 + seed), clean)
        corrupt = changed_pairs(clean, data)
        ours = [suspicion_scores(data, epsilon, estimator=name, ask_table=False) for name in OURS]
        theirs = jnp.asarray(cleanlab_suspicion(np.asarray(data.differences()), np.asarray(data.labels)))
        scores = [*ours, theirs]
        row = [float(jnp.mean(corrupt)), *[float(average_precision(s, corrupt)) for s in scores]]
        found.append([*row, *[precision_at_half_recall(s, corrupt) for s in (ours[0], theirs)]])
    return np.median(found, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--pairs", type=int, default=6_000)
    parser.add_argument("--families", nargs="+", default=FAMILIES, choices=FAMILIES)
    given = parser.parse_args()
    for family in given.families:
        print(f"\n**{family}**\n")
        print(
            "| attack | changed | filtered | plain fit | cleanlab | filtered, P at R = ½ | cleanlab, P at R = ½ |"
        )
        print("|---|---|---|---|---|---|---|")
        for attack in ATTACKS:
            row = measure(family, attack, given.epsilon, given.pairs, given.seeds)
            print(f"| {attack} | " + " | ".join(f"{value:.2f}" for value in row) + " |", flush=True)
    facts = environment()
    print(
        f"\n{given.seeds} seeds, {given.pairs:,} pairs, ε = {given.epsilon:g}, {facts['date']}, {facts['cores']}-core "
        f"{facts['platform']}, jax {facts['versions']['jax']}, cleanlab {metadata.version('cleanlab')}"
    )


if __name__ == "__main__":
    main()
