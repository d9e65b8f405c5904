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
# # How many directions does a smoothed gradient need?
#
# Algorithm 6 estimates a subgradient of $V^\star$ from values alone: $g = \frac1K\sum_k
# \frac{f(\theta+\mu u_k) - f(\theta)}{\mu}\,u_k$. Each direction is a call of an offline planner, so that every
# factor saved in variance is a factor saved in time. This page measures the variance against $K$ for the kinds of
# directions that `smoothed_gradient` offers, on R-LSVI's value of a small world.

# %%
import os
from functools import partial

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt

from robust_rlhf_jax import sample_preferences
from robust_rlhf_jax.kernels.smoothing import smoothed_gradient
from robust_rlhf_jax.lab.worlds import random_linear_mdp
from robust_rlhf_jax.oracles import RLSVI

SMOKE = bool(os.environ.get("NOTEBOOK_SMOKE"))
COUNTS = (16,) if SMOKE else (16, 32, 64, 128, 256)
REPEATS = 4 if SMOKE else 64
STD = 0.05

# %%
mdp = random_linear_mdp(jax.random.key(0), n_states=20, n_actions=3, dim=4, horizon=4)
data = sample_preferences(jax.random.key(1), mdp, 200 if SMOKE else 1000)
oracle = RLSVI()
prepared = jax.jit(lambda d: oracle.prepare(d, jnp.float32(0.05), key=jax.random.key(2)))(data)
theta = mdp.theta.reshape(-1)


def value(flat):
    return oracle.solve(prepared, flat.reshape(mdp.theta.shape)).value


exact = jax.grad(value)(theta)
print(f"{theta.shape[0]} parameters; length of the derivative {jnp.linalg.norm(exact):.2f}")

# %% [markdown]
# ## Mean squared error
# The error is taken about the derivative at $\theta$ itself, and counts the bias of smoothing too: where $f$ is flat
# between its kinks, as here, that is next to nothing, and plain directions fall with $1/K$.

# %%
KINDS = {
    "normal": {"directions": "normal"},
    "truncated": {"directions": "truncated"},
    "orthogonal (default)": {"directions": "orthogonal"},
    "normal, antithetic": {"directions": "normal", "antithetic": True},
    "orthogonal, antithetic": {"directions": "orthogonal", "antithetic": True},
}


@partial(jax.jit, static_argnames=("count", "kind"))
def mean_squared_error(keys, count, kind):
    def once(key):
        found = smoothed_gradient(value, theta, key, smoothing_std=STD, n_directions=count, **KINDS[kind])
        return jnp.sum((found.gradient - exact) ** 2)

    return jnp.mean(jax.lax.map(once, keys))


keys = jax.random.split(jax.random.key(3), REPEATS)
errors = {kind: [float(mean_squared_error(keys, count, kind)) for count in COUNTS] for kind in KINDS}

# %% alt="Mean squared error against the number of oracle calls for each kind of directions"
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
styles = ("-o", "--s", "-D", "-^", "-v")
for (kind, line), style in zip(errors.items(), styles, strict=True):
    axes.plot(COUNTS, [e / float(exact @ exact) for e in line], style, label=kind)
axes.set(
    xscale="log",
    yscale="log",
    xlabel="oracle calls K",
    ylabel="mean squared error / ‖gradient‖²",
    title=f"Smoothed gradient of R-LSVI's value, {theta.shape[0]} parameters, μ = {STD}",
)
axes.set_xticks(COUNTS, [str(count) for count in COUNTS])
axes.minorticks_off()
axes.grid(alpha=0.3)
axes.legend(frameon=False)
plt.show()

# %%
print(f"{'directions':34}" + "".join(f"K = {count:<6}" for count in COUNTS))
for kind, line in errors.items():
    print(f"{kind:34}" + "".join(f"{e / float(exact @ exact):<10.3g}" for e in line))

# %% [markdown]
# Plain directions need K in the hundreds: a sample is about $k$ times as long as the gradient. Orthogonal directions,
# complete rotations of them at a time, rebuild a linear function exactly once K reaches the number of parameters;
# what is left is the spread of the directions' lengths. Antithetic pairs take out the curvature but halve the number
# of directions, which costs more than it gains on a function that is nearly linear nearby. Truncation to [−4, 4], which
# the paper's proof needs, changes nothing that one can see.
# Differentiating the oracle (`gradient="autodiff"`) costs two to three calls and has no such error at all.
