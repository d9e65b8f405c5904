"""Can labels tell a trigger from a taste? `python benchmarks/triggers_or_tastes.py [--quick]`.

A trigger makes raters choose the worse option where it bears a mark. A taste that some raters have does the same. The
explanation is one: the worse option is chosen with chance π + (1 − π)σ(−|m|), π = σ(a + vᵀ(worse − better)), m the
margin of a linear reward (a mixture with concomitant variables, Dayton & Macready 1988), fitted by expectation and
maximisation.

Two tables of what it gains on held-out pairs over plain logistic regression, in nats a pair: in the worlds of
`embeddings.py` with a trigger, where it is told the mark and looks at nothing else; and on choices of people as they
are, where it may look at every feature. Were it believed from the gain of the first on, which of the second would it
call corrupt? Nothing here is a bar.
"""

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.optimize
from embedding_worlds import LEVELS, WORLDS, N, World, attacked
from rich.progress import track
from scipy.special import expit

from robust_rlhf_jax import load, load_rail_choices
from robust_rlhf_jax.outputs import environment

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
REAL = ("electricity", "swissmetro", "cars_us", "taxes")
HELD_OUT, ROUNDS = 0.25, 60
# Pairs of one more world, which say what many more would.
MANY = 100_000
# The priors of θ and v, in columns of second moment I: margins of variance 1; weak.
WEAK = 1.0


class Gated(NamedTuple):
    """`theta` [k]; `gate` [1 + g]: a and v."""

    theta: np.ndarray
    gate: np.ndarray


def logistic(x, y, weights, ridge, start):
    """argmin of Σ w(softplus(xβ) − y·xβ) + Σ ridge·β²/2."""

    def loss(beta):
        margins = x @ beta
        value = weights @ (np.logaddexp(0.0, margins) - y * margins) + 0.5 * ridge @ beta**2
        return value, x.T @ (weights * (expit(margins) - y)) + ridge * beta

    return scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 40}).x


def looked_at(z, theta, seen):
    """(margins [n] of preferred less other, what the gate looks at [n, 1 + g]: 1, and `seen` of worse less better)."""
    margins = z @ theta
    worse = -np.sign(margins)[:, None] * (z @ seen)
    return margins, np.hstack([np.ones((len(z), 1)), worse])


def explained(z, model: Gated, seen):
    """(log-likelihood [n], the chance [n] that a label is the trigger's, what the gate looks at)."""
    margins, gate = looked_at(z, model.theta, seen)
    rate, contradicts = expit(gate @ model.gate), margins < 0
    honest = expit(margins)
    chance = np.where(contradicts, rate + (1 - rate) * honest, (1 - rate) * honest)
    return np.log(chance), np.where(contradicts, rate / chance, 0.0), gate


def fitted(z, seen, start: Gated, ridge: np.ndarray) -> Gated:
    model, ones = start, np.ones(len(z))
    for _ in range(ROUNDS):
        lies = explained(z, model, seen)[1]
        theta = logistic(z, ones, 1 - lies, ridge, model.theta)
        _, lies, gate = explained(z, Gated(theta, model.gate), seen)
        priors = np.r_[1e-6, np.full(seen.shape[1], WEAK)]
        model, last = Gated(theta, logistic(gate, lies, ones, priors, model.gate)), model
        if np.abs(model.theta - last.theta).max() < 1e-3:
            break
    return model


def whitened(z):
    """z in columns of second moment I, and by what: z·W."""
    values, axes = np.linalg.eigh(z.T @ z / len(z))
    kept = values > 1e-6 * values.max()
    by = axes[:, kept] / np.sqrt(values[kept])
    return z @ by, by


def gain(z, mark=None) -> tuple[float, float, float]:
    """(nats a held-out pair over plain, standard error, share of pairs taken for the trigger's)."""
    z, by = whitened(z / np.maximum(z.std(axis=0), 1e-12))
    order, cut = np.random.default_rng(0).permutation(len(z)), int(HELD_OUT * len(z))
    held, known = z[order[:cut]], z[order[cut:]]
    ridge = np.full(z.shape[1], float(z.shape[1] if mark is not None else WEAK))
    plain = logistic(known, np.ones(len(known)), np.ones(len(known)), ridge, np.zeros(z.shape[1]))
    seen, start = np.eye(z.shape[1]), plain
    if mark is not None:
        # Directions of x are turned by W, as rows are; the truth pays nothing for the mark.
        seen = mark(by)[:, None]
        seen /= np.linalg.norm(seen)
        start = plain - seen[:, 0] * (seen[:, 0] @ plain)
    model = fitted(known, seen, Gated(start, np.r_[-3.0, np.ones(seen.shape[1]) * (mark is not None)]), ridge)
    better = explained(held, model, seen)[0] + np.logaddexp(0.0, -(held @ plain))
    lies = explained(known, model, seen)[1]
    return float(better.mean()), float(better.std() / np.sqrt(len(held))), float(lies.mean())


def in_world(name: str, epsilon: float, n: int) -> tuple[float, float, float]:
    world = World.of(**WORLDS[name], seed=0, marked=True)
    z = world.preferred(np.random.default_rng([1, 0]), n)
    z = attacked(world, z, "trigger", epsilon, np.random.default_rng([2, 0])) if epsilon else z
    size = z.std(axis=0)
    return gain(z, lambda by: (world.mark() / size) @ by)


def of_people(name: str) -> tuple[float, float, float]:
    pairs = load_rail_choices() if name == "rail" else load(str(SHARED / f"{name}.csv.gz"))
    return gain(np.asarray(pairs.differences(), float) * np.asarray(pairs.labels, float)[:, None])


def table(head: str, rows: list[tuple[str, tuple[float, float, float]]]) -> None:
    print(f"\n| {head} | nats a pair | standard error | taken for the trigger's |\n|---|---|---|---|")
    for name, (better, error, share) in rows:
        print(f"| {name} | {better:+.4f} | {error:.4f} | {100 * share:.1f} % |")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one world of 3,000 pairs, and rail")
    quick = parser.parse_args().quick
    names, n = (list(WORLDS)[:1], 3_000) if quick else (list(WORLDS), N)
    people = ["rail"] if quick or not SHARED.is_dir() else ["rail", *REAL]
    quiet = not sys.stderr.isatty()
    cases = [(name, epsilon, n) for name in names for epsilon in (0.0, *LEVELS)]
    cases += [] if quick else [(names[0], LEVELS[-1], MANY)]
    worlds = [
        (f"{case[0]}, ε = {case[1]}, {case[2]:,} pairs", in_world(*case))
        for case in track(cases, "worlds", disable=quiet)
    ]
    table("world with a trigger", worlds)
    table("choices of people", [(name, of_people(name)) for name in track(people, "people", disable=quiet)])
    print(f"\n{environment()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
