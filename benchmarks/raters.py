"""Which raters are bad, what does leaving them out give back, and is an honest minority left alone?

    python benchmarks/raters.py [--sets rail ...] [--kinds random ...] [--seeds 1] [--quick]

A fifth of the people of each set is held out. Among the others 5, 10 or 20 % are replaced by bots (`BOTS`), or a tenth
by an honest minority whose strongest feature is reversed. Who was shown first and which option is longer is random and
known. Plain maximum likelihood and `fit_weighed` are scored on the clean pairs of people held out. Constants were
chosen on rail, electricity and the worlds. Prints tables in Markdown.
"""

import argparse
from pathlib import Path

import numpy as np
from pair_sets import CHOICES
from rater_files import JUDGED, WORLDS, caught, divided, named_bad, rates_of, replaced
from studies import LEVELS, SHARED, short

from robust_rlhf_jax import Pairs
from robust_rlhf_jax.lab.attacks.rater_bots import BOTS
from robust_rlhf_jax.raters import fit_weighed
from robust_rlhf_jax.rewards import plain_fit

# The loss that must be there to speak of a share of it.
LOSS = 0.002


def scores(theta, z):
    """(accuracy, log-loss) of σ(θᵀz) on clean pairs, whose column of lengths is 0."""
    margins = z @ np.asarray(theta, float)[: z.shape[1]]
    return np.mean(margins > 0) + 0.5 * np.mean(margins == 0), np.mean(np.logaddexp(0, -margins))


def share_of(named, those):
    return np.mean(named[those]) if those.any() else np.nan


def cells(name, shared, seed, quick, kinds):
    """A row of numbers for each kind and share of bad raters."""
    train, of, test = divided(name, shared, seed)
    clean, _ = plain_fit(np.float32(train), np.ones(len(train), np.float32))
    theta = np.array(clean, float)
    strongest = np.argmax(np.abs(theta) * train.std(axis=0))
    theta[strongest] *= -1
    levels = (0.1,) if quick else LEVELS
    cases = [("none", 0.0), *((kind, share) for kind in BOTS for share in levels), ("minority", 0.1)]
    cases = [case for case in cases if case[0] in ("none", *kinds)]
    base = None
    for kind, share in cases:
        rated = replaced(train, of, kind, share, seed, theta)
        pairs = Pairs(np.float32(rated.z), np.zeros_like(rated.z, np.float32))
        plain, _ = plain_fit(np.float32(rated.z), np.ones(len(of), np.float32))
        found = fit_weighed(pairs, of, chose_first=rated.chose_first, chose_longer=rated.chose_longer)
        kinds = np.array([row.kind for row in found.table.rows])
        named, pairs_each = named_bad(found.table), np.bincount(of)
        one, two = scores(plain, test), scores(found.theta, test)
        base = one if base is None else base
        yield {
            "kind": kind, "share": share, "plain": one, "weighed": two,
            "back": (one[1] - two[1]) / (one[1] - base[1]) if one[1] - base[1] > LOSS else np.nan,
            "all": caught(named, rated.bad), "judged": caught(*(v[pairs_each >= JUDGED] for v in (named, rated.bad))),
            "bots": np.mean(named[rated.bad]) if rated.bad.any() else np.mean(named),
            "other": share_of(kinds == "other taste", rated.bad),
            "rest": share_of(kinds == "other taste", ~rated.bad),
        }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=[*WORLDS, *CHOICES])
    parser.add_argument("--kinds", nargs="+", default=[*BOTS, "minority"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--quick", action="store_true", help="a tenth of the raters alone")
    args = parser.parse_args()
    print(
        "| data | bad raters | share | plain | weighed | loss back | precision / recall, ≥ 15 pairs (bad) | of all |"
    )
    print("|---|---|---|---|---|---|---|---|")
    minorities = []
    for name in args.sets:
        if name in CHOICES and name != "rail" and not (args.shared / f"{name}.csv.gz").exists():
            continue
        runs = [list(cells(name, args.shared, seed, args.quick, args.kinds)) for seed in range(args.seeds)]
        for same in zip(*runs, strict=True):
            plain, weighed = (
                " / ".join(map(short, np.mean([c[w] for c in same], axis=0))) for w in ("plain", "weighed")
            )
            back = np.mean([c["back"] for c in same])
            judged, every = (sum(c[w] for c in same) for w in ("judged", "all"))
            caught_of = " | ".join(f"{rates_of(counts)} ({counts[2]})" for counts in (judged, every))
            if same[0]["kind"] == "minority":
                bots, other, rest = (short(np.mean([c[w] for c in same])) for w in ("bots", "other", "rest"))
                minorities.append(f"| {name} | {bots} | {other} | {rest} | {plain} | {weighed} |")
                continue
            print(
                f"| {name} | {same[0]['kind']} | {same[0]['share']:.2f} | {plain} | {weighed} | "
                f"{'–' if np.isnan(back) else f'{back:.0%}'} | {caught_of} |",
                flush=True,
            )
    print(
        "\n| data | minority called bots | named other taste | of all others named that | plain | weighed |"
    )
    print("|---|---|---|---|---|---|")
    print("\n".join(minorities))


if __name__ == "__main__":
    main()
