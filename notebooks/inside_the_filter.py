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
# # Inside the covariance filter
#
# `robust_covariance` gives every row a weight of 1 and then lowers weights step by step: whiten the rows by the
# covariance so far, find the direction in which the squares $yy^\top$ vary most, take weight from the rows that stand
# out in it (Diakonikolas et al. 2017). It stops when that variance is what normal data would have, or when
# $2\varepsilon n$ of weight is gone. This page steps the library's own solver on rows in the plane and looks at every
# weight, also where the filter does nothing and where it takes the wrong rows.

# %%
import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from robust_rlhf_jax import Status
from robust_rlhf_jax.moments import robust_covariance
from robust_rlhf_jax.moments.covariance import CovarianceFilter
from robust_rlhf_jax.moments.filters import FilterProblem, spectral_edge

SMOKE = bool(os.environ.get("NOTEBOOK_SMOKE"))
N, EPSILON = (100, 0.1) if SMOKE else (1000, 0.1)
SIGMA = np.array([[1.0, 0.6], [0.6, 0.8]])

# %% [markdown]
# ## Three sets of rows
# - **far**: a tenth of the rows lie on a ray, from the edge of the cloud to five times as far;
# - **mimicry**: a tenth of the rows are copies of honest ones; in preference data only their labels would lie;
# - **rare**: all rows are honest, but one in twenty is of a rare kind, far from the rest: a state that is seldom
#   visited, say.

# %%
rng = np.random.default_rng(0)
BAD = int(EPSILON * N)
honest = rng.multivariate_normal(np.zeros(2), SIGMA, N).astype(np.float32)


def with_last(rows):
    """The honest rows, with the last ones replaced."""
    return np.concatenate([honest[: N - len(rows)], rows.astype(np.float32)])


