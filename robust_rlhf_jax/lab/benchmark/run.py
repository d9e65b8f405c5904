"""All cells of a benchmark: each file, held-out part, attack and ε, and every estimator on what the attack left."""

import contextlib
import dataclasses
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax.lab.pair_attacks import AttackedPairs, by_raters
from robust_rlhf_jax.lab.pair_attacks.base import count
from robust_rlhf_jax.lab.sweeps.store import MemoryStore, Store, part_hash
from robust_rlhf_jax.rewards import plain_fit

from .config import CLEAN, BenchmarkConfig
from .contestant import Contestant
from .failures import reason_of
from .problems import Problem, Trial, trials
from .scores import backdoor_score, detection_scores, prediction_scores

Attacks = dict[str, Callable[..., AttackedPairs]]
Row = dict[str, Any]
# Raise it when cells come to mean something else, and finished parts are computed anew.
FORMAT = 3


class Part(NamedTuple):
    """The cells of one problem, held-out part and attack: all ε, all estimators."""

    problem: Problem
    fold: int
    attack: str
    estimators: tuple[str, ...]


def parts_of(
    problems: list[Problem], config: BenchmarkConfig, attacks: Attacks, known: dict[str, Contestant]
) -> list[Part]:
    """All parts, those of one problem together. Where raters are not told apart, none are replaced or judged."""
    found = []
    for problem in problems:
        rated = problem.pairs.raters is not None
        wanted = [name for name in config.attacks or attacks if name != CLEAN]
        names = [name for name in wanted if rated or not by_raters(name)]
        who = tuple(n for n in config.estimators or known if rated or not known[n].needs_raters)
        if not who or (wanted and not names):
            raise ValueError(
                f"{problem.name} does not tell raters apart, and all attacks or all estimators asked for need it."
            )
        found += [
            Part(problem, fold, name, who)
            for fold in range(problem.parts(config.folds))
            for name in (CLEAN, *names)
        ]
    return found


def left_out(
    problem: Problem, config: BenchmarkConfig, attacks: Attacks, known: dict[str, Contestant]
) -> str:
    """The sentence on what is not run on this file, and why; "" where all is."""
    if problem.pairs.raters is not None:
        return ""
    names = [name for name in config.attacks or attacks if by_raters(name)]
    names += [name for name in config.estimators or known if known[name].needs_raters]
    return f"Left out, since the file does not tell raters apart: {', '.join(names)}." if names else ""


def cells_of(parts: list[Part], config: BenchmarkConfig) -> int:
    return sum(len(part.estimators) for part in parts) * len(config.epsilons)


def run_benchmark(
    problems: list[Problem],
    config: BenchmarkConfig,
    attacks: Attacks,
    known: dict[str, Contestant],
    on_batch: Callable[..., None] = lambda *_: None,
    store: Store | None = None,
    plugs: str = "",
) -> list[Row]:
    """One row for each file, held-out part, attack, ε and estimator, in that order.

    On honest pairs (attack "none") every estimator is told each ε all the same: what a guess of ε costs.

    **Arguments:** `attacks`, `known`: what the configuration may name; `on_batch(n, free)`: called after n cells, of
    which `free` were there already; `store`: of finished parts; `plugs`: a digest of the files of users that take part.

    **Raises:** ValueError in one sentence for an attack or an estimator that fails, or where ε of the training pairs
    is less than one of them, so that nothing would be attacked.

    **Example:**

    >>> from robust_rlhf_jax.lab import benchmark
    >>> config = benchmark.BenchmarkConfig(("near",), (0.1,), ("maximum_likelihood",), pairs=400)
    >>> rail = benchmark.read_problem("rail", config.pairs, seed=0)
    >>> rows = benchmark.run_benchmark([rail], config, benchmark.PAIR_ATTACKS, benchmark.contestants())
    >>> [row["attack"] for row in rows], rows[1]["accuracy"] < rows[0]["accuracy"]
    (['none', 'near'], True)
    """
    store = MemoryStore() if store is None else store
    rows: list[Row] = []
    parts = parts_of(problems, config, attacks, known)
    of_problem = {p.digest: list(trials(p, config.folds, config.seed)) for p in problems}
    for part in parts:
        train = of_problem[part.problem.digest][part.fold].train
        if part.attack != CLEAN and count(train, min(config.epsilons)) < 1:
            raise ValueError(
                f"ε = {min(config.epsilons):g} of the {len(train.labels):,} training pairs of {part.problem.name} is "
                "less than one pair: give a larger ε."
            )
    last = parts[0].problem.digest if parts else ""
    for part in parts:
        if part.problem.digest != last:
            # Nothing of another shape is called again, and a process may hold 65,530 maps of memory.
            jax.clear_caches()
            last = part.problem.digest
        name = _name(part, config, plugs)
        done = store.read(name)
        if done is None:
            done = list(_cells(part, of_problem[part.problem.digest][part.fold], config, attacks, known))
            store.write(name, done)
            on_batch(len(done))
        else:
            on_batch(len(done), len(done))
        rows += done
    return rows


