"""What each constant of the mixture of raters decides: `python benchmarks/raters_constants.py [--sets rail …]`.

Every constant of `raters/mixture.py` is halved and doubled in turn, the others as they are. A tenth of the raters are
replaced as in `raters.py`: by random bots, by contrary ones, by an honest minority; or by nobody. Prints a table in
Markdown, all sets together: precision / recall of either kind of bot, what the weighed fit's log-loss is above plain's
(mean over sets and kinds), which share of the minority is called bots and named another taste, and how many raters are
called bots where none is one.
"""

import argparse
from pathlib import Path

import jax
import numpy as np
from pair_sets import CHOICES
from rater_files import WORLDS, rates_of
from raters import cells
from rich.progress import track
from studies import SHARED, short

from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.raters import mixture

CONSTANTS = (
    "FIRST_SPREAD",
    "ENOUGH",
    "CYCLES",
    "PRIOR_SPREAD",
    "SEEN_SPREAD",
    "WEAK",
    "SEEN_OTHER",
    "SEEN_BAD",
)
KINDS = ("random", "contrary", "minority")


def row(sets, shared):
    """The cells of one row of the table, with the constants as they are now."""
    jax.clear_caches()  # constants are part of the programs
    every = [cell for name in sets for cell in cells(name, shared, 0, True, KINDS)]
    of_kind = {kind: [cell for cell in every if cell["kind"] == kind] for kind in ("none", *KINDS)}
    found = [rates_of(sum(cell["all"] for cell in of_kind[kind])) for kind in ("random", "contrary")]
    above = np.mean([cell["weighed"][1] - cell["plain"][1] for cell in every])
    bots, other = (np.mean([cell[part] for cell in of_kind["minority"]]) for part in ("bots", "other"))
    honest = sum(cell["all"][1] for cell in of_kind["none"])
    return [*found, f"{above:+.4f}", short(bots), short(other), str(honest)]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=["many tastes", "rail", "electricity"])
    parser.add_argument("--constants", nargs="+", default=CONSTANTS, choices=CONSTANTS)
    parser.add_argument("--shared", type=Path, default=SHARED)
    args = parser.parse_args()
    sets = [n for n in args.sets if n in (*WORLDS, "rail") or (args.shared / f"{n}.csv.gz").exists()]
    unknown = set(sets) - {*WORLDS, *CHOICES}
    if unknown:
        raise SystemExit(f"unknown sets: {', '.join(sorted(unknown))}")
    print(
        "| constant | random | contrary | log-loss above plain | minority: bots | other taste | honest: bots |"
    )
    print("|---|---|---|---|---|---|---|")
    print(f"| as it is | {' | '.join(row(sets, args.shared))} |", flush=True)
    changes = [(name, times) for name in args.constants for times in (0.5, 2.0)]
    for name, times in track(changes, "constants"):
        usual = getattr(mixture, name)
        changed = type(usual)(times * usual)
        setattr(mixture, name, changed)
        print(f"| `{name}` {usual:g} → {changed:g} | {' | '.join(row(sets, args.shared))} |", flush=True)
        setattr(mixture, name, usual)
    print(f"\n{', '.join(sets)}. {environment()}")


if __name__ == "__main__":
    main()
