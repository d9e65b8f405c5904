"""What `fit_reward` chooses between: `python benchmarks/explanations.py swissmetro confident 0.2 [--trials 2]`.

For an attack of `pair_attacks.py`, each explanation that the fit examines, with the accuracy of its reward on clean
held-out pairs, the share of pairs that it leaves out, the share of the corrupted ones among those, the corruption that
it needs, and its score; and two more that the fit does not examine: `truth`, the trimmed fit (paper: Algorithm 2) at ε
from the clean fit, and `opposite`, the trimmed fit that leaves out 1.5ε and starts from the opposite of plain maximum
likelihood.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from catch_harm import SHARED, on_pairs, trials
from no_harm import short

from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.explanations import Explanations, explain, first_fits
from robust_rlhf_jax.rewards.proposals import believed_rows, doubted_rows
from robust_rlhf_jax.rewards.selection import judge


@jax.jit
def examined(x, labels, epsilon, truth):
    """(the map from t to θ, explanations, judgement, index of the one chosen), the two extra ones last."""
    pairs = unit_free(x, labels)
    rows = doubted_rows(pairs, epsilon)
    starts, plain = first_fits(pairs, rows)
    found = explain(pairs, rows, starts, epsilon)
    at_truth = believed_rows(pairs, 1 - epsilon, matmul(pairs.from_theta, truth), jnp.asarray(True))
    opposite = believed_rows(pairs, 1 - 1.5 * epsilon, -plain.t, jnp.asarray(True))
    more = Explanations(
        jnp.concatenate([found.t, at_truth[1][None], opposite[1][None]]),
        jnp.concatenate([found.weights, at_truth[0][None], opposite[0][None]]),
        jnp.concatenate([found.by_evidence, jnp.zeros(2, bool)]),
        found.doubted,
    )
    return pairs.to_theta, more, judge(pairs, more, epsilon), judge(pairs, found, epsilon).chosen


def lines_of(trial, attack, epsilon, seed):
    truth = np.asarray(trial.fit(trial.x, trial.labels, 0.0).theta, float)
    seen = on_pairs(trial, attack, epsilon, truth if trial.world is None else trial.world.theta, seed)
    bad = (seen.labels != trial.labels) | np.any(seen.x != trial.x, axis=1)
    given = (jnp.asarray(v, jnp.float32) for v in (seen.x, seen.labels, epsilon, truth))
    to_theta, found, verdict, chosen = examined(*given)
    out = 1.0 - np.asarray(found.weights)
    last = len(out) - 2
    for i, t in enumerate(found.t):
        name = {0: "plain", last: "truth", last + 1: "opposite"}.get(i, str(i))
        accuracy = trial.score(np.asarray(to_theta, float) @ np.asarray(t, float)).accuracy
        cells = [accuracy, out[i].mean(), out[i][bad].mean(), float(verdict.needed[i])]
        marks = (
            "yes" if verdict.admissible[i] else "no",
            f"{verdict.scores[i]:.4f}",
            "chosen" if i == chosen else "",
        )
        yield "| " + " | ".join([name, *map(short, cells), *marks]) + " |"


def main(words=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", help="as in catch_harm.py")
    parser.add_argument("attack")
    parser.add_argument("epsilon", type=float)
    parser.add_argument("--trials", type=int, default=2)
    arguments = parser.parse_args(words)
    for seed, build in enumerate(trials(arguments.set, SHARED, 1, arguments.trials)[: arguments.trials]):
        print(f"\ntrial {seed}")
        print(
            "| explanation | accuracy | left out | caught | needed | admissible | score | |\n"
            + "|---" * 8
            + "|"
        )
        print("\n".join(lines_of(build(), arguments.attack, arguments.epsilon, seed)), flush=True)
    return 0


if __name__ == "__main__":
    main()
