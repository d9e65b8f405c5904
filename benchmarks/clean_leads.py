"""How close `fit_reward` comes to doubting honest pairs: `python benchmarks/clean_leads.py [--trials 6]`.

On clean choices, the delivery grid and four families of worlds, and with a tenth or a fifth of the labels flipped at
random, told ε = .05, .1, .2: the largest lead, in standard errors, of an explanation that the fit may believe and that
puts accuracy at stake. The fit believes it from `AHEAD` standard errors on; below 0 none is ahead of maximum
likelihood.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from pair_sets import SHARED, available, trials
from rich.progress import track

from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.explanations import explain, first_fits
from robust_rlhf_jax.rewards.fit import overdispersion
from robust_rlhf_jax.rewards.proposals import doubted_rows
from robust_rlhf_jax.rewards.selection import AHEAD, MATERIAL, judge

FLIPPED, LEVELS = (0.0, 0.1, 0.2), (0.05, 0.1, 0.2)


@jax.jit
def largest_lead(x, labels, epsilon, people):
    """In standard errors; −∞ where nothing that may be believed puts accuracy at stake."""
    pairs = unit_free(x, labels)
    rows = doubted_rows(pairs, epsilon)
    starts, plain = first_fits(pairs, rows)
    spread = 1.0 if people is None else overdispersion(pairs, plain.t, people)
    found = judge(pairs, explain(pairs, rows, starts, epsilon, spread), epsilon)
    counts = found.admissible & (found.at_stake > MATERIAL) & (jnp.arange(len(found.lead)) > 0)
    return jnp.max(jnp.where(counts, found.lead, -jnp.inf))


def leads(trial, seed):
    order = np.random.default_rng(seed).permutation(len(trial.labels))
    people = None if trial.people is None else jnp.asarray(trial.people)
    for flipped in FLIPPED:
        labels = trial.labels.copy()
        labels[order[: int(flipped * len(order))]] *= -1
        for level in LEVELS:
            x, o, epsilon = (jnp.asarray(value, jnp.float32) for value in (trial.x, labels, level))
            yield float(largest_lead(x, o, epsilon, people))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=6, help="folds of people, or worlds")
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder of the sets that are not bundled")
    given = parser.parse_args()
    print("| set | fits | largest lead | believed |\n|---|---|---|---|")
    for name in available(given.shared)[0]:
        builders = trials(name, given.shared, 1, given.trials)[: given.trials]
        found = [
            lead
            for i, build in enumerate(track(builders, name, transient=True))
            for lead in leads(build(), i)
        ]
        print(
            f"| {name} | {len(found)} | {max(found):.2f} | {sum(lead > AHEAD for lead in found)} |",
            flush=True,
        )
    print(f"\nBelieved from {AHEAD} standard errors on. {environment()}")


if __name__ == "__main__":
    main()
