"""How often is the audit's advice to drop pairs wrong, and how often is it missing?

    python benchmarks/drop_advice.py [--seeds 5] [--attacked-seeds 1] [--sizes 300 1000 4000] [--sets rail ...]
        [--out FILE] [--quick]

Each file (`advised_files.py`) is audited as the command does it, with one cross-validation. Plain fits to the file with
and without the pairs that the audit flags are scored on fresh pairs. A drop *harms* where accuracy on honest pairs
falls by more than .01; it is *missed* where it would have risen by more than .01, and the advice is another.
The stated interval is compared with the gain on honest pairs, and with what it is an interval of: the gain on pairs
that went through the same attack. Prints tables in Markdown; `--out` keeps every file's numbers. Exits with 1
where more than one honest file in a hundred is told to drop pairs.
"""

import argparse
import contextlib
import json
import sys
from pathlib import Path
from unittest import mock

import jax.numpy as jnp
import numpy as np
from advised_files import ATTACKS, SETS, AdvisedFile, file_of
from studies import SHARED, short

from robust_rlhf_jax.audit import advise, cross_fit, find, gain, hold_out
from robust_rlhf_jax.audit.config import AuditConfig
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards import plain_fit

SIZES, SHARES = (300, 1000, 4000), (0.05, 0.1)
# What a gain or a loss of accuracy must exceed to count.
MATTERS = 0.01
# Columns that the fits of every file are filled up to, with zeros, so that they share one program for each size.
COLUMNS = 40
# Shares of the pairs that a fit of the audit, and one of its gain, sees: what the smallest folds leave.
SEEN, SEEN_BY_GAIN = 0.7, 0.5


def widened(x):
    """`whiten`, with columns of zeros."""
    z, to_x, rank = WHITEN(x)
    more = max(COLUMNS - z.shape[1], 0)
    return np.pad(z, ((0, 0), (0, more))), np.pad(to_x, ((0, 0), (0, more))), rank


WHITEN = cross_fit.whiten


@contextlib.contextmanager
def one_width():
    with mock.patch.object(cross_fit, "whiten", widened), mock.patch.object(gain, "whiten", widened):
        yield


def measure(file: AdvisedFile) -> dict:
    """The advice on one file, its stated gain, and what dropping the flagged pairs does on fresh pairs."""
    pairs, n = file.pairs, file.pairs.n_pairs
    with one_width():
        findings = find(pairs, hold_out(pairs, repeats=1, most=int(SEEN * n)))
        advice = advise(findings, AuditConfig(repeats=1), most=int(SEEN_BY_GAIN * n))
    out = ~findings.verdicts.keep & pairs.fitted
    found = {"advice": advice.action, "flagged": int(out.sum())}
    if out.any():
        before, after = (fitted_plain(pairs, weights) for weights in (pairs.fitted, pairs.fitted & ~out))
        for name, x in zip(("honest", "same"), file.fresh(), strict=True):
            scores = [scored(x, theta) for theta in (before, after)]
            found[name] = [float(b - a) for a, b in zip(*scores, strict=True)]
    if advice.gain is not None:
        found |= {"stated": list(advice.gain.all_pairs), "unflagged": list(advice.gain.unflagged)}
    return found


def fitted_plain(pairs, weights) -> np.ndarray:
    z, to_x, _ = widened(jnp.asarray(pairs.preferred_differences()))
    ones = jnp.ones(len(z), z.dtype)
    return to_x @ np.asarray(plain_fit(z, ones, jnp.asarray(weights, z.dtype))[0])


def scored(x: np.ndarray, theta: np.ndarray) -> tuple[float, float]:
    """(accuracy, log-loss) on preferred differences."""
    margins = x @ theta
    return float(np.mean((np.sign(margins) + 1) / 2)), float(np.mean(np.logaddexp(0.0, -margins)))


def plan(sizes, sets, seeds: int, attacked_seeds: int):
    """(set, size, attack, ε, seed) of every file: programs are shared by files of a size."""
    for n in sizes:
        for name in sets:
            yield from ((name, n, None, 0.0, seed) for seed in range(seeds))
            for seed in range(attacked_seeds):
                yield from ((name, n, attack, share, seed) for attack in ATTACKS for share in SHARES)


HEAD = (
    "| attack | ε | files | with a flag | drop / ask | drop: mean gain, log-loss | harms | missed | "
    "interval covers: honest / same attack |\n" + "|---|---|---|---|---|---|---|---|---|"
)


def table(files: list[dict], by: tuple[str, str] = ("attack", "epsilon")) -> str:
    """One line for each value of two keys."""
    groups: dict[tuple, list[dict]] = {}
    for file in files:
        groups.setdefault(tuple(file[key] for key in by), []).append(file)
    lines = [line([f"{value:g}" if isinstance(value, float) else str(value) for value in key], group)
             for key, group in groups.items()]  # fmt: skip
    return "\n".join(
        [HEAD.replace("| attack | ε |", f"| {' | '.join(by)} |").replace("epsilon", "ε"), *lines]
    )


