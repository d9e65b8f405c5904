"""One proposal of suspects, examined: who comes back, whose labels then still surprise, and the reward of the rest."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.kernels.lapack import cholesky

from .coordinates import Pairs
from .label_outliers import STEPS, label_surprise, without_most_surprising
from .score_test import ROUNDS, contradicting
from .weighted_fit import PRIOR, first_factor, fit, information


class Examined(NamedTuple):
    """`weights` [N]: 0 for pairs that stay out; `t` [r]: the fit to what counts; `excess`: the last top eigenvalue of
    the information-matrix test (`label_surprise`), 1 if all is well, infinite where it was not taken.
    """

    weights: Float[Array, " N"]
    t: Float[Array, " r"]
    excess: Float[Array, ""]


class _State(NamedTuple):
    """`round`: decisions on suspects so far; `step`: removals of surprising labels so far."""

    kept: Float[Array, " N"]
    suspects: Float[Array, " N"]
    t: Float[Array, " r"]
    factor: Float[Array, "r r"]
    excess: Float[Array, ""]
    round: Int[Array, ""]
    step: Int[Array, ""]
    done: Bool[Array, ""]


def examine(
    pairs: Pairs,
    proposal: Float[Array, " N"],
    budget: Float[Array, ""],
    start: Float[Array, " r"],
    overdispersion: Float[Array, ""] | float = 1.0,
    outliers: bool = True,
) -> Examined:
    """Suspects c = 1 − `proposal` come back unless they contradict the pairs that are left (`contradicting`); then the
    labels go that surprise the fit to the rest (`label_surprise`), where `outliers`; a mass of `budget` goes at most.

    One loop over both, so that the fit is compiled once: fit what counts, then decide on suspects while there are any,
    and on labels after that.
    """
    r = len(start)
    floor = 0.5 * PRIOR * jnp.eye(r, dtype=start.dtype)

    def look(state: _State) -> _State:
        found = fit(pairs, state.kept, state.t, factor=state.factor)
        t, margins = found.t, pairs.margins(found.t)
        state = state._replace(t=t, factor=found.factor)
        factor = cholesky(information(pairs, state.kept, margins) + floor)
        suspicious = jnp.sum(state.suspects) > 1e-6

        def decide_on_suspects():
            left = budget - (pairs.n_pairs - jnp.sum(state.kept) - jnp.sum(state.suspects))
            out, settled = contradicting(pairs, state.suspects, t, factor, left, overdispersion)
            remaining = state.suspects * (1.0 - out)
            back = settled | (state.round >= ROUNDS - 1)
            return state._replace(
                kept=jnp.where(back, state.kept + remaining, state.kept),
                suspects=jnp.where(back, 0.0, remaining),
                round=state.round + 1,
            )

        def decide_on_labels():
            surprise = label_surprise(pairs, state.kept, t, factor)
            left = budget - (pairs.n_pairs - jnp.sum(state.kept))
            kept, calm = without_most_surprising(pairs, state.kept, surprise, budget, left)
            done = calm | (state.step >= STEPS) | (not outliers)
            return state._replace(
                kept=jnp.where(done, state.kept, kept),
                excess=surprise.excess,
                step=state.step + 1,
                done=done,
            )

        return jax.lax.cond(suspicious, decide_on_suspects, decide_on_labels)

    zero = jnp.zeros((), jnp.int32)
    infinite = jnp.asarray(jnp.inf, start.dtype)
    first = _State(
        proposal, 1.0 - proposal, start, first_factor(start), infinite, zero, zero, jnp.asarray(False)
    )
    end = jax.lax.while_loop(lambda s: ~s.done, look, first)
    return Examined(end.kept, end.t, end.excess)
