"""What is attacked: the pairs of a file or of a generated world, and honest pairs that no fit sees."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from robust_rlhf_jax.audit import group_folds
from robust_rlhf_jax.audit.source import read_source
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.lab.pair_attacks import AttackedPairs
from robust_rlhf_jax.lab.sweeps.families import PRESETS
from robust_rlhf_jax.preferences import check_preferences, sample_preferences

# A source of this form is a generated world: "world:chain".
WORLD = "world:"
WORLDS = tuple(WORLD + name for name in PRESETS["quick"].families)
FOLDS = 5
FRESH = 20_000


class Problem(NamedTuple):
    """A source as pairs in random order of options.

    `source`: as it was given; `digest`: of all that follows, so that a figure names its data; `groups` [N]: dependent
    pairs, of which no fold splits any; `names` [k]; `fresh`: honest pairs of a world, None for a file, of which a part
    is held out.

    **Example:**

    >>> from robust_rlhf_jax.lab.benchmark import read_problem
    >>> problem = read_problem("rail", most=500, seed=0)
    >>> problem.name, problem.fresh is None, problem.parts(folds=2)
    ('rail', True, 2)
    """

    name: str
    source: str
    digest: str
    pairs: AttackedPairs
    groups: Int[np.ndarray, " N"]
    names: tuple[str, ...]
    fresh: AttackedPairs | None

    def parts(self, folds: int) -> int:
        """How many parts are held out, each once, where `folds` are asked for."""
        return 1 if self.fresh is not None else min(folds, FOLDS)


class Trial(NamedTuple):
    """Clean pairs to attack and fit (`train`), which nobody can write to, and honest ones that judge (`test`)."""

    train: AttackedPairs
    test: AttackedPairs


def read_problem(source: str, most: int, seed: int) -> Problem:
    """The problem of "rail", "arguments", a preference file, or "world:" and the name of a family of the quick sweep.

    `most`: pairs, drawn at random, that are used of a file.

    **Raises:** as `audit.read_source`; ValueError for a world that there is not, or fewer than 100 pairs.

    **Example:**

    >>> from robust_rlhf_jax.lab.benchmark import read_problem
    >>> problem = read_problem("rail", most=500, seed=0)
    >>> problem.pairs.x.shape, len(problem.digest)
    ((500, 4), 16)
    """
    if source.startswith(WORLD):
        return _of_world(source, seed)
    pairs = read_source(source).decided()
    if pairs.n_pairs < 100:
        raise ValueError(f"{source} has {pairs.n_pairs} pairs to fit: a benchmark needs 100 or more.")
    rng = np.random.default_rng(seed)
    if pairs.n_pairs > most:
        pairs = pairs.take(np.sort(rng.permutation(pairs.n_pairs)[:most]))
    groups = np.arange(pairs.n_pairs) if pairs.clusters is None else _numbered(pairs.clusters)
    check_preferences(pairs)
    return _problem(Path(source).name.split(".")[0], source, _turned(rng, pairs), groups, pairs.names, None)


def trials(problem: Problem, folds: int, seed: int) -> Iterator[Trial]:
    """The first `folds` of `FOLDS` parts of dependent pairs, each held out once; of a world its one fresh sample.

    All training sets have the size of the smallest, so that programs compile once.
    """
    if problem.fresh is not None:
        yield Trial(_read_only(problem.pairs), problem.fresh)
        return
    rng = np.random.default_rng(seed)
    fold_of = group_folds(rng, problem.groups, FOLDS)
    size = len(fold_of) - np.bincount(fold_of).max()
    for fold in range(problem.parts(folds)):
        train = np.sort(rng.permutation(np.flatnonzero(fold_of != fold))[:size])
        yield Trial(
            _read_only(rows_of(problem.pairs, train)), rows_of(problem.pairs, np.flatnonzero(fold_of == fold))
        )


def rows_of(pairs: AttackedPairs, rows: Int[np.ndarray, " m"]) -> AttackedPairs:
    """The pairs at `rows`, their options and their raters, numbered anew."""
    options = pairs.options.reshape(len(pairs.x), 2, -1)[rows].reshape(-1, pairs.options.shape[1])
    raters = None if pairs.raters is None else _numbered(pairs.raters[rows])
    return AttackedPairs(pairs.x[rows], pairs.labels[rows], options, raters)


def _read_only(pairs: AttackedPairs) -> AttackedPairs:
    """The pairs, made read-only: an attack that works in place would change what the next one sees."""
    for part in pairs:
        if part is not None:
            part.flags.writeable = False
    return pairs


def _turned(rng: np.random.Generator, pairs: Pairs) -> AttackedPairs:
    """Options in random order, as raters should have seen them; files list the preferred one first."""
    labels = rng.choice([-1.0, 1.0], pairs.n_pairs)
    chosen, rejected = (np.asarray(side, float) for side in (pairs.chosen, pairs.rejected))
    first, second = (np.where((labels == sign)[:, None], chosen, rejected) for sign in (1, -1))
    options = np.stack([first, second], axis=1).reshape(-1, chosen.shape[1])
    raters = None if pairs.raters is None else _numbered(pairs.raters)
    if raters is not None and raters.max() == 0:  # nobody to be compared with
        raters = None
    return AttackedPairs(first - second, labels, options, raters)


def _of_world(source: str, seed: int) -> Problem:
    if source not in WORLDS:
        raise ValueError(f"{source} is no world: they are {', '.join(WORLDS)}.")
    name, preset = source.removeprefix(WORLD), PRESETS["quick"]
    keys = jax.random.split(jax.random.key(seed), 3)
    mdp, behaviour = preset.every[name](keys[0])
    both = (behaviour, behaviour)
    data = [
        sample_preferences(key, mdp, n, behaviour=both)
        for key, n in zip(keys[1:], (preset.n_pairs, FRESH), strict=True)
    ]
    train, fresh = (
        _of_differences(np.asarray(d.differences(), float), np.asarray(d.labels, float)) for d in data
    )
    names = tuple(f"f{i}" for i in range(train.x.shape[1]))
    return _problem(source, source, train, np.arange(len(train.x)), names, fresh)


def _of_differences(x: Float[np.ndarray, "N k"], labels: Float[np.ndarray, " N"]) -> AttackedPairs:
    options = np.stack([x, np.zeros_like(x)], axis=1).reshape(-1, x.shape[1])
    return AttackedPairs(x, labels, options)


def _problem(
    name: str,
    source: str,
    pairs: AttackedPairs,
    groups: Int[np.ndarray, " N"],
    names: tuple[str, ...],
    fresh: AttackedPairs | None,
) -> Problem:
    content = [pairs.x.astype(np.float32), pairs.labels.astype(np.int8), groups.astype(np.int32)]
    digest = hashlib.sha256(b"".join(part.tobytes() for part in content)).hexdigest()[:16]
    return Problem(name, source, digest, pairs, groups, names, fresh)


def _numbered(names: np.ndarray) -> Int[np.ndarray, " N"]:
    return np.unique(names, return_inverse=True)[1].astype(np.int32).reshape(-1)
