"""Files of pairs, honest or corrupted, with fresh pairs on which dropping some of them can be scored.

Choices of people and worlds (`pair_sets.py`) are attacked as differences (`lab/pair_attacks/`), generated texts
(`text_faults.py`) as texts. Every file comes with honest pairs and with pairs that went through the same attack.
"""

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from pair_sets import Trial, trials
from real_sets import fitted
from text_faults import text_set, write

from robust_rlhf_jax.io import Columns, Pairs, load_pairs
from robust_rlhf_jax.lab.pair_attacks import PAIR_ATTACKS, AttackedPairs
from robust_rlhf_jax.lab.pair_attacks.base import count

SETS = ("rail", "electricity", "swissmetro", "cars_us", "taxes", "delivery", "random", "texts")
# Fresh pairs of generated texts.
FRESH = 2000
# Folds of people (five each time) or worlds that seeds choose from.
REPEATS, WORLDS = 2, 10


def random(rng, pairs: AttackedPairs, epsilon: float, theta) -> AttackedPairs:
    """Any labels, flipped."""
    at = rng.permutation(len(pairs.labels))[: count(pairs, epsilon)]
    labels = pairs.labels.copy()
    labels[at] *= -1
    return pairs._replace(labels=labels)


ATTACKS: dict[str, Callable[..., AttackedPairs]] = {
    "random": random,
    **{name: PAIR_ATTACKS[name] for name in ("confident", "far", "near_varied", "mimicry")},
}
# What comes nearest to an attack in texts: planted nonsense, twins and copies with the opposite label.
IN_TEXTS = {
    "random": "label",
    "far": "off_manifold",
    "near_varied": "near_duplicates",
    "mimicry": "both_orders",
}


class AdvisedFile(NamedTuple):
    """`pairs` to be audited; `fresh()`: φ(chosen) − φ(rejected) of honest pairs, and of pairs under the same attack."""

    pairs: Pairs
    fresh: Callable[[], tuple[Float[np.ndarray, "M k"], Float[np.ndarray, "M k"]]]


def file_of(
    name: str, n: int, attack: str | None, epsilon: float, seed: int, shared: Path
) -> AdvisedFile | None:
    """A file of `n` pairs of the set; None where the set has fewer."""
    if name == "texts":
        return _of_texts(n, attack, epsilon, seed)
    trial = _trial(name, seed, shared)
    rng = np.random.default_rng([seed, n])
    rows = _rows(rng, trial.people, len(trial.x), n)
    if len(rows) < n:
        return None
    x, labels = trial.x[rows], trial.labels[rows]
    theta = fitted(x, labels)
    train = _attacked(rng, AttackedPairs(x, labels, trial.options), attack, epsilon, theta)
    groups = np.arange(n) if trial.people is None else trial.people[rows]

    def fresh():
        honest = AttackedPairs(trial.test_x, trial.test_labels, trial.options)
        same = _attacked(rng, honest, attack, epsilon, theta)
        return honest.x * honest.labels[:, None], same.x * same.labels[:, None]

    return AdvisedFile(Pairs.of_differences(train.x.astype(np.float32), train.labels, groups=groups), fresh)


@cache
def _trial(name: str, seed: int, shared: Path) -> Trial:
    made = trials(name, shared, REPEATS, WORLDS)
    return made[seed % len(made)]()


def _rows(rng, people, n_rows: int, n: int) -> np.ndarray:
    """Rows of whole people, in random order, the last one cut."""
    if people is None:
        return rng.permutation(n_rows)[:n]
    rank = rng.permutation(people.max() + 1)
    return np.argsort(rank[people], kind="stable")[:n]


def _attacked(rng, pairs: AttackedPairs, attack: str | None, epsilon: float, theta) -> AttackedPairs:
    return pairs if attack is None else ATTACKS[attack](rng, pairs, epsilon, theta)


def _of_texts(n: int, attack: str | None, epsilon: float, seed: int) -> AdvisedFile:
    rows = _texts(n, attack, epsilon, seed)
    pairs = _read(rows)
    theta = fitted(pairs.preferred_differences(), np.ones(n))
    if attack == "confident":
        pairs = _read(_flipped(rows, pairs.preferred_differences() @ theta, epsilon))

    def fresh():
        honest = _differences(_texts(FRESH, None, 0.0, 1000 + seed), pairs)
        rows = _texts(FRESH, attack, epsilon, 1000 + seed)
        if attack == "confident":
            rows = _flipped(rows, honest @ theta, epsilon)
        return honest, _differences(rows, pairs)

    return AdvisedFile(pairs, fresh)


def _texts(n: int, attack: str | None, epsilon: float, seed: int) -> list[dict]:
    """Rows of `n` pairs, copies included; "confident" is not yet done."""
    fault = IN_TEXTS.get(attack or "")
    copies = int(epsilon * n) if fault in ("near_duplicates", "both_orders") else 0
    share = copies / (n - copies) if copies else epsilon
    return text_set(n - copies, fault, share + 1e-9, seed).rows


def _flipped(rows: list[dict], margins, epsilon: float) -> list[dict]:
    """The labels of largest margin, flipped."""
    found = list(rows)
    for i in np.argsort(-margins)[: int(epsilon * len(rows))]:
        found[i] = rows[i] | {"chosen": rows[i]["rejected"], "rejected": rows[i]["chosen"]}
    return found


def _read(rows: list[dict]) -> Pairs:
    """As the command reads them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pairs.jsonl")
        write(path, rows)
        return load_pairs(path, columns=Columns(label="label"))


def _differences(rows: list[dict], like: Pairs) -> np.ndarray:
    """φ(chosen) − φ(rejected) by the featuriser of another file."""
    assert like.featuriser is not None
    prompts, chosen, rejected = ([row[name] for row in rows] for name in ("prompt", "chosen", "rejected"))
    return like.featuriser.transform(prompts, chosen) - like.featuriser.transform(prompts, rejected)
