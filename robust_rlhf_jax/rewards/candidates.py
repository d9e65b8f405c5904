"""Candidate explanations: rewards that some way of doubting pairs leads to, each settled on the pairs it believes."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .config import RobustFit
from .contamination import Cells, contaminated_at_best_length
from .coordinates import UnitFreePairs
from .posterior_fit import ROUNDS, Fit, first_fit, refit
from .proposals import HOLD, UNSURE, Proposal, best_share, proposals

# Mean change of a weight, and relative change of the prior's strength, below which a candidate has settled.
SETTLED_WEIGHTS, SETTLED_STRENGTH = 1e-3, 0.05
# Refits for the proposal that doubts the pairs of which the plain fit is sure: where corrupt pairs have brought that
# fit to zero, it leaves it as slowly as expectation–maximisation does. With many coordinates that is too expensive.
PATIENCE = 40


class Candidates(NamedTuple):
    """`fits` and `weights` [E, N] of the pairs in each, row 0 the plain fit to all pairs, the others what the proposals
    settled on; `unsuspected` [E − 1, N]: the weights of a proposal that doubts pairs for their place alone, else those
    that it settled on.
    """

    fits: Fit
    weights: Float[Array, "E N"]
    unsuspected: Float[Array, "E-1 N"]


class _State(NamedTuple):
    """`lies` [N]: who is corrupt if `fit` is right; `best`: the settled fit and its weights that explain the labels
    best so far, by `value` in nats; `proposed`: the fit and its weights that the proposal ended with.
    """

    fit: Fit
    weights: Float[Array, " N"]
    lies: Float[Array, " N"]
    best: tuple[Fit, Array]
    value: Float[Array, ""]
    proposed: tuple[Fit, Array]
    settling: Array
    round: Int[Array, ""]
    done: Array


def candidates(pairs: UnitFreePairs, cells: Cells, config: RobustFit) -> Candidates:
    """The plain fit, and every proposal settled on the pairs that it believes."""
    table = jax.tree.map(lambda *leaves: jnp.stack(leaves), *proposals(pairs, config))
    rounds = ROUNDS // 2 if pairs.wide else ROUNDS
    zero, ones = first_fit(pairs), jnp.ones(pairs.n_pairs, pairs.rows.dtype)

    def settle(known, given):
        plain, short, honest, index = known
        start = zero._replace(t=given.of_plain * plain.t + given.of_short * short.t)
        start = start._replace(strength=jnp.where(index == 0, zero.strength, plain.strength))
        given = given._replace(
            weights=jnp.where(given.contrary < 0, given.weights, 1.0 - honest[given.contrary])
        )
        (fit, proposed), end = _settled(pairs, cells, given, start, rounds, config)
        plain = jax.tree.map(lambda a, b: jnp.where(index == 0, a, b), fit, plain)
        short = jax.tree.map(lambda a, b: jnp.where(index == 1, a, b), fit, short)
        return (plain, short, honest.at[index].set(end[1]), index + 1), (proposed, end)

    first = (zero, zero, jnp.zeros_like(table.weights), jnp.zeros((), jnp.int32))
    (plain, *_), (proposed, settled) = jax.lax.scan(settle, first, table)
    fits, weights = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), (plain, ones), settled)
    by_place = (table.kind == HOLD) & (table.of_plain > 0)
    return Candidates(fits, weights, jnp.where(by_place[:, None], proposed, settled[1]))


def _settled(pairs: UnitFreePairs, cells: Cells, given: Proposal, start: Fit, rounds: int, config: RobustFit):
    """(fit, weights) as proposed, and once settled: one loop, so that a refit is compiled once."""
    patience = rounds if pairs.wide else PATIENCE

    def _reweighted(pairs, t):
        margins = pairs.margins(t)
        return best_share(jnp.where(given.kind == UNSURE, -jnp.abs(margins), margins), given.keep)

    def _lies(pairs, of_length, fit):
        found = contaminated_at_best_length(pairs.margins(fit.t), Cells(of_length, cells.bins)).found
        return found.lies, jnp.sum(found.log_likelihoods)

    def turn(state: _State) -> _State:
        # A fit from zero comes before anyone is doubted for its margins.
        blank = (state.round == 0) & jnp.all(state.fit.t == 0)
        hold = blank | state.settling | (given.kind == HOLD)
        weights = jax.lax.cond(hold, lambda *_: state.weights, _reweighted, pairs, state.fit.t)
        weights = jnp.where(state.settling & ~blank, 1.0 - state.lies, weights)
        fit = refit(pairs, weights, state.fit, config)
        still = jnp.mean(jnp.abs(weights - state.weights)) < SETTLED_WEIGHTS
        still &= jnp.abs(jnp.log(fit.strength / state.fit.strength)) < SETTLED_STRENGTH
        from_plain = (given.kind == UNSURE) & (given.of_plain > 0)
        most = jnp.where(from_plain & ~state.settling, patience, rounds)
        over = (still & ~blank) | (state.round >= most - 1)
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
            jax.tree.map(
                lambda new, old: jnp.where(state.settling, old, new), (fit, weights), state.proposed
            ),
            state.settling | over,
            jnp.where(over, 0, state.round + 1),
            over & state.settling,
        )

    no, value = jnp.asarray(False), jnp.asarray(-jnp.inf, pairs.rows.dtype)
    begun = (start, given.weights)
    first = _State(
        *begun, jnp.zeros_like(given.weights), begun, value, begun, no, jnp.zeros((), jnp.int32), no
    )
    end = jax.lax.while_loop(lambda s: ~s.done, turn, first)
    return end.proposed, end.best
