"""The robust reward of labelled differences, from coordinates to what is believed; `model.py` says it to a person."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.checks import check_labels, is_traced
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.row_order import check_rows

from .alternative import Alternative
from .candidates import candidates
from .comparisons import Comparisons
from .conclusion import Evidence, conclude
from .config import RobustFit
from .contamination import NoiseByMargin, cells_of, most_bins
from .coordinates import UnitFreePairs, unit_free
from .decision import dispersed, judge
from .doubt import doubted_directions, span_basis
from .lack_of_fit import alike_labels
from .overdispersion import overdispersion
from .posterior_fit import settled_fit
from .prior_strength import at_bound
from .reward_fit import RewardFit
from .usual_sizes import filled, first, rows_to_fill
from .wide_doubt import doubted_span


def fit_differences(
    x: Float[Array, "N k"],
    labels: Float[Array, " N"],
    epsilon: Float[Array, ""],
    groups: Int[Array, " N"] | None = None,
    config: RobustFit | None = None,
    comparisons: Int[Array, " N"] | None = None,
) -> RewardFit:
    """The robust reward of labelled differences. Jit- and vmap-able; a new ε does not recompile it.

    1. `candidates`: the plain fit, and fits that doubt some pairs, each settled on the pairs that it believes.
    2. `judge`: how well each explains all labels, if those that contradict it in crowds are corrupt.
    3. `decide`: whether there is corruption that matters, and how far each is believed.
    4. Without corruption: the plain fit. Else their mean, at the length that comes nearest to the mean probability.

    **Arguments:** `epsilon` in [0, ½): the largest share of corrupt pairs, a ceiling; `groups` [N]: the rater of each
    pair as a number from 0 to N − 1, or None; `config`: the constants; `comparisons` [N]: which two options each pair
    compares, as a number from 0 to N − 1, or None (`preferences.comparison_numbers`).

    **Raises:** ValueError for labels other than ±1, and rows in two orders.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax import load_rail_choices
    >>> from robust_rlhf_jax.rewards import fit_differences
    >>> rail = load_rail_choices()
    >>> fit = fit_differences(rail.differences(), rail.labels, jnp.float32(0.2))
    >>> [round(float(weight), 1) for weight in fit.theta]
    [-1.9, -0.8, -0.2, -0.6]
    """
    return _fit(x, labels, epsilon, groups, config, comparisons, compare=False)[0]


def fit_with_alternative(
    x: Float[Array, "N k"],
    labels: Float[Array, " N"],
    epsilon: Float[Array, ""],
    groups: Int[Array, " N"] | None = None,
    config: RobustFit | None = None,
    comparisons: Int[Array, " N"] | None = None,
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
    found, alternative = _fit(x, labels, epsilon, groups, config, comparisons, compare=True)
    assert alternative is not None
    return found, alternative


def plain_fit(
    x: Float[Array | np.ndarray, "N k"],
    labels: Float[Array | np.ndarray, " N"],
    weights: Float[Array | np.ndarray, " N"] | None = None,
) -> tuple[Float[Array, " k"], Int[Array, ""]]:
    """(θ̂, status) of `fit_differences` at ε = 0, but for rounding, without compiling the rest; rows of weight 0 play no
    part but in the scales of the columns. Jit- and vmap-able.

    **Raises:** ValueError for labels other than ±1, weights that are negative or not finite, another number
    of either, or rows in two orders.

    **Example:**

    >>> from robust_rlhf_jax import load_rail_choices, preferences, rewards
    >>> rail = load_rail_choices()
    >>> theta, status = rewards.plain_fit(rail.differences(), rail.labels)
    >>> [name for name, weight in zip(preferences.RAIL_FEATURES, theta) if weight < 0]
    ['price', 'time', 'change', 'comfort']
    """
    check_rows(x=x, labels=labels, weights=weights)
    check_labels(labels)
    for name, part in (("labels", labels), ("weights", weights)):
        if part is not None and np.shape(part) != x.shape[:1]:
            raise ValueError(f"{name} has shape {np.shape(part)}: give one for each of the {len(x)} pairs.")
    if weights is not None and not is_traced(weights):
        held = np.asarray(weights)
        if not np.all((held >= 0) & np.isfinite(held)):
            raise ValueError("weights must be finite and not negative.")
    more = rows_to_fill(x, labels, weights)
    counted = np.ones(labels.shape, labels.dtype) if weights is None else weights
    return _plain_fit(filled(x, more), filled(labels, more, 1.0), filled(counted, more))


@eqx.filter_jit
def _plain_fit(x: Float[Array, "N k"], labels: Float[Array, " N"], weights: Float[Array, " N"]):
    pairs = unit_free(x, labels)
    weights = pairs.informative * weights
    config = RobustFit()
    fit = settled_fit(pairs, weights, config)
    seen = jnp.where(weights > 0, pairs.margins(fit.t), jnp.inf)
    separable = (jnp.min(seen) > 0) & jnp.any(weights > 0) | at_bound(pairs, fit.strength, config)
    return matmul(pairs.to_theta, fit.t), jnp.where(
        separable & (fit.status == Status.CONVERGED), Status.SEPARABLE.array(), fit.status
    )


def _fit(
    x: Float[Array, "N k"],
    labels: Float[Array, " N"],
    epsilon: Float[Array, ""],
    groups: Int[Array, " N"] | None,
    config: RobustFit | None,
    comparisons: Int[Array, " N"] | None,
    compare: bool,
) -> tuple[RewardFit, Alternative | None]:
    """(The fit; the alternative, or None unless asked to `compare`), of a usual number of pairs."""
    check_rows(x=x, labels=labels, groups=groups, comparisons=comparisons)
    check_labels(labels)
    n, more = len(x), rows_to_fill(x, labels, epsilon, groups, config, comparisons)
    found, other = _fit_differences(
        filled(x, more),
        filled(labels, more, 1.0),
        epsilon,
        None if groups is None else filled(groups, more),
        jnp.asarray(n),
        config or RobustFit(),
        None if comparisons is None else filled(comparisons, more),
        compare,
    )
    if not more:
        return found, other
    each = found.explanations
    # More bins than n pairs have are copies of the last one.
    noise = NoiseByMargin(*(first(part, most_bins(n)) for part in each.noise))
    explanations = each._replace(weights=first(each.weights, n), noise=noise)
    by_pair = {name: first(getattr(found, name), n) for name in ("weights", "undisputed", "suspicion")}
    other = None if other is None else other._replace(suspicion=first(other.suspicion, n))
    return found._replace(explanations=explanations, **by_pair), other


@eqx.filter_jit
def _fit_differences(
    x: Float[Array, "N k"],
    labels: Float[Array, " N"],
    epsilon: Float[Array, ""],
    groups: Int[Array, " N"] | None,
    given: Int[Array, ""],
    config: RobustFit,
    comparisons: Int[Array, " N"] | None,
    compare: bool,
) -> tuple[RewardFit, Alternative | None]:
    """`_fit` of the first `given` rows; the others are 0."""
    pairs = unit_free(x, labels)
    cells = cells_of(pairs)
    found = candidates(pairs, cells, config)
    plain = jax.tree.map(lambda leaf: leaf[0], found.explanations.fit)
    dispersion = jnp.ones((), x.dtype) if groups is None else overdispersion(pairs, plain.t, groups)
    same = None if comparisons is None else Comparisons(comparisons, pairs.informative)
    judged = judge(pairs, found.explanations, same)
    if same is not None:
        judged = judged._replace(alike=alike_labels(judged, found.explanations.margins, same, config.ceiling))
    if groups is not None:
        judged = dispersed(judged, found.explanations, cells, dispersion)
    # If all labels are predicted, or no pair may be doubted, no direction is doubted.
    none = (epsilon == 0) | judged.predicted
    doubts = doubted(pairs, found.unsuspected, 1.0 - judged.lies[1:], judged.t[1:], config.covered, none)
    evidence = Evidence(
        judged,
        plain.t,
        pairs.lengths(),
        doubts,
        dispersion,
        at_bound(pairs, plain.strength, config),
        pairs.to_theta,
        pairs.rank,
        given,
    )
    return conclude(evidence, epsilon, config, compare)


def doubted(
    pairs: UnitFreePairs,
    unsuspected: Float[Array, "E N"],
    weights: Float[Array, "E N"],
    t: Float[Array, "E r"],
    covered: float,
    none: Bool[Array, ""],
) -> Float[Array, "m r"]:
    """Orthonormal directions, and rows of 0, that only suspects of one of the explanations cover."""
    if pairs.wide:
        return doubted_span(pairs, unsuspected, weights, t, covered, none)
    found = jax.lax.map(
        lambda part: doubted_directions(pairs, part[0], part[1], part[2], covered), (unsuspected, weights, t)
    )
    return span_basis(jnp.where(none, 0.0, 1.0) * found.reshape(-1, pairs.rows.shape[1]))