ray = np.geomspace(3.0, 15.0, BAD)[:, None] * np.array([0.5, -0.87]) + 0.3 * rng.normal(size=(BAD, 2))
copies = honest[rng.integers(0, N - BAD, BAD)]
rare = np.array([-3.0, 4.0]) + 0.25 * rng.normal(size=(BAD // 2, 2))
# Rows, how many of the last ones are planted or rare, how many of the first ones are honest.
SETS = {
    "far": (with_last(ray), BAD, N - BAD),
    "mimicry": (with_last(copies), BAD, N - BAD),
    "rare": (with_last(rare), BAD // 2, N),
}

# %% [markdown]
# ## Stepping the solver
# A solver has `init`, `step` and `terminate`; `iterate` drives them inside one compiled loop. Here a Python loop does,
# to keep every state. The result is the same.

# %%
solver, key = CovarianceFilter(), jax.random.key(0)
init, step, terminate = jax.jit(solver.init), jax.jit(solver.step), jax.jit(solver.terminate)


def run(x):
    """(problem, all states, final status) of the filter on rows x of full rank."""
    level = 2.0 * spectral_edge(3.0, N, jnp.float32)  # three numbers in a symmetric 2 × 2 matrix
    problem = FilterProblem(jnp.asarray(x), jnp.float32(EPSILON), level, jnp.float32(2 * EPSILON * N))
    states = [init(problem, key=key)]
    while (status := int(terminate(problem, states[-1]))) == Status.RUNNING:
        states.append(step(problem, states[-1], key=key))
    return problem, states, Status(status)


runs = {}
for name, (x, planted, _) in SETS.items():
    problem, states, status = runs[name] = run(x)
    library = robust_covariance(jnp.asarray(x), EPSILON, assume_centered=True)
    np.testing.assert_allclose(library.weights, states[-1].weights, atol=1e-4)
    gone = 1.0 - np.asarray(states[-1].weights)
    print(
        f"{name:8} {len(states) - 1:2} steps, {status.name}: {gone[-planted:].sum():6.1f} of {planted} planted or rare "
        f"rows gone, {gone[:-planted].sum():6.1f} of {N - planted} others"
    )


# %% [markdown]
# ## The weights, step by step
# Dashed: the covariance of the honest rows alone, which nobody would know. Solid: the covariance under the weights so
# far. Both at two standard deviations.


# %% alt="Rows far out in the plane at four steps of the filter, shaded by weight: the farthest lose theirs first"
def ellipse(axes, sigma, label, **style):
    angle = np.linspace(0, 2 * np.pi, 200)
    line = 2.0 * np.linalg.cholesky(np.asarray(sigma, float)) @ np.stack([np.cos(angle), np.sin(angle)])
    axes.plot(*line, label=label, **style)


def scatter(axes, name, step):
    problem, states, _ = runs[name]
    x, weights = np.asarray(problem.x), np.asarray(states[step].weights)
    order = np.argsort(-weights)  # light rows on top
    image = axes.scatter(
        *x[order].T, c=weights[order], cmap="RdYlBu", vmin=0, vmax=1, s=14, edgecolor="#444", lw=0.3
    )
    ellipse(axes, solver.extract(problem, states[step]), "under the weights", color="#c1432e", linewidth=2)
    sound = x[: SETS[name][2]]
    ellipse(axes, sound.T @ sound / len(sound), "honest rows", color="black", linestyle="--")
    share = (N - weights.sum()) / N
    axes.set(title=f"{name}: after {step} steps\n{share:.1%} of the weight gone", xlabel="x₁", ylabel="x₂")
    axes.grid(alpha=0.25)
    return image


last = len(runs["far"][1]) - 1
shown = sorted({0, (last + 1) // 3, last})
figure, panels = plt.subplots(
    1,
    len(shown),
    figsize=(4.2 * len(shown) + 0.6, 4.4),
    squeeze=False,
    sharex=True,
    sharey=True,
    layout="constrained",
)
for axes, at in zip(panels[0], shown, strict=True):
    image = scatter(axes, "far", at)
panels[0, 0].legend(fontsize=9, loc="lower left")
figure.colorbar(image, ax=panels, label="weight of the row")
figure.suptitle("Rows far out: the farthest go first")
plt.show()

# %% [markdown]
# ## Where it does nothing, and where it takes the wrong rows

# %% alt="Copies of honest rows keep their weight, and rare honest rows lose it"
figure, panels = plt.subplots(1, 2, figsize=(9.6, 4.6), layout="constrained")
for axes, name in zip(panels, ("mimicry", "rare"), strict=True):
    image = scatter(axes, name, len(runs[name][1]) - 1)
panels[0].scatter(*copies.T, s=50, facecolor="none", edgecolor="black", label="copies")
panels[1].legend(fontsize=9, loc="upper right")
panels[0].legend(fontsize=9, loc="upper left")
figure.colorbar(image, ax=panels, label="weight of the row")
figure.suptitle("At the end: copies look like what they copy, and rare looks like corrupt")
plt.show()

# %% alt="The largest variance of the squares by step, and whose weight is gone"
figure, panels = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
COLOURS = {"far": "#c1432e", "mimicry": "#1f6f8b", "rare": "#d98e04"}
for name, (_, states, _) in runs.items():
    steps, planted = np.arange(len(states)), SETS[name][1]
    kept = np.stack([np.asarray(s.weights) for s in states])
    panels[0].plot(steps, [float(s.top) for s in states], "-o", color=COLOURS[name], label=name)
    panels[1].plot(
        steps,
        planted - kept[:, -planted:].sum(axis=1),
        "-o",
        color=COLOURS[name],
        label=f"{name}: planted or rare",
    )
    panels[1].plot(
        steps,
        N - planted - kept[:, :-planted].sum(axis=1),
        "--s",
        markersize=4,
        color=COLOURS[name],
        label=f"{name}: others",
    )
panels[0].axhline(float(problem.level), color="black", linestyle=":", label="level: stop here")
panels[0].set(
    xlabel="step", ylabel="top eigenvalue", title="Largest variance of the squares yyᵀ", ylim=(0, None)
)
panels[1].axhline(2 * EPSILON * N, color="black", linestyle=":", label="budget 2εn")
panels[1].set(xlabel="step", ylabel="rows' worth of weight removed", title="Whose weight is gone")
for axes in panels:
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9, frameon=False)
plt.show()

# %% [markdown]
# The ray is gone after five steps, and some 3 % of the honest rows with it. Copies never raise the top eigenvalue above
# the level: the filter stops before its first step, and only labels could tell. The rare honest rows are all removed,
# with the status `CONVERGED`: nothing in the rows says that they were honest, and the covariance that is left
# misses their direction. Where data have such holes, pessimism (Algorithm 3) is the tool, not a filter.
