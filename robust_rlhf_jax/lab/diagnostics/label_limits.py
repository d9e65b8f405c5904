"""When corrupt labels leave nothing to be learnt, for any algorithm: limits to lay beside a measured gap.

An adversary who may change labels only can make the labels of a world θ★ look exactly as if θ' had drawn them: couple
o ~ σ(θ★ᵀx_n) and o' ~ σ(θ'ᵀx_n) maximally and show o' in place of o. Pair n is then changed with probability
|σ(θ★ᵀx_n) − σ(θ'ᵀx_n)|, and no coupling changes fewer (total variation; Lindvall 1992, *Lectures on the coupling
method*). It can be done in expectation iff the mean of that over the pairs is at most ε. The number of changes is a sum
of independent Bernoullis: `label_budget` says what mean keeps it within ⌊εN⌋ but for a chance δ (Hoeffding 1963).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.checks import check_epsilons, check_key
from robust_rlhf_jax.kernels.halving import bisect
from robust_rlhf_jax.kernels.linalg import matmul, pseudo_inverse_root
from robust_rlhf_jax.mdp import LinearMDP, expected_features, optimal_policy

HALVINGS = 30
# A world whose returns span less than this share of θ★'s counts as if they spanned it, so that nothing is divided by
# zero.
SMALLEST_RANGE = 1e-3
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def label_distance(
    x: Float[Array, "N k"], theta: Float[Array, " k"], other: Float[Array, " k"]
) -> Float[Array, ""]:
    """E_x|σ(θᵀx) − σ(θ'ᵀx)|: the fraction of labels to change so that θ' seems to have drawn them.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.lab.diagnostics import label_distance
    >>> round(float(label_distance(jnp.array([[1.0], [2.0]]), jnp.array([1.0]), jnp.array([0.5]))), 3)
    0.129
    """
    return jnp.mean(jnp.abs(jax.nn.sigmoid(matmul(x, theta)) - jax.nn.sigmoid(matmul(x, other))))


def erasure_level(x: Float[Array, "N k"], theta: Float[Array, " k"]) -> Float[Array, ""]:
    """E|σ(θᵀx) − ½|: from this ε on, labels can be made pure coin flips, and say nothing about θ.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.lab.diagnostics import erasure_level
    >>> round(float(erasure_level(jnp.array([[1.0], [2.0]]), jnp.array([1.0]))), 3)
    0.306
    """
    return label_distance(x, theta, jnp.zeros_like(theta))


def reversal_level(x: Float[Array, "N k"], theta: Float[Array, " k"]) -> Float[Array, ""]:
    """E|σ(θᵀx) − σ(−θᵀx)|, twice `erasure_level`: from this ε on, labels can be made those of −θ.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.lab.diagnostics import reversal_level
    >>> round(float(reversal_level(jnp.array([[1.0], [2.0]]), jnp.array([1.0]))), 3)
    0.612
    """
    return label_distance(x, theta, -theta)


def label_budget(epsilon: float | Float[Array, ""], n_pairs: int, miss: float) -> Float[Array, ""]:
    """ε − √(log(1/δ)/2N), at least 0: couplings of this mean cost change at most εN labels but for a chance δ.

    **Example:**

    >>> from robust_rlhf_jax.lab.diagnostics import label_budget
    >>> [round(float(label_budget(0.1, n_pairs, miss=0.05)), 3) for n_pairs in (100, 1000, 10_000)]
    [0.0, 0.061, 0.088]
    """
    return jnp.maximum(jnp.asarray(epsilon) - math.sqrt(math.log(1.0 / miss) / (2.0 * n_pairs)), 0.0)


class LabelLimit(eqx.Module):
    """`gap`: no algorithm's worst normalised gap over the worlds {θ★, `theta`} [H, p] is smaller; `distance`: the
    `label_distance` of the two. With a batch of ε, every field has its axis in front.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import diagnostics, sample_preferences, worlds
    >>> chain = worlds.chain_mdp(n_states=6, dim=4, horizon=3)
    >>> x = sample_preferences(jax.random.key(0), chain, 200).differences()
    >>> limit = diagnostics.label_lower_bound(chain, x, 0.2, key=jax.random.key(1), starts=2, steps=5)
    >>> limit.theta.shape, bool(limit.distance <= 0.41)
    ((3, 4), True)
    """

    gap: Float[Array, ""]
    theta: Float[Array, "H p"]
    distance: Float[Array, ""]


def two_world_gap(mdp: LinearMDP, other: Float[Array, "H p"], *, own_range: bool = True) -> Float[Array, ""]:
    """min_π max(g_★(π), g'(π)), g the normalised gap under θ★ and under θ': what is lost if they look the same.

    Policies range over all mixtures, so that a minimax theorem applies to occupancies:
    max over λ ∈ [0, 1] of λV★(θ★)/R★ + (1−λ)V★(θ')/R' − V★(λθ★/R★ + (1−λ)θ'/R'), concave in λ, by golden section
    with exact planning; every λ gives a valid lower bound. At most ½, which a coin between two planners achieves.

    **Arguments:** `own_range`: R' = V★ − V_min of θ' itself, as in `normalised_gap`; else at least R★, so that a
    world where less is at stake counts less.

    **Example:**

    >>> from robust_rlhf_jax import worlds
    >>> from robust_rlhf_jax.lab.diagnostics import two_world_gap
    >>> chain = worlds.chain_mdp(n_states=6, dim=4, horizon=3)
    >>> round(float(two_world_gap(chain, -chain.theta)), 2)
    0.5
    """
    true, false = (_scaled(mdp, theta) for theta in (mdp.theta, other))
    scale = jnp.maximum(false[1], true[1] * (SMALLEST_RANGE if own_range else 1.0))

    def loss(weight: Float[Array, ""]):
        mixed = weight * mdp.theta / true[1] + (1 - weight) * other / scale
        return weight * true[0] / true[1] + (1 - weight) * false[0] / scale - optimal_policy(mdp, mixed)[1]

    return loss(jax.lax.stop_gradient(_golden_section(loss, mdp.theta.dtype)))


def _scaled(mdp: LinearMDP, theta: Float[Array, "H p"]):
    """(V★, V★ − V_min) under θ."""
    best, worst = optimal_policy(mdp, theta)[1], -optimal_policy(mdp, -theta)[1]
    return best, best - worst


def _golden_section(concave: Callable[[Float[Array, ""]], Float[Array, ""]], dtype: Any) -> Float[Array, ""]:
    """argmax over [0, 1] (Kiefer 1953), both inner points evaluated afresh."""

    def shrink(_, bounds):
        low, high = bounds
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        go_left = concave(left) >= concave(right)
        return jnp.where(go_left, low, left), jnp.where(go_left, right, high)

    low, high = jax.lax.fori_loop(0, HALVINGS, shrink, (jnp.zeros((), dtype), jnp.ones((), dtype)))
    return 0.5 * (low + high)


def label_lower_bound(
    mdp: LinearMDP,
    x: Float[Array, "N k"],
    epsilon: float | Float[Array, " E"],
    *,
    key: PRNGKeyArray,
    own_range: bool = True,
    starts: int = 8,
    steps: int = 60,
) -> LabelLimit:
    """The normalised gap that label corruption at ε forces on any algorithm, in θ★ or in a world that looks the same.

    If `label_distance`(θ★, θ') ≤ 2ε, an adversary in either world can show labels drawn with the mean of the two
    chances, at a mean cost of ≤ ε a pair: the data then have one distribution, so the algorithm has one policy,
    whose larger gap is at least `two_world_gap`. This is the two-point method of Le Cam with a Huber budget (Chen,
    Gao & Ren 2018, *Robust covariance and scatter matrix estimation*). θ' keeps the features and transitions and
    ‖θ'‖ ≤ √(Hp). It is searched for by projected gradient ascent from rays towards −θ★, towards the cheapest change
    of V★ − V_min, and random ones: any θ' gives a valid bound, a longer search a larger one.
    Which of the two worlds suffers is left to the algorithm: with `own_range` θ' may be a world in which next to
    nothing is at stake, so read `own_range=False` where that would not count as harm.
    In expectation over the coupling; for a sample of N pairs give `label_budget(epsilon, N, miss)`.

    **Arguments:** `x` [N, H·p] clean differences; `epsilon` in [0, ½), or an array [E] of them: larger ε then profit
    from what smaller ones found; `own_range` as in `two_world_gap`.

    **Raises:** ValueError for ε outside [0, ½), x of another width than θ, fewer than two starts, or what is not
    one key.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import sample_preferences, worlds
    >>> from robust_rlhf_jax.lab.diagnostics import label_lower_bound
    >>> chain = worlds.chain_mdp(n_states=6, dim=4, horizon=3)
    >>> x = sample_preferences(jax.random.key(0), chain, 200).differences()
    >>> 0 < float(label_lower_bound(chain, x, 0.2, key=jax.random.key(1), starts=2, steps=5).gap) <= 0.5
    True
    """
    check_epsilons(epsilon)
    check_key(key)
    if x.ndim != 2 or x.shape[1] != mdp.theta.size:
        raise ValueError(f"x has shape {x.shape}; this MDP needs [N, H·p] = [N, {mdp.theta.size}].")
    if starts < 2:
        raise ValueError(f"starts={starts}: give 2 or more.")
    levels = jnp.asarray(epsilon, x.dtype)
    found = _search(key, mdp, x, jnp.atleast_1d(levels), own_range, starts, steps)
    return found if levels.ndim else jax.tree.map(lambda leaf: leaf[0], found)


@partial(jax.jit, static_argnames=("own_range", "starts", "steps"))
def _search(
    key: PRNGKeyArray,
    mdp: LinearMDP,
    x: Float[Array, "n k"],
    levels: Float[Array, " E"],
    own_range: bool,
    starts: int,
    steps: int,
) -> LabelLimit:
    whitener = pseudo_inverse_root(matmul(x.T, x) / x.shape[0])[0]
    rays = _first_rays(key, mdp, whitener, starts)

    def at(level: Float[Array, ""]):
        found = jax.vmap(lambda ray: _ascend(mdp, x, whitener, level, ray, own_range, steps))(rays)
        return jax.tree.map(lambda leaf: leaf[jnp.argmax(found.gap)], found)

    each = jax.lax.map(at, levels)
    # A world within reach of a smaller budget is within reach of a larger one.
    allowed = jnp.where(levels[None, :] <= levels[:, None], each.gap[None, :], -jnp.inf)
    best = jnp.argmax(allowed, axis=1)
    return jax.tree.map(lambda leaf: leaf[best], each)


def _first_rays(key: PRNGKeyArray, mdp: LinearMDP, whitener: Float[Array, "k k"], starts: int):
    """Directions [m, k] to leave θ★ in: back to 0 and beyond, along Σ⁺(m_worst − m_best), and whitened noise."""
    theta = mdp.theta.reshape(-1)
    best, worst = (expected_features(mdp, optimal_policy(mdp, t)[0]) for t in (mdp.theta, -mdp.theta))
    loss = (worst - best).reshape(-1)
    noise = matmul(jax.random.normal(key, (starts - 2, theta.size), theta.dtype), whitener)
    noise = noise * jnp.where(matmul(noise, loss) < 0, -1.0, 1.0)[:, None]
    return jnp.concatenate([-theta[None], matmul(whitener, matmul(whitener, loss))[None], noise])


def _furthest(
    theta: Float[Array, " k"],
    x: Float[Array, "n k"],
    ray: Float[Array, " k"],
    level: Float[Array, ""],
    radius: Float[Array, ""],
):
    """θ + c·ray with the largest c ≥ 0 such that `label_distance` ≤ 2ε (it grows with c) and ‖·‖ ≤ radius."""
    slope, square = matmul(theta, ray), jnp.maximum(jnp.sum(ray**2), jnp.finfo(ray.dtype).tiny)
    room = jnp.maximum(radius**2 - jnp.sum(theta**2), 0.0)
    limit = jnp.maximum((-slope + jnp.sqrt(slope**2 + square * room)) / square, 0.0)
    here, along = matmul(x, theta), matmul(x, ray)
    chance = jax.nn.sigmoid(here)

    def fits(length: Float[Array, ""]):
        return jnp.mean(jnp.abs(jax.nn.sigmoid(here + length * along) - chance)) <= 2.0 * level

    low, _ = bisect(fits, jnp.zeros_like(limit), limit, HALVINGS)
    return theta + jnp.where(fits(limit), limit, low) * ray


def _ascend(
    mdp: LinearMDP,
    x: Float[Array, "n k"],
    whitener: Float[Array, "k k"],
    level: Float[Array, ""],
    ray: Float[Array, " k"],
    own_range: bool,
    steps: int,
) -> LabelLimit:
    """Ascend in the metric of x, go as far as the budget allows along the new ray, keep the best."""
    theta, shape = mdp.theta.reshape(-1), mdp.theta.shape
    radius = jnp.sqrt(jnp.asarray(theta.size, x.dtype))
    value = lambda point: two_world_gap(mdp, point.reshape(shape), own_range=own_range)  # noqa: E731
    slope = jax.value_and_grad(value)
    moment = pseudo_inverse_root(matmul(whitener, whitener))[0]  # Σ^{1/2}

    def climb(step, carry):
        point, best, best_gap = carry
        gap, gradient = slope(point)
        better = gap > best_gap
        best, best_gap = jnp.where(better, point, best), jnp.where(better, gap, best_gap)
        uphill = matmul(whitener, matmul(whitener, gradient))
        length = jnp.linalg.norm(matmul(moment, point - theta))
        pace = 0.5 * length / jnp.sqrt(1.0 + step)
        moved = point + pace * uphill / jnp.maximum(jnp.linalg.norm(matmul(moment, uphill)), 1e-12)
        moved *= jnp.minimum(1.0, radius / jnp.linalg.norm(moved))  # so that the ray leaves θ★ inwards
        return _furthest(theta, x, moved - theta, level, radius), best, best_gap

    start = _furthest(theta, x, ray, level, radius)
    _, best, gap = jax.lax.fori_loop(0, steps, climb, (start, theta, jnp.zeros((), x.dtype)))
    return LabelLimit(jnp.maximum(gap, 0.0), best.reshape(shape), label_distance(x, theta, best))
