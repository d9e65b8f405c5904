# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Attacks side by side
#
# Attacks that corrupt the same share of pairs differ in what they cost and in who withstands them. This page runs
# eight of them against five rewards in one world. Each reward gets an exact plan, so that the reward alone is to
# blame.

# %%
import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from robust_rlhf_jax import attacks, sample_preferences
from robust_rlhf_jax.lab.worlds import random_linear_mdp
from robust_rlhf_jax.mdp import normalised_gap, optimal_policy
from robust_rlhf_jax.rewards.registry import ESTIMATORS

SMOKE = bool(os.environ.get("NOTEBOOK_SMOKE"))
PAIRS, DRAWS, EPSILON = (200, 2, 0.1) if SMOKE else (2000, 3, 0.1)
NAMES = (
    "flip_random",
    "flip_confident",
    "teacher_myopic",
    "impersonate",
    "push_features",
    "scale_features",
    "leverage_points",
    "mimicry",
)
REWARDS = ("maximum_likelihood", "cdpo", "trimmed", "filtered", "fit_reward")
if SMOKE:
    NAMES, REWARDS = NAMES[1:5:3], REWARDS[:1] + REWARDS[3:4]

# %% [markdown]
# ## One function, two tables
# `ATTACKS` and `ESTIMATORS` call everything alike, so that one trial serves all: draw pairs, corrupt them, fit, plan.
# Draws are made under one `vmap` and fitted one after the other by `lax.map`, which keeps branches that are not taken
# from running. Every reward that uses ε is told the true one.

# %%
mdp = random_linear_mdp(jax.random.key(0), n_states=12, n_actions=3, dim=4, horizon=3)


def corrupted(key, name):
    k_data, k_attack = jax.random.split(key)
    clean = sample_preferences(k_data, mdp, PAIRS)
    return clean if name is None else attacks.ATTACKS[name](k_attack, clean, EPSILON, mdp)


def make_gap(reward):
    """The normalised gap of a plan for the reward that `reward` fits, compiled once for all attacks."""

    def gap(data):
        found = ESTIMATORS[reward].estimate(
            data.differences(), data.labels, jnp.float32(EPSILON), radius=data.theta_dim**0.5
        )
        policy, _ = optimal_policy(mdp, data.per_step(found.theta))
        return normalised_gap(mdp, policy)

    return jax.jit(lambda draws: jax.lax.map(gap, draws))


keys = jax.random.split(jax.random.key(1), DRAWS)
rows = {"none": None} | {name: name for name in NAMES}
drawn = {
    row: jax.jit(jax.vmap(lambda key, name=name: corrupted(key, name)))(keys) for row, name in rows.items()
}
gaps = np.stack(
    [[make(drawn[row]) for row in rows] for make in map(make_gap, REWARDS)], axis=1
)  # [attack, reward, draw]
median = np.median(gaps, axis=-1)

# %% alt="Table of colours: median normalised gap for each attack and each reward"
figure, axes = plt.subplots(figsize=(8, 5.4), layout="constrained")
image = axes.imshow(median, cmap="magma_r", vmin=0, vmax=1, aspect="auto")
for (row, column), value in np.ndenumerate(median):
    axes.text(
        column, row, f"{value:.2f}", ha="center", va="center", color="white" if value > 0.5 else "black"
    )
axes.set_xticks(range(len(REWARDS)), [ESTIMATORS[name].label.replace(" ", "\n") for name in REWARDS])
axes.set_yticks(range(len(rows)), rows)
axes.set(
    title=f"{EPSILON:.0%} of {PAIRS:,} pairs corrupt: median normalised gap of {DRAWS} draws", ylabel="attack"
)
figure.colorbar(image, ax=axes, label="normalised gap")
plt.show()

# %%
print(f"{'worst attack for':28}{'attack':>18}{'gap':>8}{'none':>8}")
for column, name in enumerate(REWARDS):
    worst = int(median[:, column].argmax())
    print(
        f"{ESTIMATORS[name].label:28}{list(rows)[worst]:>18}{median[worst, column]:>8.2f}{median[0, column]:>8.2f}"
    )

# %% [markdown]
# Blind flips and short-sighted teachers cost no reward anything here: the labels that they change say little.
# Confident flips break what believes every label, and planted features break everything that looks at labels alone: to
# trimming, such pairs look like any other. Filtering the features (Algorithm 1) withstands both, and so does
# `fit_reward`. One world, uniform coverage: where some actions are hardly ever shown the order is another one
# ([robustness](../robustness.md#every-attack-against-every-algorithm)).
