"""The robust reward of labelled differences, from coordinates to what is believed; `model.py` says it to a person."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax._iterate import Status, worst_status
from robust_rlhf_jax.checks import check_labels
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.lapack import cholesky, lower_solve
from robust_rlhf_jax.kernels.linalg import matmul

from .alternative import Alternative, alternative_to
from .candidates import candidates
from .config import CEILING, RobustFit
from .contamination import cells_of
from .coordinates import UnitFreePairs, unit_free
from .decision import Decision, Judged, decide, judge, standing
from .doubt import doubted_directions, span_basis
from .explanations import Explanations, noisy_chances
from .interval import interval_of
from .posterior_fit import ROUNDS, at_bound, first_fit, information, missed, refit
from .suspicion import suspicion_of
from .wide_doubt import doubted_span

__all__ = ["CEILING", "Explanations", "RewardFit", "fit_differences", "fit_with_alternative"]

# Halvings of the interval in which the length of the mean reward is sought.
HALVINGS = 20


class RewardFit(NamedTuple):
    """θ̂ [k] and how it came about, in arrays, so that it vmaps; see `RewardModel`.

    `undisputed` [N]: the chance that the most suspicious plausible explanation leaves to a pair; `doubted` [r, k]:
    directions of θ, or rows of 0; `label_noise`: the chance that a label means nothing wherever it stands, 0 where no
    corruption is believed, else the share found, at most ε/2.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax import preferences, rewards
    >>> fit = rewards.fit_data(preferences.rail_pairs(), jnp.float32(0.1))
    >>> fit.theta.shape, int(fit.rank), float(fit.weights.min())
    ((4,), 4, 1.0)
    """

    theta: Float[Array, " k"]
    weights: Float[Array, " N"]
    undisputed: Float[Array, " N"]
    suspicion: Float[Array, " N"]
    epsilon: Float[Array, ""]
    interval: Float[Array, "2"]
    rank: Int[Array, ""]
    doubted: Float[Array, "r k"]
    label_noise: Float[Array, ""]
    explanations: Explanations
    status: Int[Array, ""]

    def probability(self, differences: Float[Array, "*b k"]) -> Float[Array, "*b"]:
        """P(the first option is preferred), given first less second; see `RewardModel.probability`."""
        return self.explanations.mean_probability(self.label_noise, differences)


def fit_differences(
    x: Float[Array, "N k"],
    labels: Float[Array, " N"],
    epsilon: Float[Array, ""],
    groups: Int[Array, " N"] | None = None,
    config: RobustFit | None = None,
) -> RewardFit:
    """The robust reward of labelled differences. Jit- and vmap-able; a new ε does not recompile it.

    1. `candidates`: the plain fit, and fits that doubt some pairs, each settled on the pairs that it believes.
    2. `judge`: how well each explains all labels, if those that contradict it in crowds are corrupt.
    3. `decide`: whether there is corruption that matters, and how far each is believed.
    4. Without corruption: the plain fit. Else their mean, at the length that comes nearest to the mean probability.

    **Arguments:** `epsilon` in [0, ½): the largest share of corrupt pairs, a ceiling; `groups` [N]: the rater of each
    pair as a number from 0 to N − 1, or None; `config`: the constants.

    **Raises:** ValueError for labels other than ±1.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax import load_rail_choices
    >>> from robust_rlhf_jax.rewards import fit_differences
    >>> rail = load_rail_choices()
    >>> fit = fit_differences(rail.differences(), rail.labels, jnp.float32(0.2))
    >>> [round(float(weight), 1) for weight in fit.theta]
    [-1.9, -0.8, -0.2, -0.6]
    """
    check_labels(labels)
    return _fit_differences(x, labels, epsilon, groups, config or RobustFit(), False)[0]


def fit_with_alternative(
    x: Float[Array, "N k"],
    labels: Float[Array, " N"],
    epsilon: Float[Array, ""],
    groups: Int[Array, " N"] | None = None,
    config: RobustFit | None = None,
) -> tuple[RewardFit, Alternative]:
    """`fit_differences`, and the explanation that contradicts the believed one most, if any fits the data, too.

    **Arguments** and **Raises:** as `fit_differences`.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax import load_rail_choices
    >>> from robust_rlhf_jax.rewards import fit_with_alternative
    >>> rail = load_rail_choices()
    >>> fit, other = fit_with_alternative(rail.differences(), rail.labels, jnp.float32(0.2))
    >>> bool(other.exists)  # no other reward explains these choices as well
    False
    """
    check_labels(labels)
    found, alternative = _fit_differences(x, labels, epsilon, groups, config or RobustFit(), True)
    assert alternative is not None
    return found, alternative


@eqx.filter_jit
def plain_fit(
    x: Float[Array, "N k"], labels: Float[Array, " N"], weights: Float[Array, " N"] | None = None
) -> tuple[Float[Array, " k"], Int[Array, ""]]:
    """(θ̂, status) of `fit_differences` at ε = 0, without compiling the rest; rows of weight 0 play no part but in the
    scales of the columns. Jit- and vmap-able.

    **Example:**

    >>> from robust_rlhf_jax import load_rail_choices, preferences, rewards
    >>> rail = load_rail_choices()
    >>> theta, status = rewards.plain_fit(rail.differences(), rail.labels)
    >>> [name for name, weight in zip(preferences.RAIL_FEATURES, theta) if weight < 0]
    ['price', 'time', 'change', 'comfort']
    """
    pairs = unit_free(x, labels)
    weights = jnp.ones_like(labels) if weights is None else weights
    config = RobustFit()
    fit = jax.lax.fori_loop(0, ROUNDS, lambda _, last: refit(pairs, weights, last, config), first_fit(pairs))
    seen = jnp.where(weights > 0, pairs.margins(fit.t), jnp.inf)
    separable = (jnp.min(seen) > 0) | at_bound(pairs, fit, config)
    return matmul(pairs.to_theta, fit.t), jnp.where(
        separable & (fit.status == Status.CONVERGED), Status.SEPARABLE.array(), fit.status
    )


@eqx.filter_jit
def _fit_differences(
    x: Float[Array, "N k"],
    labels: Float[Array, " N"],
    epsilon: Float[Array, ""],
    groups: Int[Array, " N"] | None,
    config: RobustFit,
    compare: bool,
):
    """(RewardFit, Alternative or None where nobody asks to `compare`)."""
    pairs = unit_free(x, labels)
    found = candidates(pairs, cells_of(pairs), config)
    plain = jax.tree.map(lambda leaf: leaf[0], found.explanations.fit)
    spread = jnp.ones((), x.dtype) if groups is None else overdispersion(pairs, plain.t, groups)
    judged = judge(pairs, found.explanations)
    decision = decide(judged, epsilon, spread, config)
    # Labels that the plain fit predicts one and all contradict nothing.
    predicted = jnp.min(pairs.margins(plain.t)) > 0
    decision = decision._replace(corrupt=decision.corrupt & (epsilon > 0) & ~predicted)
    beliefs = _believed(pairs, plain.t, judged, decision, epsilon, config)
    stands = standing(beliefs.probability, decision.apart < config.plausible)
    interval = interval_of(judged, decision, beliefs.share, epsilon, spread, config)
    none = (epsilon == 0) | predicted
    if pairs.wide:
        doubted = doubted_span(
            pairs, found.unsuspected, 1.0 - judged.lies[1:], judged.t[1:], config.covered, none
        )
    else:
        doubted = span_basis(
            jnp.where(none, 0.0, 1.0)
            * jax.lax.map(
                lambda part: doubted_directions(pairs, part[0], part[1], part[2], config.covered),
                (found.unsuspected, 1.0 - judged.lies[1:], judged.t[1:]),
            ).reshape(-1, pairs.rows.shape[1])
        )
    fitted = RewardFit(
        theta=matmul(pairs.to_theta, beliefs.t),
        weights=beliefs.weights,
        undisputed=jnp.where(none, 1.0, beliefs.undisputed),
        suspicion=suspicion_of(judged, beliefs.probability, beliefs.weights, epsilon),
        epsilon=beliefs.share,
        interval=jnp.where(none, 0.0, interval),
        rank=pairs.rank,
        doubted=matmul(doubted, pairs.to_theta.T),
        label_noise=jnp.where(decision.corrupt, beliefs.noise, 0.0).astype(x.dtype),
        explanations=Explanations(
            matmul(judged.t.at[0].set(jnp.where(decision.corrupt, judged.t[0], beliefs.t)), pairs.to_theta.T),
            beliefs.probability,
            1.0 - judged.lies,
            judged.needed,
            decision.evidence,
            decision.apart[stands.likeliest],
            stands.belief,
            stands.likeliest,
            judged.noise._replace(rates=jnp.where(decision.corrupt, judged.noise.rates, 0.0)),
        ),
        status=_status(judged.status, beliefs, predicted | at_bound(pairs, plain, config), config),
    )
    if not compare:
        return fitted, None
    other = alternative_to(judged, stands.likeliest, decision, epsilon, config)
    return fitted, other._replace(exists=other.exists & ~none)


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


def _believed(
    pairs: UnitFreePairs,
    plain: Float[Array, " r"],
    judged: Judged,
    decision: Decision,
    epsilon: Float[Array, ""],
    config: RobustFit,
) -> _Beliefs:
    """The plain fit on all pairs; or the mean of the explanations, or of those that hardly differ from one of them:
    whichever is nearest to what is believed.

    Near: Σ KL(chance of a label ‖ σ(θᵀx)) over the pairs as far as they are left honest, each θ at its best length. Of
    two contending rewards the mean alone may be neither: the surer one, believed at 1 to 4, outweighs the other in it.
    """
    only_plain = jnp.zeros_like(decision.weights).at[0].set(1.0)
    probability = jnp.where(decision.corrupt, decision.weights, only_plain)
    lies = jnp.where(decision.corrupt, 1.0, 0.0) * matmul(probability, judged.lies)
    alike = jnp.where(decision.apart < config.plausible, probability, 0.0)
    mixed = jnp.concatenate([probability[None], alike / positive_or_one(jnp.sum(alike, axis=1))[:, None]])
    # As many corrupt pairs as were found may be there unseen, up to ε in all.
    noise = jnp.minimum(0.5 * epsilon, matmul(probability, judged.needed))
    chance = matmul(probability, noisy_chances(judged.margins, judged.noise, noise))
    # A row counts as if it were of middling length at most: one that lies absurdly far out must not shrink θ.
    lengths = pairs.lengths()
    bounded = jnp.minimum(1.0, jnp.median(lengths) / positive_or_one(lengths)) ** 2
    t = _nearest(mixed, judged, chance, (1.0 - lies) * bounded)
    plausible = decision.weights > config.plausible
    disputed = jnp.max(jnp.where(plausible[:, None], judged.lies, 0.0), axis=0)
    return _Beliefs(
        jnp.where(decision.corrupt, t, plain),
        probability,
        1.0 - lies,
        1.0 - disputed,
        jnp.mean(lies),
        noise,
    )


def _nearest(
    mixed: Float[Array, "M E"], judged: Judged, chance: Float[Array, " N"], weights: Float[Array, " N"]
) -> Float[Array, " r"]:
    """Of M mixtures of explanations, rows of zeros left out, the nearest to the chances of the labels at its length."""

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


def overdispersion(pairs: UnitFreePairs, t: Float[Array, " r"], groups: Int[Array, " N"]) -> Float[Array, ""]:
    """How much more the scores of whole groups vary than if a group's labels were independent, at least 1.

    tr(F⁻¹Σ_g s_g s_gᵀ)/rank with s_g = Σ_{n∈g} r_n y_n: the design effect of Moulton 1986.
    """
    margins = pairs.margins(t)
    scores = missed(margins)[:, None] * pairs.rows
    by_group = jax.ops.segment_sum(scores, groups, pairs.n_pairs)
    # A hundredth of a pair along every axis, so that axes of which nothing is known divide by something.
    known = information(pairs, jnp.ones_like(margins), margins) + 0.01 * jnp.eye(len(t), dtype=t.dtype)
    whitened = lower_solve(cholesky(known), by_group.T)
    return jnp.maximum(jnp.sum(whitened**2) / jnp.maximum(pairs.rank, 1), 1.0)


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
