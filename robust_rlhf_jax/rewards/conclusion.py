"""What is concluded from judged explanations: which is believed, what each pair counts, and θ."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax._iterate import Status, worst_status
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.sorting import median_of_positive

from .alternative import Alternative, alternative_to
from .config import RobustFit, among_informative
from .decision import Decision, Judged, Standing, decide, standing
from .explanations import Explanations, noisy_chances
from .interval import interval_of
from .reward_fit import RewardFit
from .suspicion import suspicion_of

# Halvings of the interval in which the length of the mean reward is sought.
HALVINGS = 20


class Evidence(NamedTuple):
    """What a conclusion needs of the pairs: the explanations as `judged`; `plain` [r], the fit to all pairs, and
    whether it `separates` their labels; `lengths` [N] of the rows; orthonormal directions that are `doubted` [m, r],
    and rows of 0; `overdispersion` of the labels of one rater; `to_theta` [k, r] and `rank` of the coordinates;
    `given`: how many pairs there are, informative or not; shares are of these.
    """

    judged: Judged
    plain: Float[Array, " r"]
    lengths: Float[Array, " N"]
    doubted: Float[Array, "m r"]
    overdispersion: Float[Array, ""]
    separates: Bool[Array, ""]
    to_theta: Float[Array, "k r"]
    rank: Int[Array, ""]
    given: Int[Array, ""] | int


def conclude(
    seen: Evidence, epsilon: Float[Array, ""], config: RobustFit, compare: bool
) -> tuple[RewardFit, Alternative | None]:
    """The fit that follows from what is believed; the alternative, or None unless asked to `compare`."""
    judged = seen.judged
    epsilon = among_informative(epsilon, seen.given, judged.n_informative)
    decision = decide(judged, epsilon, seen.overdispersion, config)
    predicted = judged.predicted
    doubted = (epsilon > 0) & ~predicted
    decision = decision._replace(corrupt=decision.corrupt & doubted, slipped=decision.slipped & doubted)
    beliefs = _believed(seen, decision, epsilon, config)
    stands = standing(beliefs.probability, decision.apart < config.plausible)
    interval = interval_of(judged, decision, beliefs.share, epsilon, seen.overdispersion, seen.rank, config)
    # A pair that nothing contradicts is not certainly corrupt.
    interval = interval.at[0].set(jnp.where(predicted, 0.0, interval[0]))
    none = (epsilon == 0) | predicted
    of_given = judged.n_informative / seen.given
    fitted = RewardFit(
        theta=matmul(seen.to_theta, beliefs.t),
        weights=beliefs.weights,
        undisputed=jnp.where(none, 1.0, beliefs.undisputed),
        suspicion=suspicion_of(judged, beliefs.probability, beliefs.weights, epsilon),
        epsilon=of_given * beliefs.share,
        interval=jnp.where(epsilon == 0, 0.0, of_given * interval),
        rank=seen.rank,
        doubted=_in_columns(seen.doubted, seen.to_theta),
        label_noise=beliefs.noise.astype(judged.margins.dtype),
        explanations=_explanations(seen, decision, beliefs, stands, of_given),
        status=_status(judged.status, beliefs, predicted | seen.separates, config),
    )
    if not compare:
        return fitted, None
    other = alternative_to(judged, stands.likeliest, decision, epsilon, config)
    return fitted, other._replace(exists=other.exists & ~none)


def _explanations(
    seen: Evidence, decision: Decision, beliefs: "_Beliefs", stands: Standing, of_given: Float[Array, ""]
) -> Explanations:
    """What a user sees of the judged explanations; `of_given`: the share of the pairs that is informative."""
    judged, corrupt = seen.judged, decision.corrupt
    return Explanations(
        matmul(judged.t.at[0].set(jnp.where(corrupt, judged.t[0], beliefs.t)), seen.to_theta.T),
        beliefs.probability,
        1.0 - judged.lies,
        of_given * judged.needed,
        decision.evidence,
        decision.apart[stands.likeliest],
        stands.belief,
        stands.likeliest,
        judged.noise._replace(rates=jnp.where(corrupt, judged.noise.rates, 0.0)),
    )


class _Beliefs(NamedTuple):
    """What follows from a decision: `t` [r], `probability` [E], `weights`, `undisputed` [N], `share` left out, `noise`
    of a label.
    """

    t: Float[Array, " r"]
    probability: Float[Array, " E"]
    weights: Float[Array, " N"]
    undisputed: Float[Array, " N"]
    share: Float[Array, ""]
    noise: Float[Array, ""]


def _believed(seen: Evidence, decision: Decision, epsilon: Float[Array, ""], config: RobustFit) -> _Beliefs:
    """The plain fit on all pairs; or the mean of the explanations, or of those that hardly differ from one of them:
    whichever is nearest to what is believed.

    Near: Σ KL(chance of a label ‖ σ(θᵀx)) over the pairs as far as they are left honest, each θ at its best length. The
    mean of two contending rewards may be near neither: the surer one outweighs the other even if believed at 1 to 4.
    """
    judged, lengths = seen.judged, seen.lengths
    only_plain = jnp.zeros_like(decision.weights).at[0].set(1.0)
    probability = jnp.where(decision.corrupt, decision.weights, only_plain)
    lies = jnp.where(decision.corrupt, 1.0, 0.0) * matmul(probability, judged.lies)
    alike = jnp.where(decision.apart < config.plausible, probability, 0.0)
    mixed = jnp.concatenate([probability[None], alike / positive_or_one(jnp.sum(alike, axis=1))[:, None]])
    # As many corrupt pairs as were found may be undetected, up to ε in all.
    noise = jnp.minimum(0.5 * epsilon, matmul(probability, judged.needed))
    chance = matmul(probability, noisy_chances(judged.margins, judged.noise, noise))
    # A row counts as if its length were the median at most: one absurdly far out must not shrink θ.
    bounded = jnp.minimum(1.0, median_of_positive(lengths) / positive_or_one(lengths)) ** 2
    t = _nearest(mixed, judged, chance, (1.0 - lies) * bounded)
    plausible = decision.weights > config.plausible
    disputed = jnp.max(jnp.where(plausible[:, None], judged.lies, 0.0), axis=0)
    honest, slips = _without_corruption(seen, decision)
    return _Beliefs(
        jnp.where(decision.corrupt, t, honest),
        probability,
        1.0 - lies,
        1.0 - disputed,
        jnp.sum(lies) / judged.n_informative,
        jnp.where(decision.corrupt, noise, slips),
    )


def _without_corruption(seen: Evidence, decision: Decision) -> tuple[Float[Array, " r"], Float[Array, ""]]:
    """(The plain fit, 0); or, if slips explain the labels as well as corruption does, the reward that is likeliest with
    slips, and their share: the plain fit may follow a label that is one.
    """
    none = jnp.zeros((), seen.plain.dtype)
    if seen.judged.alike is None:
        return seen.plain, none
    row, slips = decision.slips, seen.judged.alike.slips
    reward = slips.factor[row] * seen.judged.t[row]
    return jnp.where(decision.slipped, reward, seen.plain), jnp.where(
        decision.slipped, slips.share[row], none
    )


def _nearest(
    mixed: Float[Array, "M E"], judged: Judged, chance: Float[Array, " N"], weights: Float[Array, " N"]
) -> Float[Array, " r"]:
    """The nearest to the labels' chances, at its length, of M mixtures of explanations; rows of 0 are left out."""

    def at_best_length(mix):
        margins = matmul(mix, judged.margins)
        length = _nearest_length(margins, chance, weights)
        # KL but for what does not depend on θ.
        apart = -matmul(weights, jax.nn.log_sigmoid(length * margins) - (1.0 - chance) * length * margins)
        return length, jnp.where(jnp.any(mix > 0), apart, jnp.inf)

    lengths, apart = jax.lax.map(at_best_length, mixed)
    best = jnp.argmin(apart)
    return lengths[best] * matmul(mixed[best], judged.t)


