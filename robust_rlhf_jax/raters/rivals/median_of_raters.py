"""The median of the raters' own fits (Kleine Buening, Gan, Mandal & Kwiatkowska 2025), which no single rater can move
far.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import Status, iterate
from robust_rlhf_jax.checks import check_labels, check_positive
from robust_rlhf_jax.kernels.ball import newton_point
from robust_rlhf_jax.kernels.logistic import label_variance, secant_curvature
from robust_rlhf_jax.kernels.rounding import rounding_of
from robust_rlhf_jax.kernels.where_needed import where_needed
from robust_rlhf_jax.raters._by_rater import AnswersByRater, RowsByRater
from robust_rlhf_jax.raters.protocol import RaterEntry, RaterEstimate
from robust_rlhf_jax.rewards.protocol import surprise

# The paper's B, the longest that a rater's θ can be: a dozen labels are often separable.
BOUND = 4.0
MAX_STEPS = 200


def median_of_raters(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    raters: Int[Array, " n"],
    n_raters: int,
    *,
    radius: float | Float[Array, ""],
    bound: float | Float[Array, ""] = BOUND,
) -> RaterEstimate:
    """θ_j = median over k of θ̂_kj, θ̂_k = argmax over ‖θ‖ ≤ B of Σ_{n∈k} log σ(o_nθᵀx_n) (arXiv:2503.09561).

    The estimate within Pessimistic Median of MLEs, without its confidence sets. B is `bound`, or the radius if that is
    smaller; a direction of which rater k's pairs know nothing is 0 in θ̂_k. All raters with pairs count alike, however
    few. Both depend on the units of the columns. ε is not used. Suspicion: the label's surprise; no rater is judged.

    **Raises:** ValueError for a bound ≤ 0.
    """
    check_labels(labels)
    check_positive(bound, "bound")
    most = jnp.minimum(jnp.asarray(radius, x.dtype), jnp.asarray(bound, x.dtype))
    return _median_of_raters(x, labels.astype(x.dtype), raters, int(n_raters), most)


class _Own(eqx.Module):
    """Preferred less other, by rater, and B."""

    pairs: RowsByRater
    bound: Float[Array, ""]

    def costs(self, theta: Float[Array, "K k"]) -> Float[Array, " K"]:
        return -self.pairs.sums(jax.nn.log_sigmoid(self.pairs.margins(theta)))


class _State(NamedTuple):
    theta: Float[Array, "K k"]
    value: Float[Array, " K"]
    fall: Float[Array, " K"]

    def moving(self) -> Bool[Array, " K"]:
        return self.fall > rounding_of(self.value)


class _Newton(eqx.Module):
    """A Newton step on the ball for each rater; where it does not fall, the step of a quadratic bound, which does.

    A rater stays where a step gains nothing beyond rounding.
    """

    def init(self, problem: _Own, *, key: PRNGKeyArray | None) -> _State:
        theta = jnp.zeros((problem.pairs.n_raters, problem.pairs.rows.shape[1]), problem.pairs.rows.dtype)
        value = problem.costs(theta)
        return _State(theta, value, jnp.full_like(value, jnp.inf))

    def step(self, problem: _Own, state: _State, *, key: PRNGKeyArray | None) -> _State:
        pairs, margins = problem.pairs, problem.pairs.margins(state.theta)
        ascent = pairs.sums(jax.nn.sigmoid(-margins)[:, None] * pairs.rows)

        def points(needed, weights):
            each = lambda theta, pull, bend: newton_point(theta, pull, bend, problem.bound)  # noqa: E731
            return where_needed(each, needed, state.theta, state.theta, ascent, pairs.gram(weights))

        moving = state.moving()
        fast = points(moving, label_variance(margins))
        fell = problem.costs(fast) < state.value
        sure = points(moving & ~fell, secant_curvature(margins))
        theta = jnp.where(fell[:, None], fast, sure)
        value = problem.costs(theta)
        return _State(theta, value, state.value - value)

    def terminate(self, problem: _Own, state: _State) -> Int[Array, ""]:
        done = ~jnp.any(state.moving())
        return jnp.where(done, Status.CONVERGED.array(), Status.RUNNING.array())


@eqx.filter_jit
def fits_of_raters(
    rows: Float[Array, "n k"], raters: Int[Array, " n"], n_raters: int, bound: Float[Array, ""]
) -> tuple[Float[Array, "K k"], Int[Array, ""]]:
    """(θ̂ [K, k] of each rater from preferred less other, status)."""
    end = iterate(_Newton(), _Own(RowsByRater.of(rows, raters, n_raters), bound), max_steps=MAX_STEPS)
    return end.state.theta, end.status


@eqx.filter_jit
def _median_of_raters(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    raters: Int[Array, " n"],
    n_raters: int,
    bound: Float[Array, ""],
) -> RaterEstimate:
    fits, status = fits_of_raters(labels[:, None] * x, raters, n_raters, bound)
    present = AnswersByRater.of(raters, n_raters, x.dtype).answers > 0
    theta = jnp.nanmedian(jnp.where(present[:, None], fits, jnp.nan), axis=0)
    return RaterEstimate(theta, jnp.ones_like(labels), surprise(theta, x, labels), status, None)


ENTRIES = [
    RaterEntry(
        median_of_raters,
        "median of raters",
        "the median of the raters' own fits, by coordinate (Kleine Buening et al. 2025); ε is not used",
    )
]