def line(key: list[str], group: list[dict]) -> str:
    dropped = [file for file in group if file["advice"] == "drop"]
    asked = sum(file["advice"] == "ask" for file in group)
    flagged = [file for file in group if file["flagged"]]
    means = [float(np.mean([file["honest"][i] for file in dropped])) for i in (0, 1)] if dropped else []
    said = f"{signed(means[0])}, {signed(means[1])}" if dropped else "–"
    harms = f"{sum(file['honest'][0] < -MATTERS for file in dropped)} of {len(dropped)}"
    missed = sum(file["honest"][0] > MATTERS for file in flagged if file["advice"] != "drop")
    covered = " / ".join(coverage(group, name) for name in ("honest", "same"))
    cells = [*key, len(group), len(flagged), f"{len(dropped)} / {asked}", said, harms, missed, covered]
    return "| " + " | ".join(map(str, cells)) + " |"


def coverage(group: list[dict], name: str) -> str:
    """How many of the stated intervals contain the gain on fresh pairs."""
    stated = [file for file in group if "stated" in file]
    within = sum(file["stated"][1] <= file[name][0] <= file["stated"][2] for file in stated)
    return f"{within} of {len(stated)}" if stated else "–"


def signed(value: float) -> str:
    return ("+" if value >= 0 else "−") + short(abs(value))


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, help="honest files of each set and size")
    parser.add_argument(
        "--attacked-seeds", type=int, default=1, help="files of each attack, share, set and size"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder of the sets that are not bundled")
    parser.add_argument("--out", type=Path, help="file for the numbers; those in it are not measured again")
    parser.add_argument("--quick", action="store_true", help="one size, two sets, one seed")
    given = parser.parse_args(words)
    if given.quick:
        given.sizes, given.sets, given.seeds = [300], ["rail", "texts"], 1
    files = measured(given)
    print(report(files))
    honest = [file for file in files if file["attack"] == "none"]
    return int(sum(file["advice"] == "drop" for file in honest) > 0.01 * len(honest))


def measured(given: argparse.Namespace) -> list[dict]:
    """The numbers of every file of the plan; those that `--out` has are not measured again."""
    known = {}
    if given.out is not None and given.out.exists():
        known = {key_of(file): file for file in json.loads(given.out.read_text(encoding="utf-8"))}
    files = []
    sets = at_hand(given.sets, given.shared)
    for name, n, attack, epsilon, seed in plan(given.sizes, sets, given.seeds, given.attacked_seeds):
        key = {"set": name, "size": n, "attack": attack or "none", "epsilon": epsilon, "seed": seed}
        found = known.get(key_of(key))
        if found is None:
            file = file_of(name, n, attack, epsilon, seed, given.shared)
            found = None if file is None else key | measure(file)
        if found is not None:
            files.append(known.setdefault(key_of(key), found))
            if given.out is not None:
                given.out.write_text(json.dumps(list(known.values())), encoding="utf-8")
    return files


def key_of(file: dict) -> tuple:
    return tuple(file[name] for name in ("set", "size", "attack", "epsilon", "seed"))


def at_hand(sets, shared: Path) -> list[str]:
    """The sets that are bundled, made, or lie in `shared`; a sentence on each that does not."""
    tables = {"electricity", "swissmetro", "cars_us", "taxes"}
    missing = [name for name in sets if name in tables and not (shared / f"{name}.csv.gz").exists()]
    for name in missing:
        print(f"{name} is skipped: {shared / name}.csv.gz does not exist.")
    return [name for name in sets if name not in missing]


def report(files: list[dict]) -> str:
    """Tables by attack, by size and by set, the other rule, and where and when they were measured."""
    facts = environment()
    parts = [
        table(files),
        table(files, ("size", "attack")),
        table(files, ("set", "attack")),
        other_rule(files),
    ]
    return "\n\n".join(
        [
            *parts,
            f"{facts['date']}, {facts['cores']}-core {facts['platform']}, jax {facts['versions']['jax']}",
        ]
    )


def other_rule(files: list[dict]) -> str:
    """What the advice would be if held-out pairs without a flag decided."""
    stated = [file for file in files if "stated" in file]
    said = []
    for name, words in (("stated", "all held-out pairs"), ("unflagged", "held-out pairs without a flag")):
        drops = [file["honest"][0] for file in stated if file[name][1] > 0]
        kept = [file["honest"][0] for file in stated if file[name][1] <= 0]
        harms, missed = sum(g < -MATTERS for g in drops), sum(g > MATTERS for g in kept)
        said.append(f"{words} decide: {len(drops)} drops, {harms} harm, {missed} missed")
    return f"Of {len(stated)} files with a stated gain, where " + "; where ".join(said) + "."


if __name__ == "__main__":
    sys.exit(main())