def _nearest_length(
    margins: Float[Array, " N"], chance: Float[Array, " N"], weights: Float[Array, " N"]
) -> Float[Array, ""]:
    """argmin over κ in [0, 2] of Σ_n w_n KL(chance_n ‖ σ(κ m_n)), whose derivative rises, by bisection."""

    def halve(_, bounds):
        low, high = bounds
        middle = 0.5 * (low + high)
        longer = matmul(weights, margins * (chance - jax.nn.sigmoid(middle * margins))) > 0
        return jnp.where(longer, middle, low), jnp.where(longer, high, middle)

    zero = jnp.zeros((), margins.dtype)
    low, high = jax.lax.fori_loop(0, HALVINGS, halve, (zero, zero + 2.0))
    return 0.5 * (low + high)


def _in_columns(doubted: Float[Array, "m r"], to_theta: Float[Array, "k r"]) -> Float[Array, "m k"]:
    """Doubted directions of t in columns of x: with thousands of them a product that takes as long as a pass."""

    def product():
        return matmul(doubted, to_theta.T)

    def nothing():
        return jnp.zeros((len(doubted), len(to_theta)), doubted.dtype)

    return jax.lax.cond(jnp.any(doubted != 0), product, nothing)


def _status(
    statuses: Int[Array, " E"], beliefs: _Beliefs, separable: Bool[Array, ""], config: RobustFit
) -> Int[Array, ""]:
    """The worst end of the fits that are believed."""
    believed = beliefs.probability > config.plausible
    one_by_one = jnp.where(believed, statuses, Status.CONVERGED.array())
    worst = worst_status(
        *one_by_one, jnp.where(separable, Status.SEPARABLE.array(), Status.CONVERGED.array())
    )
    return jnp.where(jnp.all(jnp.isfinite(beliefs.t)), worst, Status.NONFINITE.array())
