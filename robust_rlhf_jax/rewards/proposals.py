"""Ways of doubting pairs, from which candidate explanations start."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.quantile import keep_top
from robust_rlhf_jax.moments.covariance import filter_whitened

from .config import RobustFit
from .coordinates import UnitFreePairs

# Widest coordinates for which a filter of second moments has power and is affordable.
FILTER_UP_TO = 64
# Rows alike to this share of the largest count as the same point.
SAME = 1e-5
# What a proposal does to the weights before each refit: nothing; keep the pairs about which the fit is least sure;
# those that it finds likeliest.
HOLD, UNSURE, LIKELY = range(3)
# The `contrary` of a proposal that has none.
NOBODY = -1


class Proposal(NamedTuple):
    """`kind` of reweighting; `keep`: the share of pairs that stays; `weights` [N] at first; where t begins: at
    `of_plain` times the plain fit plus `of_short` times the fit to the short rows; `contrary`: the number of the
    proposal before it whose accused it believes, and nobody else at first, or `NOBODY`.
    """

    kind: Int[Array, ""]
    keep: Float[Array, ""]
    weights: Float[Array, " N"]
    of_plain: Float[Array, ""]
    of_short: Float[Array, ""]
    contrary: Int[Array, ""]


def proposals(pairs: UnitFreePairs, config: RobustFit) -> list[Proposal]:
    """Those that the configuration names, in the order of `PROPOSALS`, then the contrary ones.

    | proposal | doubts | after |
    |---|---|---|
    | plain | nobody | |
    | short | the longer half of the rows | Mallows |
    | flat | all but a share (1 − 2ε)/2 about which the fit to short rows is least certain: flips gain little there | |
    | unsure | the 2ε about which the plain fit, and then its own, is most certain; it settles from its best round | |
    | opposite | the 2ε least likely, from minus the plain fit | the paper's Algorithm 2 |
    | crowd | the ε in the largest crowds of equal rows | |
    | filtered | what the covariance filter removes; up to 64 dimensions | Diakonikolas et al. 2017 |
    | contrary_short, contrary_unsure | all but those that the settled fit of that name leaves out | |

    ε is the configuration's `ceiling` whatever the user says: what may be believed is decided later. The contrary ones
    find the honest majority where a fit to the corrupt pairs accuses it in crowds.

    **Raises:** ValueError for a name that is none of these.
    """
    named = {"plain", "short", *config.proposals}
    unknown = sorted(named - {*PROPOSALS, *CONTRARY})
    if unknown:
        raise ValueError(
            f"proposals: {unknown[0]!r} is unknown; there are {', '.join([*PROPOSALS, *CONTRARY])}."
        )
    if pairs.rows.shape[1] > FILTER_UP_TO:
        named.discard("filtered")
    made = {name: make(pairs, config) for name, make in PROPOSALS.items() if name in named}
    order = list(made)
    for name, accuser in CONTRARY.items():
        if name in named and accuser in made:
            made[name] = _proposal(pairs, HOLD, 1.0, contrary=order.index(accuser))
    return list(made.values())


def independent(count: int, config: RobustFit) -> list[range]:
    """The places of `count` proposals in groups, one after the other. After the first, whose two come in turn, those
    of a group need nothing of each other.
    """
    first = {"plain", "short", *config.proposals}
    contrary = sum(name in first and accuser in first for name, accuser in CONTRARY.items())
    return [range(2), range(2, count - contrary), range(count - contrary, count)]


def best_share(pairs: UnitFreePairs, merit: Float[Array, " N"], share) -> Float[Array, " N"]:
    """Weights of the `share` of the informative rows that has the most merit; rows that tie share what is left."""
    return keep_top(merit, pairs.informative, jnp.asarray(share * pairs.n_informative, merit.dtype))


def crowds(pairs: UnitFreePairs) -> Float[Array, " N"]:
    """How many rows stand where row n stands, up to their sign: copies of one pair stand together."""
    r = pairs.rows.shape[1]
    probe = jnp.cos(jnp.arange(1, r + 1, dtype=pairs.rows.dtype) ** 2)
    key = jnp.abs(matmul(pairs.rows, probe))
    cell = jnp.round(key / jnp.maximum(jnp.max(key), 1e-30) / SAME).astype(jnp.int32)
    return jnp.zeros(round(1.0 / SAME) + 1, key.dtype).at[cell].add(1.0)[cell]


def _proposal(
    pairs: UnitFreePairs, kind: int, keep: float, weights=None, *, of_plain=0.0, of_short=0.0, contrary=NOBODY
) -> Proposal:
    dtype = pairs.rows.dtype
    share, plain, short = (jnp.asarray(value, dtype) for value in (keep, of_plain, of_short))
    weights = pairs.informative if weights is None else weights
    number, accused = (jnp.asarray(value, jnp.int32) for value in (kind, contrary))
    return Proposal(number, share, weights, plain, short, accused)


def _short(pairs: UnitFreePairs, config: RobustFit) -> Proposal:
    return _proposal(pairs, HOLD, 0.5, best_share(pairs, -pairs.lengths(), 0.5))


def _crowd(pairs: UnitFreePairs, config: RobustFit) -> Proposal:
    some = 1.0 - config.ceiling
    return _proposal(pairs, HOLD, some, best_share(pairs, -crowds(pairs), some), of_plain=1.0)


def _filtered(pairs: UnitFreePairs, config: RobustFit) -> Proposal:
    ceiling = jnp.asarray(config.ceiling, pairs.rows.dtype)
    left = filter_whitened(pairs.rows, ceiling, pairs.rank, pairs.informative)
    return _proposal(pairs, HOLD, 1.0 - config.ceiling, left, of_plain=1.0)


# The first two, from which others start, always take part.
PROPOSALS: dict[str, Callable[[UnitFreePairs, RobustFit], Proposal]] = {
    "plain": lambda pairs, c: _proposal(pairs, HOLD, 1.0),
    "short": _short,
    "flat": lambda pairs, c: _proposal(pairs, UNSURE, 0.5 - c.ceiling, of_short=1.0),
    "unsure": lambda pairs, c: _proposal(pairs, UNSURE, 1.0 - 2.0 * c.ceiling, of_plain=1.0),
    "opposite": lambda pairs, c: _proposal(pairs, LIKELY, 1.0 - 2.0 * c.ceiling, of_plain=-1.0),
    "crowd": _crowd,
    "filtered": _filtered,
}
# The proposal whose accused pairs each contrary one believes.
CONTRARY = {"contrary_short": "short", "contrary_unsure": "unsure"}
