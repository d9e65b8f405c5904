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
# # Your own attack in ten lines
#
# An attack is a function `name(key, data, epsilon, mdp) -> PreferenceData` that changes at most a share ε of the
# pairs. It sees everything: the data, the world, and the true reward in it. This page writes one, holds it to the
# protocol, and measures what it does to three rewards.

# %%
import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from robust_rlhf_jax import attacks, changed_pairs, fit_reward, sample_preferences
from robust_rlhf_jax.lab.attacks.base import contrary, copy_pairs, random_pairs, replace_labels, true_margins
from robust_rlhf_jax.lab.worlds import random_linear_mdp
from robust_rlhf_jax.mdp import normalised_gap, optimal_policy

SMOKE = bool(os.environ.get("NOTEBOOK_SMOKE"))
PAIRS, DRAWS = (200, 1) if SMOKE else (2000, 3)
EPSILONS = (0.0, 0.2) if SMOKE else (0.0, 0.05, 0.1, 0.2)

# %% [markdown]
# ## The attack
# A bot finds the pair about which the true reward is surest, and submits it again and again with the wrong answer.
# `robust_rlhf_jax.lab.attacks.base` has the parts: which pairs, copies of pairs, the wrong label.


# %%
def copycat(key, data, epsilon, mdp):
    """Turn ⌊εN⌋ random pairs into copies of the surest pair, labelled the wrong way round."""
    margins = true_margins(data, mdp)
    surest = jnp.argmax(jnp.abs(margins))
    chosen = random_pairs(key, epsilon, data.n_pairs)
    copies = copy_pairs(data, chosen, jnp.full(data.n_pairs, surest))
    return replace_labels(copies, chosen, contrary(margins)[surest])


# %% [markdown]
# ## Does it keep to the protocol?
# It changes no more pairs than it may, and ε is an array like any other: `jax.vmap` runs it for several ε at once.

# %%
mdp = random_linear_mdp(jax.random.key(0), n_states=12, n_actions=3, dim=4, horizon=3)
data = sample_preferences(jax.random.key(1), mdp, PAIRS)
over_epsilon = jax.vmap(copycat, in_axes=(None, None, 0, None))
several = over_epsilon(jax.random.key(2), data, jnp.asarray(EPSILONS), mdp)
for place, epsilon in enumerate(EPSILONS):
    lies = jax.tree.map(lambda leaf, place=place: leaf[place], several)
    print(f"ε = {epsilon:<5} {int(changed_pairs(data, lies).sum()):>4} of {PAIRS:,} pairs changed")

# %% [markdown]
# ## What does it do?
# Beside it: blind flips, and the library's `flip_confident`, which flips the labels that say most. Each reward gets an
# exact plan, so that nothing else is to blame: `fit_reward` without ε, and plain maximum likelihood (`epsilon=0`).

# %%
ATTACKS = {"copycat": copycat, "flip_random": attacks.flip_random, "flip_confident": attacks.flip_confident}
FITS = {"plain": 0.0, "fit_reward": None}


@jax.jit
def gap(theta):
    policy, _ = optimal_policy(mdp, data.per_step(theta))
    return normalised_gap(mdp, policy)


def gaps(attack, told):
    """Normalised gaps [draw, ε] of the plan for the fitted reward."""
    found = np.zeros((DRAWS, len(EPSILONS)))
    for draw, place in np.ndindex(found.shape):
        clean = sample_preferences(jax.random.key(10 + draw), mdp, PAIRS)
        lies = attack(jax.random.key(20 + draw), clean, EPSILONS[place], mdp)
        found[draw, place] = gap(fit_reward(lies, told).theta)
    return found


results = {(attack, fit): gaps(ATTACKS[attack], FITS[fit]) for attack in ATTACKS for fit in FITS}

# %% alt="Normalised gap against ε under the new attack, random and confident flips, plain and robust"
figure, panels = plt.subplots(1, 3, figsize=(11, 3.8), sharey=True, layout="constrained")
for axes, attack in zip(panels, ATTACKS, strict=True):
    for fit, style, colour in (("plain", "-o", "#c1432e"), ("fit_reward", "-s", "#1f6f8b")):
        axes.plot(EPSILONS, np.median(results[attack, fit], axis=0), style, color=colour, label=fit)
    axes.set(title=attack, xlabel="fraction of corrupt pairs ε", ylim=(-0.03, 1.03))
    axes.grid(alpha=0.3)
panels[0].set_ylabel("normalised gap")
panels[0].legend(frameon=False)
plt.show()

# %%
print(f"{'median normalised gap':30}" + "".join(f"{f'ε = {epsilon:g}':>10}" for epsilon in EPSILONS))
for (attack, fit), found in results.items():
    print(f"{f'{attack}, {fit}':30}" + "".join(f"{value:>10.3f}" for value in np.median(found, axis=0)))

# %% [markdown]
# A fifth of copies costs the plain reward half of what there is to lose; `fit_reward` finds that they contradict the
# rest and leaves them out. Blind flips cost neither anything, and confident flips of a tenth ruin the plain reward.
# One world, three draws of its data: other worlds give other figures ([robustness](../robustness.md)).
#
# To run the attack in sweeps under its name, and to have the tests hold it to the protocol, put the function, marked
# `@listed()`, into a file in `robust_rlhf_jax/lab/attacks/`; [Contributing](../contributing.md) has the recipe.
