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
# # Your own estimator in ten lines
#
# A reward estimator is a function `name(x, labels, epsilon, *, radius) -> RewardEstimate`. Under a name in the
# registry it has what every other one has: the audit, `flag`, sweeps and figures. This page writes one and compares it
# with `fit_reward` on real choices.

# %%
import os

import jax
import matplotlib.pyplot as plt
import numpy as np

from robust_rlhf_jax import load_rail_choices
from robust_rlhf_jax.audit import audit, flag
from robust_rlhf_jax.corruption_budget import corruption_count
from robust_rlhf_jax.kernels.ranking import largest
from robust_rlhf_jax.preferences import rail_people
from robust_rlhf_jax.rewards import REWARD_ESTIMATORS
from robust_rlhf_jax.rewards.protocol import RewardEstimate, surprise
from robust_rlhf_jax.rewards.registry import ESTIMATORS, Entry

SMOKE = bool(os.environ.get("NOTEBOOK_SMOKE"))
FOLDS = 2 if SMOKE else 5
LEVELS = (0.0, 0.1) if SMOKE else (0.0, 0.05, 0.1, 0.15)
data, people = load_rail_choices(), rail_people()

# %% [markdown]
# ## The estimator
# Fit everything, leave out the ⌊εN⌋ labels that surprise the fit most, fit the rest again. A row of zeros says nothing
# to a fit, so that `x * keep` leaves pairs out without a change of shape; ε may be traced.

# %%
plain = REWARD_ESTIMATORS["maximum_likelihood"]


def two_looks(x, labels, epsilon, *, radius):
    """Maximum likelihood without the labels that surprised maximum likelihood most."""
    first = plain(x, labels, epsilon, radius=radius)
    keep = 1.0 - largest(first.suspicion, corruption_count(epsilon, len(labels)))
    second = plain(x * keep[:, None], labels, epsilon, radius=radius)
    suspicion = surprise(second.theta, x, labels)
    return RewardEstimate(second.theta, keep, suspicion, second.status)


ESTIMATORS["two_looks"] = Entry(two_looks, "two looks", "#d98e04", "fit, leave out the surprising, fit again")

# %% [markdown]
# ## The audit takes it by name
# A share of the labels is flipped, those first of which a plain model is surest. The audit fits each reward to some
# people and scores it on the **clean** labels of the others. `two_looks` is told the true share; `fit_reward` is told
# nothing.


# %%
def audited(level, estimator, epsilon):
    return audit(
        jax.random.key(0), data, epsilon, folds=FOLDS, repeats=1, groups=people, inject=level, estimator=estimator
    )  # fmt: skip


curves = {"plain": [], "two_looks": [], "fit_reward": []}
for level in LEVELS:
    mine, ours = audited(level, "two_looks", level), audited(level, "fit_reward", None)
    curves["plain"].append(mine.plain.accuracy)
    curves["two_looks"].append(mine.robust.accuracy)
    curves["fit_reward"].append(ours.robust.accuracy)
print(f"{'held-out accuracy':20}" + "".join(f"{f'{level:.0%} flipped':>14}" for level in LEVELS))
for name, curve in curves.items():
    print(f"{name:20}" + "".join(f"{value:>14.3f}" for value in curve))

# %% alt="Held-out accuracy against the share of flipped labels for plain maximum likelihood, two looks and fit_reward"
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
styles = {"plain": ("-o", "#c1432e"), "two_looks": ("-^", "#d98e04"), "fit_reward": ("-s", "#1f6f8b")}
for name, curve in curves.items():
    style, colour = styles[name]
    axes.plot(LEVELS, curve, style, color=colour, label=name)
axes.axhline(0.5, color="black", linestyle=":", linewidth=1, label="coin flips")
axes.set(
    xlabel="fraction of labels flipped, the most confident first",
    ylabel="held-out accuracy on clean labels",
    title=f"Rail choices, {FOLDS} folds of people",
)
axes.grid(alpha=0.3)
axes.legend(frameon=False)
plt.show()

# %% [markdown]
# Two looks help while the first one is about right, at 5 % of flips. At 10 % the first fit already believes the
# flipped labels, and leaves out honest ones. `fit_reward` asks which explanation leaves the least to be corrupt, and
# finds its way back.
#
# ## So does `flag`
# On the untouched choices, with an ε of .05:

# %%
flags = {name: np.asarray(flag(data, 0.05, estimator=name)) for name in ("two_looks", "fit_reward")}
both = flags["two_looks"] & flags["fit_reward"]
print(f"{both.sum():,} pairs are flagged by both, of {flags['two_looks'].sum():,} each")

# %% [markdown]
# To keep the estimator, put the function and its entry into a file in `robust_rlhf_jax/rewards/rivals/`;
# `robust-rlhf audit FILE --estimator two_looks` and `sweep --algorithms two_looks` then know it.
# [Contributing](../contributing.md) has the recipe.
