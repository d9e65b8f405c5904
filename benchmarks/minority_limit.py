"""Could anybody name an honest minority? What an oracle names of it, and how many other people beside.

    python benchmarks/minority_limit.py [--sets rail ...] [--seeds 1]

Folds, sets, seeds and the minority, a tenth whose strongest feature is reversed, are those of `raters.py`; the oracle
and its laws of honest labels are those of `raters_limit.py`. It knows the share of the minority and its reward θ′, and
ranks raters by log P(labels | θ′) − log P(labels | honest). "Named" are those with P(minority) > ½: the share of the
minority / of all others. "Half" is the share of all others who are ranked above the median of the minority: no rule
that looks at one rater at a time names half of the minority and fewer others, if the law is right (Neyman and Pearson
1933). Each rater counts once as one of the minority and once as themselves. Prints a table in Markdown.
"""

import argparse
from pathlib import Path

import numpy as np
from pair_sets import CHOICES
from rater_files import WORLDS, replaced
from raters_limit import Clean, clean_labels, turns_of
from studies import SHARED, short

from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards import plain_fit

SHARE = 0.1


def reversed_reward(train):
    """The plain fit to clean labels, its strongest feature reversed, as in `raters.py`."""
    theta = np.array(plain_fit(np.float32(train), np.ones(len(train), np.float32))[0], float)
    theta[np.argmax(np.abs(theta) * train.std(axis=0))] *= -1
    return theta


def ratios(clean: Clean, seed, theta, share):
    """log P(labels | θ′) − log P(labels | honest) [2 laws, K], a `share` of the raters replaced by the minority."""
    turns = turns_of(clean.train, replaced(clean.train, clean.of, "minority", share, seed, theta))
    z, margins = clean.z * turns[:, None], (clean.train @ theta) * turns
    minority = -np.bincount(clean.of, np.logaddexp(0, -margins))
    return np.stack([minority - honest(z, clean.of) for honest in (clean.one_taste, clean.own_tastes)])


def both_ways(clean: Clean, seed):
    """Ratios [2 laws, K] of everybody as one of the minority, and as themselves."""
    theta = reversed_reward(clean.train)
    return ratios(clean, seed, theta, 1.0), ratios(clean, seed, theta, 0.0)


def row(name, cleans):
    """A row of the table."""
    pairs_each = np.concatenate([np.bincount(clean.of) for clean in cleans])
    minority, themselves = (
        np.concatenate(part, axis=1)
        for part in zip(*(both_ways(clean, seed) for seed, clean in enumerate(cleans)), strict=True)
    )
    parts = [name, f"{np.median(pairs_each):.0f}"]
    needed = np.log((1 - SHARE) / SHARE)
    for mine, others in zip(minority, themselves, strict=True):
        parts.append(f"{short(np.mean(mine > needed))} / {short(np.mean(others > needed))}")
        parts.append(short(np.mean(others >= np.median(mine))))
    return f"| {' | '.join(parts)} |"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=[*WORLDS, *CHOICES])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--shared", type=Path, default=SHARED)
    args = parser.parse_args()
    print("| data | answers a rater, median | one taste: named | half | own tastes: named | half |")
    print("|---|---|---|---|---|---|")
    for name in args.sets:
        if name in CHOICES and name != "rail" and not (args.shared / f"{name}.csv.gz").exists():
            continue
        print(row(name, [clean_labels(name, args.shared, seed) for seed in range(args.seeds)]), flush=True)
    print(f"\n{environment()}")


if __name__ == "__main__":
    main()
