"""Preferences over generated texts, honest but for faults of a known kind in a known share of the pairs.

    python benchmarks/text_faults.py pairs.jsonl [--pairs 2000] [--fault label] [--share 0.05] [--seed 0]

A response is a few sentences of several kinds; a reward on the kinds decides, by Bradley–Terry, which one a rater
prefers. Nothing is downloaded, and the same arguments give the same file.
"""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

THINGS = ("bicycle", "kettle", "garden", "budget", "violin", "router", "bread oven", "hiking tent", "old camera",
          "wool coat", "chess opening", "sourdough", "printer", "tax form", "window frame", "guitar")  # fmt: skip
VERBS = ("repair", "choose", "clean", "store", "compare", "improve", "explain", "replace", "measure", "plan")
PARTS = {
    "helpful": ("First {v} the part that moves, then check the rest.", "A good way to {v} a {t} is to begin small.",
                "You can {v} the {t} in three short steps.", "Here is what works: prepare, {v}, and test."),
    "precise": ("Use exactly two turns of the screw on the {t}.", "The {t} needs forty minutes at room temperature.",
                "Measure the {t} twice and write both numbers down.", "Tighten it to nine newton metres, no more."),
    "polite": ("Happy to help with your {t}.", "Tell me if the {t} looks different.", "Thank you for asking about it.",
               "I hope your {t} works well soon."),
    "vague": ("It depends on many things.", "Some people {v} a {t} and some do not.", "There are many options around.",
              "The {t} is a complicated matter."),
    "rude": ("Anyone should know how to {v} a {t}.", "That is a silly question.", "Read the manual yourself next time.",
             "Stop wasting time on your {t}."),
    "wrong": ("Pour cold water into the {t} while it runs.", "A {t} never needs any care at all.",
              "Always {v} it with a hammer.", "Remove all screws and throw them away."),
    "filler": ("The {t} has a long history.", "Many shops sell a {t}.", "Colours differ between makers.",
               "My neighbour has a {t} too."),
}  # fmt: skip
KINDS = tuple(PARTS)
REWARD = np.array([1.6, 1.2, 0.6, -1.0, -1.8, -1.6, 0.0])
RATERS = 20
FAULTS = ("label", "off_manifold", "identical", "both_orders", "near_duplicates", "shortcut", "rater", "tie")


class TextSet(NamedTuple):
    """`rows`: of a preference file, in TRL's columns; `faulty` [N]: those that the fault touched; `twin` [N]: the row
    that a copy was made of, or −1.
    """

    rows: list[dict]
    faulty: np.ndarray
    twin: np.ndarray


def text_set(n: int, fault: str | None = None, share: float = 0.0, seed: int = 0) -> TextSet:
    """`n` honest pairs, then `fault` in ⌊share·n⌋ of them; copies come last, so that a set may be longer than `n`."""
    rng = np.random.default_rng([seed, 2024])
    rows = [_pair(rng, i) for i in range(n)]
    faulty, twin = np.zeros(n, bool), np.full(n, -1)
    count = int(share * n)
    if fault is None or not count:
        return TextSet(rows, faulty, twin)
    picked = rng.permutation(n)[:count]
    if fault == "rater":
        bad = {f"r{i}" for i in range(max(1, round(share * RATERS)))}
        picked = np.array([i for i, row in enumerate(rows) if row["rater"] in bad])
    if fault in ("both_orders", "near_duplicates"):
        copies = [_reversed(rng, rows[i], fault, n + k) for k, i in enumerate(picked)]
        return TextSet(rows + copies, np.append(faulty, np.ones(count, bool)), np.append(twin, picked))
    for i in picked:
        _FAULTS_OF[fault](rng, rows[i])
    faulty[picked] = True
    return TextSet(rows, faulty, twin)


def _pair(rng, i: int) -> dict:
    thing, verb = rng.choice(THINGS), rng.choice(VERBS)
    sides = [_response(rng, thing, verb) for _ in range(2)]
    margin = (sides[0][1] - sides[1][1]) @ REWARD
    first = rng.uniform() < 1 / (1 + np.exp(-margin))
    chosen, rejected = sides if first else sides[::-1]
    return {
        "id": f"pair-{i}",
        "prompt": f"How do I {verb} my {thing}? (case {i})",
        "chosen": chosen[0],
        "rejected": rejected[0],
        "rater": f"r{rng.integers(RATERS)}",
        "label": "chosen",
    }


def _response(rng, thing: str, verb: str) -> tuple[str, np.ndarray]:
    kinds = rng.choice(len(KINDS), rng.integers(3, 9), p=rng.dirichlet(np.ones(len(KINDS))))
    parts = [rng.choice(PARTS[KINDS[k]]).format(t=thing, v=verb) for k in kinds]
    return " ".join(parts), np.bincount(kinds, minlength=len(KINDS))


def _flip(rng, row):
    row["chosen"], row["rejected"] = row["rejected"], row["chosen"]


def _plant(rng, row):
    row["chosen"] = " ".join(f"{word:x}" for word in rng.integers(1 << 40, 1 << 60, 300)) + " !!!" * 50


def _repeat(rng, row):
    row["rejected"] = row["chosen"]


def _longer_wins(rng, row):
    if len(row["rejected"]) > len(row["chosen"]):
        _flip(rng, row)


def _tie(rng, row):
    row["label"] = "tie"


_FAULTS_OF = {"label": _flip, "rater": _flip, "off_manifold": _plant, "identical": _repeat, "shortcut": _longer_wins,
          "tie": _tie}  # fmt: skip


def _reversed(rng, row: dict, fault: str, i: int) -> dict:
    copy = row | {"id": f"pair-{i}", "chosen": row["rejected"], "rejected": row["chosen"]}
    if fault == "near_duplicates":
        copy |= {side: f"{copy[side]} Cheers." for side in ("chosen", "rejected")}
    return copy


def write(path: Path, rows: list[dict]) -> None:
    """As JSON lines."""
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--fault", choices=FAULTS)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    made = text_set(given.pairs, given.fault, given.share, given.seed)
    write(given.path, made.rows)
    print(f"{len(made.rows)} pairs, {int(made.faulty.sum())} of them faulty")


if __name__ == "__main__":
    main()
