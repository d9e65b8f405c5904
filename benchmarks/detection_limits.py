"""Where nobody could find the corrupt pairs: `python benchmarks/detection_limits.py [--shared FOLDER]`.

For the rows of `detection.py` in which `fit_reward` believes the corrupted pairs: the certificate of `lab.diagnostics`,
that is, the share of the pairs that must be corrupt if its answer, given ε = .2, were the truth. If that is at most ε,
two rewards fit the data equally well, and whoever trusts one of them accuses honest pairs if the other is true.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np
from real_sets import corrupt, fitted, real_sets
from studies import SHARED

from robust_rlhf_jax import fit_reward
from robust_rlhf_jax.lab.diagnostics.two_worlds import certificate, chance_of_wins
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.preferences import preferences_from_options

EPSILON, SEED = 0.2, 100
CASES = tuple((name, kind) for name in ("rail", "swissmetro") for kind in ("planted_near", "flip_confident"))


def flip_surest(x, truth, count: int, labels):
    """Labels with the `count` labels flipped about which the truth is most certain."""
    surest = np.argsort(-labels * (x @ truth))[:count]
    flipped = np.array(labels)
    flipped[surest] *= -1
    return flipped


def limit_of(data, kind: str):
    """(accuracy of the clean fit and of the fit with ε, certificate), in columns of root mean square 1."""
    seen, mask = corrupt(np.random.default_rng(SEED), data, kind, EPSILON)
    size = np.sqrt(np.mean(data.x.astype(float) ** 2, axis=0))
    clean_x, x = data.x / size, seen.x / size
    truth = fitted(clean_x, data.labels)
    pairs = preferences_from_options(np.zeros_like(seen.x), seen.x, seen.labels)
    answer = np.asarray(fit_reward(pairs, EPSILON, groups=seen.groups).theta, float).reshape(-1) * size
    relabel = partial(flip_surest, clean_x, truth, mask.sum()) if kind == "flip_confident" else None
    wins = chance_of_wins(x, seen.labels, truth, relabel, clean_x)
    right = (np.mean(data.labels * (clean_x @ theta) > 0) for theta in (truth, answer))
    return *right, certificate(x, wins, answer, truth, EPSILON)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, default=SHARED)
    sets = real_sets(parser.parse_args().shared)
    print("| data | corruption | accuracy: clean | fit with ε | cost | hopeless |\n|---|---|---|---|---|---|")
    for name, kind in CASES:
        if name in sets:
            clean, told, found = limit_of(sets[name], kind)
            verdict = "yes" if found.holds(EPSILON) else "not shown"
            print(
                f"| {name} | `{kind}` | {clean:.3f} | {told:.3f} | {found.cost:.3f} | {verdict} |", flush=True
            )
    print(f"\nε = {EPSILON}, seed {SEED}. {environment()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
