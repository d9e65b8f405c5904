"""Small numbers, cheap to compute, that change when what the figures of the docs show changes.

A figure that takes hours cannot be drawn in a test. Its witness can: a few fits of the same code with fixed seeds. The
numbers of every witness are kept in `docs/figures.toml`; as long as they stay, the figures stay true (`figures.py`).
A refactoring leaves them alone; a new rule, world or default does not.
"""

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
# Numbers are kept to three digits, and may move by this much: platforms round the last digit in another way.
DIGITS, TOLERANCE = 3, 0.004
# Hundreds of steps of a game lose more than a digit; a pair or two at the edge of a flagged set falls either way.
LOOSE = {"primal_dual": 0.05, "audit": 0.008}


def fit_reward() -> list[float]:
    """Real choices, a fifth of the labels flipped: accuracy of plain and robust fit, share left out, its interval."""
    from robust_rlhf_jax import Pairs, fit_reward, load_rail_choices

    data = load_rail_choices()
    x, labels = np.asarray(data.differences()), np.asarray(data.labels)
    clean = fit_reward(data)
    flipped = labels.copy()
    flipped[np.argsort(-np.abs(np.asarray(clean.reward(x))))[: len(x) // 5]] *= -1
    plain, robust = (fit_reward(Pairs.of_differences(x, flipped), epsilon=e) for e in (0.0, None))
    right = [np.mean(np.sign(np.asarray(model.reward(x))) == labels) for model in (clean, plain, robust)]
    return [*right, robust.epsilon, *robust.interval]


def audit() -> list[float]:
    """The rail choices, a tenth of the labels flipped, one cross-validation: what the command says of both fits."""
    import jax

    from robust_rlhf_jax import load_rail_choices
    from robust_rlhf_jax.audit import audit
    from robust_rlhf_jax.preferences import rail_people

    found = audit(jax.random.key(0), load_rail_choices(), groups=rail_people(), inject=0.1, repeats=1)
    scores = [score for fit in (found.plain, found.robust) for score in (fit.accuracy, fit.log_loss)]
    return [*scores, found.epsilon, found.flagged.mean(), found.precision, found.recall]


def plain_cells() -> list[float]:
    """Cells of the default sweep: the gap of plain RLHF in the random world under two attacks."""
    return _gaps("standard", ("flip_confident", "push_features"))


def robust_policy() -> list[float]:
    """Cells of the default sweep: the gap of `robust_policy` in the random world under one attack."""
    return _gaps("robust_policy", ("push_features",))


def algorithms() -> list[float]:
    """The paper's algorithms 1, 3 and 4 and a rival in a small world, where some pairs are pushed."""
    from robust_rlhf_jax.lab.reproduce import robustness

    names = ("uniform_coverage", "condition_number_autodiff", "first_order", "sever")
    config = dataclasses.replace(
        robustness.QUICK, attacks=("push_features",), epsilons=(0.1,), seeds=1, algorithms=names
    )
    return _by_algorithm(config)


def primal_dual() -> list[float]:
    """log10 of the duality gap after 100, 200, …, 500 iterations, as published and by default."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import jax
    import jax.numpy as jnp
    from primal_dual import OPTIMISTIC, PUBLISHED, WORLDS, play

    from robust_rlhf_jax import sample_preferences

    mdp = WORLDS["random"][0]()
    data = sample_preferences(jax.random.key(0), mdp, 2_000)
    short = (dataclasses.replace(oracle, steps=500, refresh=100) for oracle in (PUBLISHED, OPTIMISTIC))
    found = [play(oracle, data, jnp.float32(0.0), mdp.theta).details["gaps"] for oracle in short]
    return [float(np.log10(max(gap, 1e-9))) for gaps in found for gap in np.asarray(gaps)]


def _gaps(algorithm: str, attacks: tuple[str, ...]) -> list[float]:
    from robust_rlhf_jax.lab.sweeps import SweepConfig

    return _by_algorithm(
        SweepConfig(
            families=("random",), attacks=attacks, epsilons=(0.2,), seeds=2, algorithms=(algorithm,), lanes=1
        )
    )


def _by_algorithm(config) -> list[float]:
    from robust_rlhf_jax.lab.sweeps import run_sweep

    rows = run_sweep(config, lambda done, of: None).rows
    return [
        row["normalised_gap"] for row in sorted(rows, key=lambda r: (r["algorithm"], r["attack"], r["seed"]))
    ]


WITNESSES: dict[str, Callable[[], list[float]]] = {
    witness.__name__: witness
    for witness in (fit_reward, audit, plain_cells, robust_policy, algorithms, primal_dual)
}


def numbers_of(name: str) -> list[float]:
    """What the code of today gives for the witness `name`, rounded."""
    return [round(float(number), DIGITS) + 0.0 for number in WITNESSES[name]()]


def same(name: str, found: list[float], kept: list[float]) -> bool:
    tolerance = LOOSE.get(name, TOLERANCE)
    return len(found) == len(kept) and bool(np.allclose(found, kept, rtol=0.0, atol=tolerance))