@contextlib.contextmanager
def _named(who: str) -> Iterator[None]:
    """A block whose errors say whose they are."""
    try:
        yield
    except Exception as error:
        raise ValueError(f"{who} failed: {reason_of(error)}") from error


def clean_theta(trial: Trial) -> np.ndarray:
    """What the attacks know: the plain fit to the honest pairs."""
    x, labels = (jnp.asarray(values, jnp.float32) for values in (trial.train.x, trial.train.labels))
    return np.asarray(plain_fit(x, labels)[0], float)


def attack_on(
    attacks: Attacks, name: str, trial: Trial, epsilon: float, theta: np.ndarray, seed: int, fold: int
) -> AttackedPairs:
    """What an attack leaves; it draws the same whatever others are run beside it.

    **Raises:** ValueError for an attack that changed more than ⌊εN⌋ pairs, or made numbers that are not finite.
    """
    clean = trial.train
    if name == CLEAN:
        return clean
    rng = np.random.default_rng([seed, fold, zlib.crc32(name.encode())])
    with _named(f"the attack {name}"):
        seen = attacks[name](rng, clean, epsilon, theta)
        if not isinstance(seen, AttackedPairs):
            raise TypeError(f"it gave a {type(seen).__name__}: return pairs._replace(…).")
        seen = seen._replace(x=np.asarray(seen.x, float), labels=np.asarray(seen.labels, float))
        shapes = [np.shape(part) for part in seen[:2]]
    if shapes != [clean.x.shape, clean.labels.shape]:
        raise ValueError(f"the attack {name} gave rows of shape {shapes[0]} and labels of shape {shapes[1]}.")
    if not np.array_equal(np.asarray(seen.raters), np.asarray(clean.raters)):
        raise ValueError(f"the attack {name} changed who labelled the pairs: change x and labels alone.")
    if np.sum(seen.changed(clean)) > count(clean, epsilon):
        raise ValueError(f"the attack {name} changed more than ε = {epsilon:g} of the pairs.")
    mark = np.zeros(clean.x.shape[1]) if seen.mark is None else seen.mark
    if np.shape(mark) != clean.x.shape[1:] or not np.all(np.isfinite(mark)):
        raise ValueError(f"the attack {name} gave another mark than one finite number for each feature.")
    if not np.all(np.isfinite(seen.x)) or not np.all(np.abs(seen.labels) == 1):
        raise ValueError(
            f"the attack {name} made features that are not finite, or labels other than -1 and 1."
        )
    return seen


def _name(part: Part, config: BenchmarkConfig, plugs: str) -> str:
    p = part.problem
    settings = dataclasses.asdict(config) | {"attacks": part.attack, "estimators": part.estimators}
    return part_hash("benchmark", FORMAT, plugs, p.name, p.digest, part.fold, settings)


def _cells(
    part: Part, trial: Trial, config: BenchmarkConfig, attacks: Attacks, known: dict[str, Contestant]
) -> Iterator[Row]:
    clean, theta = trial.train, clean_theta(trial)
    for epsilon in config.epsilons:
        seen = attack_on(attacks, part.attack, trial, epsilon, theta, config.seed, part.fold)
        place = {"file": part.problem.name, "data": part.problem.digest, "fold": part.fold}
        for name in part.estimators:
            began = time.perf_counter()
            with _named(f"the estimator {name}"):
                fitted = known[name].fit(seen, epsilon, part.problem.names)
            yield {
                **place,
                "attack": part.attack,
                "epsilon": float(epsilon),
                "estimator": name,
                **prediction_scores(fitted.probability(trial.test.x), trial.test.labels),
                **detection_scores(fitted, seen, clean, by_raters(part.attack)),
                "backdoor": backdoor_score(fitted, seen, trial.test),
                "seconds": time.perf_counter() - began,
                "changed": float(np.mean(seen.changed(clean))),
                "pairs": len(clean.labels),
                "tested": len(trial.test.labels),
            }
