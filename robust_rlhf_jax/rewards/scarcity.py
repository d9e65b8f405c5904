"""Directions of θ that so few pairs show that corrupting those pairs decides what is said of them."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.lapack import eigh
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.sorting import ascending

from .config import RobustFit, among_informative
from .coordinates import count_of, unit_free
from .doubt import span_basis
from .posterior_fit import secant_information
from .reward_fit import RewardFit

# Steps from the longest row to the direction that it and similar rows have in common; each is about cubic.
SHARPENINGS = 4


class Secured(NamedTuple):
    """`theta` [k]: θ̂ without what it says of directions about which nothing is known; `information` [k, k]."""

    theta: Float[Array, " k"]
    information: Float[Array, "k k"]


def secured(
    x: Float[Array, "N k"],
    found: RewardFit,
    epsilon: Float[Array, ""],
    config: RobustFit | None = None,
    *,
    believe_disputes: bool = False,
) -> Secured:
    """What the undisputed pairs tell of θ whichever share ε of the pairs is corrupt: their secant information, set to 0
    along doubted directions and along those that hardly more pairs show than may still be corrupt
    (`scarce_directions`); θ̂ with 0 along both.

    If all pairs that show a direction are corrupted alike, no pair contradicts them: only their number says whether
    they could all be corrupted. Scarce directions are known more precisely than doubted ones: a doubted direction
    counts only if it lies mostly outside of their span.

    `believe_disputes`: whether disputed pairs show nothing and are among the εN. Then only the rest of the εN may be
    among the others, which is wrong if honest pairs are disputed. A direction that clearly more than εN undisputed
    pairs show is not doubted, since they cannot all be corrupted. Without `believe_disputes`, disputed rows that were
    planted far out turn the coordinates towards themselves, and other directions are taken for theirs.

    Pairs of equal options show nothing: all εN may be among the others (`among_informative`).
    """
    config, heard, left = config or RobustFit(), x, epsilon
    informative = count_of(jnp.any(x != 0, axis=1))
    if believe_disputes:
        disputed = jnp.where(jnp.any(x != 0, axis=1), 1.0 - found.undisputed, 0.0)
        left = jnp.maximum(epsilon - jnp.mean(disputed), 0.0)
        heard = jnp.where((found.undisputed >= config.plausible)[:, None], x, 0.0)
    pairs = unit_free(heard, jnp.ones_like(found.undisputed))
    t = matmul(pairs.from_theta, found.theta)
    doubted = matmul(found.doubted, pairs.from_theta.T)

    def scarce_where(share):
        corrupt = among_informative(share, len(x), informative)
        return scarce_directions(pairs.rows, corrupt, config, informative)

    if believe_disputes:
        scarce, disputable = jax.lax.map(scarce_where, jnp.stack([left, epsilon]))
        doubted = _within(doubted, disputable)
    else:
        scarce = scarce_where(left)
    unknown = span_basis(jnp.concatenate([scarce, _beyond(doubted, scarce)]))
    t = _without(t, unknown)
    rows = _without(pairs.rows, unknown)
    # A row counts as far as it shows what is known: the rest of its label speaks of the unknown.
    length = jnp.sum(pairs.rows**2, axis=1)
    share = jnp.sum(rows**2, axis=1) / positive_or_one(length)
    cleared = eqx.tree_at(lambda p: p.rows, pairs, rows)
    known = secant_information(cleared, found.undisputed * share, cleared.margins(t))
    return Secured(matmul(pairs.to_theta, t), matmul(pairs.from_theta.T, matmul(known, pairs.from_theta)))


def _without(rows: Float[Array, "m r"], basis: Float[Array, "r r"]):
    """The part of the rows that is orthogonal to the rows of the basis."""
    return rows - matmul(matmul(rows, basis.T), basis)


def _beyond(doubted: Float[Array, "r r"], scarce: Float[Array, "r r"]) -> Float[Array, "r r"]:
    """Orthonormal directions of the doubted span at more than 45° to the scarce one, as rows."""
    rest = _without(_basis(doubted), scarce)
    # The eigenvalues are the squared sines of the principal angles.
    sines, axes = eigh(matmul(rest.T, rest))
    return jnp.where(sines[:, None] > 0.5, axes.T, 0.0)


def _within(doubted: Float[Array, "r r"], scarce: Float[Array, "r r"]) -> Float[Array, "r r"]:
    """Orthonormal directions of the doubted span at less than 45° to the scarce one, as rows."""
    basis = _basis(doubted)
    shared = matmul(matmul(scarce, basis.T), basis)
    # The eigenvalues are the squared cosines of the principal angles.
    cosines, axes = eigh(matmul(shared.T, shared))
    return jnp.where(cosines[:, None] > 0.5, axes.T, 0.0)


def _basis(directions: Float[Array, "m r"]) -> Float[Array, "r r"]:
    """Orthonormal rows that span these, of any length; 0 beyond their dimension."""
    length = jnp.linalg.norm(directions, axis=1, keepdims=True)
    return span_basis(jnp.where(length > 0, directions / jnp.maximum(length, 1e-30), 0.0))


def decisive(share: Float[Array, ""], config: RobustFit) -> Float[Array, ""]:
    """The share of the information on a direction that a `share` ε of the pairs must hold to decide it; rises with ε.

    Corrupt pairs need not hold all of it: if there are four of them beside one honest pair, one margin explains all
    five, since labels that agree in four cases of five contradict no reward.
    """
    return jnp.minimum(config.decisive + config.decisive_rise * share, config.decisive_most)


def scarce_directions(
    z: Float[Array, "N r"],
    share: Float[Array, ""],
    config: RobustFit,
    counted: Float[Array, ""] | int | None = None,
) -> Float[Array, "r r"]:
    """Orthonormal directions as rows, 0 where not scarce: those of whose Σ_n (vᵀz_n)² a `share` of the rows, or of as
    many as are `counted`, holds more than `decisive`.

    The candidates v are the longest row, the longest of what the rows have beyond it, and so on: in whitened
    coordinates the rows that alone show a direction are the long ones. Each is sharpened to the direction of largest
    Σ_n (vᵀz_n)⁴ nearby, which similar rows share with it. All turn with z.

    **Source:** the fixed point of Hyvärinen & Oja 1997 for the fourth moment.
    """
    n, r = z.shape

    def unit(v):
        return v / jnp.maximum(jnp.linalg.norm(v), 1e-30)

    count = jnp.floor(share * (n if counted is None else counted)).astype(jnp.int32)
    last = jnp.arange(n) >= n - count

    def next_direction(rest, _):
        length = jnp.linalg.norm(rest, axis=1)
        longest = jnp.argmax(length)
        v = jax.lax.fori_loop(
            0, SHARPENINGS, lambda _, v: unit(matmul(matmul(rest, v) ** 3, rest)), unit(rest[longest])
        )
        shown = ascending(matmul(z, v) ** 2)
        held = jnp.sum(jnp.where(last, shown, 0.0))
        scarce = held > decisive(share, config) * jnp.sum(shown)
        # What rounding leaves after the last direction of the span is no direction.
        alive = length[longest] > 1e-3
        return rest - jnp.outer(matmul(rest, v), v), jnp.where(scarce & alive, v, 0.0)

    return jax.lax.scan(next_direction, z, length=r)[1]
