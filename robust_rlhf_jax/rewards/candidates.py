"""Candidate explanations: rewards that some way of doubting pairs leads to, each settled on the pairs it believes."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .config import RobustFit
from .contamination import AtBestLength, Cells, contaminated_at_best_length, unjudged
from .coordinates import UnitFreePairs
from .posterior_fit import Fit, first_fit, has_settled, most_rounds, refit
from .proposals import HOLD, UNSURE, Proposal, best_share, independent, proposals

# Mean change of a weight below which a candidate has settled.
SETTLED_WEIGHTS = 1e-3
# Refits for the proposal that doubts the pairs of which the plain fit is sure. Where corrupt pairs have brought that
# fit to zero, the proposal leaves zero as slowly as expectation–maximisation does. With many coordinates that is too
# expensive.
PATIENCE = 40
# A later refit of a wide candidate counts as no worse if it explains the labels by up to this many nats per axis less;
# chance moves ½. Earlier refits explain a little more, since their prior is still too weak.
LATER = 0.01


class Explanation(NamedTuple):
    """A `fit`, its `margins` [N], the `weights` [N] of the pairs in it, and how well it explains all labels."""

    fit: Fit
    margins: Float[Array, " N"]
    weights: Float[Array, " N"]
    judged: AtBestLength


class Candidates(NamedTuple):
    """`explanations` [E]: row 0 the plain fit to all pairs, the others what the proposals settled on; `unsuspected`
    [E − 1, N]: the weights of a proposal that doubts pairs for their place alone, else those that it settled on.
    """

    explanations: Explanation
    unsuspected: Float[Array, "E-1 N"]


class _State(NamedTuple):
    """`now`, judged where that is needed; `best`, the best judged so far; `proposed`, what the proposal ended with."""

    now: Explanation
    best: Explanation
    proposed: Explanation
    settling: Array
    round: Int[Array, ""]
    done: Array


def candidates(pairs: UnitFreePairs, cells: Cells, config: RobustFit) -> Candidates:
    """The plain fit, and every proposal settled on the pairs that it believes."""
    table = jax.tree.map(lambda *leaves: jnp.stack(leaves), *proposals(pairs, config))
    rounds = most_rounds(pairs)
    zero, everyone = first_fit(pairs), pairs.informative

    def settle(known, given):
        plain, short, honest, index = known
        start = zero._replace(t=given.of_plain * plain.fit.t + given.of_short * short.t)
        start = start._replace(strength=jnp.where(index == 0, zero.strength, plain.fit.strength))
        given = given._replace(
            weights=jnp.where(given.contrary < 0, given.weights, everyone - honest[given.contrary])
        )
        return _Settling(pairs, cells, given, rounds, config).from_fit(start)

    def in_turn(known, given):
        plain, short, honest, index = known
        proposed, end = settle(known, given)
        plain = _where(index == 0, proposed, plain)
        short = _where(index == 1, proposed.fit, short)
        honest = honest.at[index].set(end.weights)
        return (plain, short, honest, index + 1), (proposed.weights, end)

    nobody = Explanation(zero, jnp.zeros_like(everyone), everyone, unjudged(cells, everyone.dtype))
    first = (nobody, zero, jnp.zeros_like(table.weights), jnp.zeros((), jnp.int32))
    if pairs.wide:
        plain, proposed, settled = _side_by_side(table, first, settle, in_turn, config)
    else:
        (plain, *_), (proposed, settled) = jax.lax.scan(in_turn, first, table)
    explanations = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), plain, settled)
    by_place = (table.kind == HOLD) & (table.of_plain > 0)
    return Candidates(explanations, jnp.where(by_place[:, None], proposed, settled.weights))


def _side_by_side(table: Proposal, first, settle, in_turn, config: RobustFit):
    """(plain, the weights proposed, what settled): the first group in turn, then proposals of a group in lockstep.

    With many columns, a product with the rows takes as long as reading them, and for several fits hardly longer than
    for one.
    """
    begin, *groups = independent(len(table.keep), config)
    given = jax.tree.map(lambda leaf: leaf[: begin.stop], table)
    (plain, short, honest, index), part = jax.lax.scan(in_turn, first, given)
    parts = [part]
    for group in groups:
        if group:
            given = jax.tree.map(lambda leaf, group=group: leaf[group.start : group.stop], table)
            ends, settled = jax.vmap(settle, (None, 0))((plain, short, honest, index), given)
            honest = honest.at[group.start : group.stop].set(settled.weights)
            parts.append((ends.weights, settled))
    proposed, settled = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)
    return plain, proposed, settled


class _Settling(NamedTuple):
    """A proposal, `given`: at most `rounds` refits as it proposes, and at most as many again until it settles."""

    pairs: UnitFreePairs
    cells: Cells
    given: Proposal
    rounds: int
    config: RobustFit

    @property
    def wanders(self) -> Bool[Array, ""]:
        """Whether the proposal doubts the pairs of which the plain fit is sure. Its 0–1 weights make it wander, so that
        it settles from the best round.
        """
        return (self.given.kind == UNSURE) & (self.given.of_plain > 0)

    def from_fit(self, start: Fit) -> tuple[Explanation, Explanation]:
        """Refits as proposed, then until settled, in one loop, so that a refit is compiled once."""
        weights, no = self.given.weights, jnp.asarray(False)
        nobody = Explanation(start, self.pairs.margins(start.t), weights, unjudged(self.cells, weights.dtype))
        first = _State(nobody, nobody, nobody, no, jnp.zeros((), jnp.int32), no)
        end = jax.lax.while_loop(lambda s: ~s.done, self.turn, first)
        return end.proposed, end.best

    def turn(self, state: _State) -> _State:
        """A refit, and where the loop then stands."""
        last, pairs, wanders = state.now, self.pairs, self.wanders
        # A fit from zero comes before anyone is doubted for its margins.
        blank = (state.round == 0) & jnp.all(last.fit.t == 0)
        weights = self._weights(state, blank)
        fit = refit(pairs, weights, last.fit, self.config)
        margins = pairs.margins(fit.t)
        still = jnp.sum(jnp.abs(weights - last.weights)) < SETTLED_WEIGHTS * pairs.n_informative
        still &= has_settled(last.fit, fit)
        patience = self.rounds if pairs.wide else PATIENCE
        most = jnp.where(wanders & ~state.settling, patience, self.rounds)
        over = (still & ~blank) | (state.round >= most - 1)
        seen = state.settling | wanders
        judged = jax.lax.cond(seen | over, self._judged, lambda _: last.judged, margins)
        now = Explanation(fit, margins, weights, judged)
        slack = jnp.where(state.settling, LATER * pairs.rank if pairs.wide else 0.0, 0.0)
        best = _where(seen & (judged.value > state.best.judged.value - slack), now, state.best)
        proposed = _where(state.settling, state.proposed, now)
        begins = over & ~state.settling
        now = _where(begins & wanders, best, now)
        # The best round counts only the pairs of which the fit is unsure; a fit to all honest pairs is to replace it.
        value = jnp.where(begins, -jnp.inf, best.judged.value)
        best = best._replace(judged=best.judged._replace(value=value))
        again = jnp.where(over, 0, state.round + 1)
        return _State(now, best, proposed, state.settling | over, again, over & state.settling)

    def _weights(self, state: _State, blank: Bool[Array, ""]) -> Float[Array, " N"]:
        """The weights of the next refit: as the proposal chooses them, or what the last explanation leaves honest."""
        last = state.now
        hold = blank | state.settling | (self.given.kind == HOLD)
        weights = jax.lax.cond(hold, lambda _: last.weights, self._reweighted, last.margins)
        honest = self.pairs.informative - last.judged.found.lies
        return jnp.where(state.settling & ~blank, honest, weights)

    def _reweighted(self, margins: Float[Array, " N"]) -> Float[Array, " N"]:
        merit = jnp.where(self.given.kind == UNSURE, -jnp.abs(margins), margins)
        return best_share(self.pairs, merit, self.given.keep)

    def _judged(self, margins: Float[Array, " N"]) -> AtBestLength:
        return contaminated_at_best_length(margins, self.cells)


def _where(condition, new, old):
    """`new` if the condition holds, else `old`, leaf by leaf."""
    return jax.lax.cond(condition, lambda a, b: a, lambda a, b: b, new, old)
