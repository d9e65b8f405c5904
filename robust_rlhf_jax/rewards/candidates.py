"""Candidate explanations: rewards that some way of doubting pairs leads to, each settled on the pairs it believes."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.quantile import keep_top
from robust_rlhf_jax.kernels.spectral import linear_scores
from robust_rlhf_jax.moments.covariance import filter_whitened

from .config import RobustFit
from .contamination import Cells, contaminated_at_best_length
from .coordinates import Pairs
from .posterior_fit import ROUNDS, Fit, first_fit, missed, refit

# Widest coordinates for which a filter of second moments has power and is affordable.
FILTER_UP_TO = 64
# Rows alike to this share of the largest count as the same point.
SAME = 1e-5
# Mean change of a weight, and relative change of the prior's strength, below which a candidate has settled.
SETTLED_WEIGHTS, SETTLED_STRENGTH = 1e-3, 0.05
# What a proposal does to the weights before each refit: nothing; keep the pairs about which the fit is least sure;
# those that it finds likeliest; remove the steepest gradients (Sever). And what every candidate does in the end.
HOLD, UNSURE, LIKELY, STEEP, BELIEVED = range(5)


class Candidates(NamedTuple):
    """`fits` and `weights` [E, N] of the pairs in each, row 0 the plain fit to all pairs, the others what the proposals
    settled on; `unsuspected` [E − 1, N]: the weights of a proposal that doubts pairs for their place alone, else those
    that it settled on.
    """

    fits: Fit
    weights: Float[Array, "E N"]
    unsuspected: Float[Array, "E-1 N"]


class _Proposal(NamedTuple):
    """`kind` of reweighting; `keep`: the share of pairs that stays; `weights` [N] at first; where t begins: at
    `of_plain` times the plain fit plus `of_short` times the fit to the short rows.
    """

    kind: Int[Array, ""]
    keep: Float[Array, ""]
    weights: Float[Array, " N"]
    of_plain: Float[Array, ""]
    of_short: Float[Array, ""]


class _State(NamedTuple):
    """`lies` [N]: who is corrupt if `fit` is right; `best`: the settled fit and its weights that explain the labels
    best so far, by `value` in nats; `proposed` [N]: the weights that the proposal ended with.
    """

    fit: Fit
    weights: Float[Array, " N"]
    lies: Float[Array, " N"]
    best: tuple[Fit, Array]
    value: Float[Array, ""]
    proposed: Float[Array, " N"]
    settling: Array
    round: Int[Array, ""]
    done: Array


def candidates(pairs: Pairs, cells: Cells, config: RobustFit) -> Candidates:
    """The plain fit and every proposal of the configuration, as fitted and as settled on the pairs that it believes.

    | proposal | doubts | after |
    |---|---|---|
    | plain | nobody | |
    | short | the longer half of the rows | Mallows |
    | flat | all but the half of 1 − 2ε of which the fit to short rows is least sure: no lie pays there | |
    | unsure | the 2ε of which the plain fit is surest | |
    | likely | the ε least likely, from the fit to short rows | the paper's Algorithm 2 |
    | opposite | the 2ε least likely, from minus the plain fit | the paper's Algorithm 2 |
    | crowd | the ε in the largest crowds of equal rows | |
    | steep | the ε of the steepest gradients | Sever (Diakonikolas et al. 2019) |
    | filtered | what the covariance filter removes; up to 64 dimensions | Diakonikolas et al. 2017 |

    ε is the configuration's `ceiling` whatever the user says: what may be believed is decided later.
    """
    wanted = [name for name in PROPOSALS if name in ("plain", "short", *config.proposals)]
    if pairs.rows.shape[1] > FILTER_UP_TO:
        wanted = [name for name in wanted if name != "filtered"]
    table = jax.tree.map(
        lambda *leaves: jnp.stack(leaves), *(PROPOSALS[name](pairs, config) for name in wanted)
    )
    rounds = ROUNDS // 2 if pairs.wide else ROUNDS
    zero, ones = first_fit(pairs), jnp.ones(pairs.n_pairs, pairs.rows.dtype)

    def settle(known, given):
        plain, short, index = known
        start = zero._replace(t=given.of_plain * plain.t + given.of_short * short.t)
        start = start._replace(strength=jnp.where(index == 0, zero.strength, plain.strength))
        proposed, fit, end = _settled(pairs, cells, given, start, rounds, config)
        plain = jax.tree.map(lambda a, b: jnp.where(index == 0, a, b), fit, plain)
        short = jax.tree.map(lambda a, b: jnp.where(index == 1, a, b), fit, short)
        return (plain, short, index + 1), (proposed, end)

    first = (zero, zero, jnp.zeros((), jnp.int32))
    (plain, *_), (proposed, settled) = jax.lax.scan(settle, first, table)
    fits, weights = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), (plain, ones), settled)
    by_place = (table.kind == HOLD) & (table.of_plain > 0)
    return Candidates(fits, weights, jnp.where(by_place[:, None], proposed, settled[1]))


def _settled(pairs: Pairs, cells: Cells, given: _Proposal, start: Fit, rounds: int, config: RobustFit):
    """(weights as proposed, fit to them, (fit, weights) once settled): one loop, so that a refit is compiled once."""
    kinds = (
        lambda state: state.weights,
        lambda state: best_share(-jnp.abs(pairs.margins(state.fit.t)), given.keep),
        lambda state: best_share(pairs.margins(state.fit.t), given.keep),
        lambda state: _without_steepest(pairs, state.fit.t, state.weights, given.keep, rounds),
        lambda state: 1.0 - state.lies,
    )

    def _lies(pairs, of_length, fit):
        found = contaminated_at_best_length(pairs.margins(fit.t), Cells(of_length, cells.bins)).found
        return found.lies, jnp.sum(found.log_likelihoods)

    def turn(state: _State) -> _State:
        kind = jnp.where(state.settling, BELIEVED, given.kind)
        # A fit from zero comes before anyone is doubted for its margins.
        blank = (state.round == 0) & jnp.all(state.fit.t == 0)
        weights = jax.lax.switch(jnp.where(blank, HOLD, kind), kinds, state)
        fit = refit(pairs, weights, state.fit, config)
        still = jnp.mean(jnp.abs(weights - state.weights)) < SETTLED_WEIGHTS
        still &= jnp.abs(jnp.log(fit.strength / state.fit.strength)) < SETTLED_STRENGTH
        over = (still & ~blank) | (state.round >= rounds - 1)
        lies, value = jax.lax.cond(
            state.settling | over, _lies, lambda *_: (state.lies, state.value), pairs, cells.of_length, fit
        )
        better = state.settling & (value > state.value)
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), (fit, weights), state.best)
        return _State(
            fit,
            weights,
            lies,
            best,
            jnp.where(better, value, state.value),
            jnp.where(state.settling, state.proposed, weights),
            state.settling | over,
            jnp.where(over, 0, state.round + 1),
            over & state.settling,
        )

    no, value = jnp.asarray(False), jnp.asarray(-jnp.inf, pairs.rows.dtype)
    first = _State(
        start, given.weights, jnp.zeros_like(given.weights), (start, given.weights), value, given.weights,
        no, jnp.zeros((), jnp.int32), no,
    )  # fmt: skip
    proposed = jax.lax.while_loop(lambda s: ~s.settling, turn, first)
    end = jax.lax.while_loop(lambda s: ~s.done, turn, proposed)
    return end.proposed, proposed.fit, end.best


def best_share(merit: Float[Array, " N"], share) -> Float[Array, " N"]:
    """Weights of the `share` of the rows that has the most merit; rows that tie share what is left."""
    return keep_top(merit, jnp.ones_like(merit), jnp.asarray(share * len(merit), merit.dtype))


def crowds(pairs: Pairs) -> Float[Array, " N"]:
    """How many rows stand where row n stands, up to their sign: copies of one pair stand together."""
    r = pairs.rows.shape[1]
    probe = jnp.cos(jnp.arange(1, r + 1, dtype=pairs.rows.dtype) ** 2)
    key = jnp.abs(matmul(pairs.rows, probe))
    cell = jnp.round(key / jnp.maximum(jnp.max(key), 1e-30) / SAME).astype(jnp.int32)
    return jnp.zeros(round(1.0 / SAME) + 1, key.dtype).at[cell].add(1.0)[cell]


def _without_steepest(pairs: Pairs, t, weights, keep, rounds: int) -> Float[Array, " N"]:
    """The weights less a part of those pairs whose gradients stand out most, until the share `keep` is left."""
    gradients = missed(pairs.margins(t))[:, None] * pairs.rows
    n = pairs.n_pairs
    left = jnp.maximum(jnp.sum(weights) - (1.0 - keep) * n / max(rounds // 2, 1), keep * n)
    return keep_top(-linear_scores(gradients, weights)[0], weights, left)


def _proposal(pairs: Pairs, kind: int, keep: float, weights=None, *, of_plain=0.0, of_short=0.0) -> _Proposal:
    dtype = pairs.rows.dtype
    share, plain, short = (jnp.asarray(value, dtype) for value in (keep, of_plain, of_short))
    weights = jnp.ones(pairs.n_pairs, dtype) if weights is None else weights
    return _Proposal(jnp.asarray(kind, jnp.int32), share, weights, plain, short)


def _short(pairs: Pairs, config: RobustFit) -> _Proposal:
    return _proposal(pairs, HOLD, 0.5, best_share(-pairs.lengths(), 0.5))


def _crowd(pairs: Pairs, config: RobustFit) -> _Proposal:
    some = 1.0 - config.ceiling
    return _proposal(pairs, HOLD, some, best_share(-crowds(pairs), some), of_plain=1.0)


def _filtered(pairs: Pairs, config: RobustFit) -> _Proposal:
    left = filter_whitened(pairs.rows, jnp.asarray(config.ceiling, pairs.rows.dtype), pairs.rank)
    return _proposal(pairs, HOLD, 1.0 - config.ceiling, left, of_plain=1.0)


# The first two, from which others start, always take part.
PROPOSALS: dict[str, Callable[[Pairs, RobustFit], _Proposal]] = {
    "plain": lambda pairs, c: _proposal(pairs, HOLD, 1.0),
    "short": _short,
    "flat": lambda pairs, c: _proposal(pairs, UNSURE, 0.5 - c.ceiling, of_short=1.0),
    "unsure": lambda pairs, c: _proposal(pairs, UNSURE, 1.0 - 2.0 * c.ceiling, of_plain=1.0),
    "likely": lambda pairs, c: _proposal(pairs, LIKELY, 1.0 - c.ceiling, of_short=1.0),
    "opposite": lambda pairs, c: _proposal(pairs, LIKELY, 1.0 - 2.0 * c.ceiling, of_plain=-1.0),
    "crowd": _crowd,
    "steep": lambda pairs, c: _proposal(pairs, STEEP, 1.0 - c.ceiling, of_plain=1.0),
    "filtered": _filtered,
}
