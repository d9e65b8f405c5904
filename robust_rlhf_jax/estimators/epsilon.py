"""How much of a preference file is corrupt: what can be certified, a guess, and what stays possible."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.preferences import PreferenceData, check_preferences

from .epsilon_choice import DEFAULT_GRID, check_grid, fit_grid

# Shares of the pairs, from the surest down, that a test looks at: small ones see confident labels flipped.
DEPTHS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
SCALES = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)
DESCENT_STEPS = 300
SIMULATIONS = 4
# A fit that trims far more than ε is too sure: trim a little more than the last guess, from the grid's end down.
ROUNDS = 3
OVERSHOOT = 1.25
LEAST_LEVEL = 0.02


class EpsilonEstimate(eqx.Module):
    """`lower` ≤ `estimate` ≤ `upper`: fractions of corrupt pairs, certified, guessed, and still possible.

    `outlying`: share of the pairs that the filter removes at the largest ε; `hidden`: what could be corrupt without
    any trace; `theta` [k]: the robust fit behind `estimate`.
    """

    estimate: Float[Array, ""]
    lower: Float[Array, ""]
    upper: Float[Array, ""]
    outlying: Float[Array, ""]
    hidden: Float[Array, ""]
    theta: Float[Array, " k"]


def estimate_epsilon(
    data: PreferenceData,
    *,
    grid: Float[Array, " E"] = DEFAULT_GRID,  # pyright: ignore[reportArgumentType]
    confidence: float = 0.95,
    key: PRNGKeyArray,
    radius: float | Float[Array, ""] | None = None,
) -> EpsilonEstimate:
    """Interval and point estimate of the corrupt fraction, under Bradley–Terry at temperature 1 with ‖θ‖ ≤ radius.

    - `lower`: for the true θ the mean of g(x)(o' − σ(θᵀx)), o' ∈ {0, 1}, |g| ≤ 1, is a martingale's mean: within
      `bernstein_margin` of 0 on clean labels, and one replaced pair moves it by 2/n at most. Half of what the worst
      of a family of g exceeds its margin by, minimised over θ, is a lower bound on ε with probability `confidence`.
      The g are the signs of θ̂_ε'ᵀx on the surest pairs; θ̂_ε' are fitted to one half, tested on the other. The
      minimum is searched for by descent: where that fails, so does the certificate. Nor does it hold
      against corruption that was made with `key` in mind.
    - `estimate`: `contradictions` of the robust fit at the grid's largest ε, less what they are on labels drawn from
      that fit itself (`SIMULATIONS` times), since trimming makes any fit too sure; then again at a little more than
      this guess (`ROUNDS` in all). Near ε for attacks that show in confident labels, too low for any that do not,
      and too high by up to .05 where a fit that trims too much is not held back by `radius`.
    - `upper`: `estimate` plus `hidden`, capped at ½: seldom below .3. It has to be: corrupt labels that mimic
      another θ' leave no trace (`diagnostics.hopeless`), and random flips are to first order a higher temperature,
      of which the data know nothing. No method adapts to unknown ε at no price (Zhang, Chen, Zhu & Sun 2022).
      `hidden` only counts worlds along θ̂: an attack that turned θ̂ itself round (`flip_confident` at .2) is not covered.

    **Arguments:** `grid` of ε at which to fit, rising; `radius`: bound on ‖θ‖₂, default √(Hp).

    **Raises:** ValueError for a wrong grid, `confidence` outside (0, 1), fewer than 4 pairs, or malformed data.
    """
    check_grid(grid)
    check_preferences(data)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence} must lie between 0 and 1.")
    if data.n_pairs < 4:
        raise ValueError(f"{data.n_pairs} pairs are too few to fit on one half and test on the other.")
    radius = data.theta_dim**0.5 if radius is None else radius
    x = data.differences()
    levels = jnp.asarray(grid, x.dtype)
    return _estimate(
        x, data.labels.astype(x.dtype), levels, 1.0 - confidence, key, jnp.asarray(radius, x.dtype)
    )


def _estimate(x, labels, grid, miss, key, radius) -> EpsilonEstimate:
    k_split, k_simulate = jax.random.split(key)
    lower = certified_fraction(k_split, x, labels, grid, radius, miss)
    first = fit_grid(x, labels, grid[-1:], radius)
    k_first, *k_later = jax.random.split(k_simulate, ROUNDS)
    theta = first.thetas[0]
    guess = excess_contradictions(k_first, x, labels, theta, grid[-1], radius)
    for k in k_later:
        level = jnp.clip(OVERSHOOT * guess, jnp.minimum(LEAST_LEVEL, grid[-1]), grid[-1])
        theta = fit_grid(x, labels, level[None], radius).thetas[0]
        guess = excess_contradictions(k, x, labels, theta, level, radius)
    estimate = jnp.clip(guess, lower, 0.5)
    disagreement = jnp.mean(jax.nn.sigmoid(-jnp.abs(matmul(x, theta))))
    hidden = jnp.maximum(disagreement, 0.5 - disagreement)
    slack = jnp.sqrt(jnp.log(1.0 / miss) / (2 * x.shape[0]))
    upper = jnp.minimum(estimate + hidden + slack, 0.5)
    return EpsilonEstimate(estimate, lower, upper, 1.0 - jnp.mean(first.survivors), hidden, theta)


@jax.jit
def contradictions(
    x: Float[Array, "n k"], labels: Float[Array, " n"], theta: Float[Array, " k"]
) -> Float[Array, ""]:
    """sup_t of the share of pairs with o·θᵀx ≤ −t, less what the model expects, E 1{|θᵀx| ≥ t}σ(−|θᵀx|)."""
    margins = matmul(x, theta)
    excess = (labels * margins < 0) - jax.nn.sigmoid(-jnp.abs(margins))
    surest_first = jnp.argsort(-jnp.abs(margins))
    return jnp.maximum(jnp.max(jnp.cumsum(excess[surest_first])), 0.0) / x.shape[0]


def excess_contradictions(key, x, labels, theta, level, radius) -> Float[Array, ""]:
    """`contradictions` of θ, less their mean in robust fits, at the same ε, to labels that θ itself has drawn."""

    def simulate(k):
        drawn = jnp.where(jax.random.bernoulli(k, jax.nn.sigmoid(matmul(x, theta))), 1.0, -1.0).astype(
            x.dtype
        )
        return contradictions(x, drawn, fit_grid(x, drawn, level[None], radius).thetas[0])

    # A Python loop: all calls share the program that fitted θ.
    expected = jnp.mean(jnp.stack([simulate(k) for k in jax.random.split(key, SIMULATIONS)]))
    return jnp.maximum(contradictions(x, labels, theta) - expected, 0.0)


class CalibrationTests(NamedTuple):
    """Rows `x` [n, k], wins o' ∈ {0, 1} [n] and the test functions g_j(x_n) ∈ {−1, 0, 1} as `signs` [n, J]."""

    x: Float[Array, "n k"]
    wins: Float[Array, " n"]
    signs: Float[Array, "n J"]

    def excess(self, theta, miss) -> Float[Array, " J"]:
        """|mean g_j(o' − σ(θᵀx))| less its margin, for every j."""
        chance = jax.nn.sigmoid(matmul(self.x, theta))
        means = matmul(self.wins - chance, self.signs) / self.wins.size
        variances = matmul(chance * (1.0 - chance), jnp.abs(self.signs)) / self.wins.size
        return jnp.abs(means) - bernstein_margin(variances, self.wins.size, miss / (2 * means.size))


def bernstein_margin(variance: Float[Array, " J"], n: int, miss) -> Float[Array, " J"]:
    """√(2vL/n) + L/3n, L = log(1/δ): the mean of n terms in [−1, 1] of variance v exceeds it with chance ≤ δ."""
    log = jnp.log(1.0 / miss)
    return jnp.sqrt(2.0 * variance * log / n) + log / (3.0 * n)


def certified_fraction(key, x, labels, grid, radius, miss) -> Float[Array, ""]:
    """The `lower` of `estimate_epsilon`."""
    order, half = jax.random.permutation(key, x.shape[0]), x.shape[0] // 2
    fitted, tested = order[:half], order[half:]
    thetas = fit_grid(x[fitted], labels[fitted], grid, radius).thetas
    return 0.5 * jnp.clip(least_excess(x[tested], labels[tested], thetas, radius, miss), 0.0, 1.0)


@jax.jit
def least_excess(x, labels, thetas, radius, miss) -> Float[Array, ""]:
    """min over ‖θ‖ ≤ radius of the largest `CalibrationTests.excess`, as far as descent finds it."""
    tests = CalibrationTests(x, (labels + 1.0) / 2.0, sign_functions(x, thetas))
    scales = jnp.asarray(SCALES, x.dtype)
    candidates = (scales[:, None, None] * thetas[None]).reshape(-1, x.shape[1])
    values = jax.lax.map(lambda theta: jnp.max(tests.excess(theta, miss)), candidates)
    best = candidates[jnp.argsort(values)[:3]]
    return jnp.min(jax.lax.map(lambda start: _descend(tests, start, radius, miss), best))


def sign_functions(x: Float[Array, "n k"], thetas: Float[Array, "E k"]) -> Float[Array, "n J"]:
    """sign(θ_iᵀx)·1{|θ_iᵀx| among the largest share `DEPTHS`_d}: one column for every (i, d)."""
    margins = matmul(x, thetas.T)
    thresholds = jnp.quantile(jnp.abs(margins), 1.0 - jnp.asarray(DEPTHS, x.dtype), axis=0)
    deep = jnp.abs(margins)[:, None] >= thresholds[None]
    return (jnp.sign(margins)[:, None] * deep).reshape(x.shape[0], -1)


def _descend(tests, start, radius, miss) -> Float[Array, ""]:
    """The least max_j excess on the way of Adam from `start`, on a soft maximum that hardens."""
    pace = optax.cosine_decay_schedule(0.1, DESCENT_STEPS, alpha=0.02)
    optimiser = optax.adam(pace)

    def soft(theta, hardness):
        excess = tests.excess(theta, miss)
        return jax.nn.logsumexp(hardness * excess) / hardness, jnp.max(excess)

    def step(carry, t):
        theta, state, least = carry
        hardness = 200.0 * 10.0 ** (t / DESCENT_STEPS)
        (_, worst), slope = jax.value_and_grad(soft, has_aux=True)(theta, hardness)
        update, state = optimiser.update(slope, state)
        moved = theta + update
        moved *= jnp.minimum(1.0, radius / jnp.maximum(jnp.linalg.norm(moved), 1e-12))
        return (moved, state, jnp.minimum(least, worst)), None

    first = (start, optimiser.init(start), jnp.asarray(jnp.inf, start.dtype))
    (_, _, least), _ = jax.lax.scan(step, first, jnp.arange(DESCENT_STEPS))
    return least
