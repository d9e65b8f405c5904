"""Files of votes on arguments for the study of cleaning: what is audited, held back or tested, and how it is corrupted.

A seed parts the arguments of each topic: pairs of two training arguments are audited, pairs of two test arguments test,
and mixed pairs are not used, so that no argument is in both. It parts the raters, too: the votes of some are audited,
those of the others on the same pairs are held back to check the audit.
"""

import collections
import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from robust_rlhf_jax.io.loading import read_pairs
from robust_rlhf_jax.preferences import arguments_file

TRAINING = 0.6
AUDITED = 0.6
# Decided votes in each audited file: one number, so that all fits share one program.
VOTES = 2000
# Decided votes of others without which their majority checks nothing.
FEWEST_CHECKS = 2
SIDES = {1: "a", -1: "b", 0: "tie"}
FLIPPED = {"a": "b", "b": "a"}
BOTS = {
    "first": lambda rng, row: "a",
    "longer": lambda rng, row: "a" if len(row["response_a"]) >= len(row["response_b"]) else "b",
    "random": lambda rng, row: str(rng.choice(["a", "b"])),
}
KINDS = ("flips", *(f"bots: {name}" for name in BOTS))


class Votes(NamedTuple):
    """`audited`: rows to be written; `majority`: of held-back votes, +1 for a, −1 for b, by pair; `test`: the pairs of
    other arguments with the majority of all their votes."""

    audited: list[dict]
    majority: dict[tuple, int]
    test: dict[tuple, int]


@cache
def all_rows() -> tuple[dict, ...]:
    """The bundled votes, as the file has them."""
    pairs = read_pairs(arguments_file())
    assert pairs.texts is not None
    assert pairs.raters is not None
    columns = (
        pairs.texts.prompt,
        pairs.texts.chosen,
        pairs.texts.rejected,
        pairs.swapped,
        pairs.labels,
        pairs.raters,
    )
    rows = zip(*columns, strict=True)
    return tuple(_row(p, (r, c) if turned else (c, r), int(o), str(who)) for p, c, r, turned, o, who in rows)


def _row(prompt: str, sides: tuple[str, str], label: int, rater: str) -> dict:
    return {
        "prompt": prompt,
        "response_a": sides[0],
        "response_b": sides[1],
        "label": SIDES[label],
        "rater": rater,
    }


def pair_of(row: dict) -> tuple[str, str, str]:
    return row["prompt"], row["response_a"], row["response_b"]


def majorities(rows: list[dict], fewest: int) -> dict[tuple, int]:
    """+1 for a, −1 for b where more decided votes name it, and at least `fewest` are decided."""
    counts: dict[tuple, collections.Counter] = collections.defaultdict(collections.Counter)
    for row in rows:
        counts[pair_of(row)][row["label"]] += 1
    decided = {pair: (count["a"], count["b"]) for pair, count in counts.items()}
    return {pair: 1 if a > b else -1 for pair, (a, b) in decided.items() if a != b and a + b >= fewest}


def draw(seed: int, votes: int = VOTES) -> Votes:
    """What the seed audits, holds back and tests; of the audited raters all ties and `votes` decided votes."""
    rng = np.random.default_rng(seed)
    rows = all_rows()
    training = _drawn(
        rng, {(row["prompt"], row[side]) for row in rows for side in ("response_a", "response_b")}, TRAINING
    )
    raters = _drawn(rng, {row["rater"] for row in rows}, AUDITED)
    inside = [sum((row["prompt"], row[s]) in training for s in ("response_a", "response_b")) for row in rows]
    pool = [row for row, count in zip(rows, inside, strict=True) if count == 2]
    audited = [row for row in pool if row["rater"] in raters]
    decided = [i for i, row in enumerate(audited) if row["label"] != "tie"]
    kept = set(rng.permutation(decided)[:votes].tolist())
    return Votes(
        [row for i, row in enumerate(audited) if row["label"] == "tie" or i in kept],
        majorities([row for row in pool if row["rater"] not in raters], FEWEST_CHECKS),
        majorities([row for row, count in zip(rows, inside, strict=True) if count == 0], 1),
    )


def _drawn(rng, names: set, share: float) -> set:
    """A share of `names`; of texts, which come as (topic, text), the same share of each topic."""
    topics: dict = collections.defaultdict(list)
    for name in sorted(names):
        topics[name[0] if isinstance(name, tuple) else ""].append(name)
    return {
        names[i]
        for names in topics.values()
        for i in rng.permutation(len(names))[: round(share * len(names))]
    }


def corrupt(
    seed: int, rows: list[dict], kind: str, share: float
) -> tuple[list[dict], Bool[np.ndarray, " N"]]:
    """(rows with corrupted votes, which votes are not what the rater said).

    "flips" turns the share of the decided votes. "bots: first" and so on turn raters into bots, drawn until they have
    cast the share of all votes; a bot votes on what its rater voted on, and never a tie.
    """
    rng = np.random.default_rng([seed, 1])
    turned = [dict(row) for row in rows]
    if kind == "flips":
        decided = [i for i, row in enumerate(rows) if row["label"] != "tie"]
        for i in rng.permutation(decided)[: round(share * len(decided))]:
            turned[i]["label"] = FLIPPED[rows[i]["label"]]
    else:
        bots = _bots(rng, rows, share)
        for row in turned:
            if row["rater"] in bots:
                row["label"] = BOTS[kind.removeprefix("bots: ")](rng, row)
    return turned, np.array([new["label"] != old["label"] for new, old in zip(turned, rows, strict=True)])


def _bots(rng, rows: list[dict], share: float) -> set[str]:
    """Raters who cast the share of the votes between them."""
    cast = collections.Counter(row["rater"] for row in rows)
    left, bots = round(share * len(rows)), set()
    for rater in rng.permutation(sorted(cast)).tolist():
        if cast[rater] <= left:
            bots.add(rater)
            left -= cast[rater]
    return bots


def write(path: Path, rows: list[dict]) -> None:
    """As JSON lines."""
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n", encoding="utf-8")


def contradicted(rows: list[dict], majority: dict[tuple, int]) -> Float[np.ndarray, " N"]:
    """1 where a decided vote contradicts the held-back majority, 0 where it agrees, NaN where nobody can say."""
    said = {"a": 1, "b": -1}
    found = [(said.get(row["label"]), majority.get(pair_of(row))) for row in rows]
    return np.array([np.nan if None in pair else float(pair[0] != pair[1]) for pair in found])
