"""The share of the pairs that is certainly corrupt, and the share that may be."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .config import RobustFit
from .decision import Decision, Judged

# Shares of flipped labels that are tried, and the fall in log-likelihood that the 95 % interval allows (χ²/2).
FLIPS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.09, 0.11, 0.13, 0.15, 0.175, 0.2, 0.225, 0.25, 0.3, 0.35, 0.4, 0.45)  # fmt: skip  # noqa: E501
ALLOWED_FALL = 1.92
STEPS = 12


def interval_of(
    judged: Judged,
    decision: Decision,
    estimate: Float[Array, ""],
    epsilon: Float[Array, ""],
    overdispersion: Float[Array, ""] | float,
    rank: Int[Array, ""],
    config: RobustFit,
) -> Float[Array, "2"]:
    """[lower, upper]; `rank`: r, the dimension of what the pairs speak about.

    - lower: with evidence of corruption, the least share that an explanation needs which is plausible whatever ε, less
      the share that honest people's choices seem to need.
    - upper: without evidence, the larger of `most_flips` and the share that a plausible explanation needs, up to the
      ceiling ε; with evidence the ceiling, since there may be more corrupt pairs than those found.
    - For 2r labels, whatever they say, some reward predicts all of them in half of the cases (Cover 1965): if a reward
      predicts all n labels, only n − 2r of them exclude flips, and the upper end is the ceiling if n ≤ 2r.

    The interval presumes that the share is at most ε, and Bradley–Terry with a linear reward: corrupt pairs that follow
    another reward as honest people would leave no trace, and no interval covers them.
    """
    ahead = jnp.max(jnp.where(decision.free > 0, decision.evidence, -jnp.inf))
    evidence = decision.corrupt | (ahead > config.certainty + config.nonlinearity * judged.n_informative)
    least = jnp.min(jnp.where(decision.free > config.plausible, judged.needed, jnp.inf))
    lower = jnp.where(evidence, jnp.maximum(least - config.habit, 0.0), 0.0)
    lower = jnp.where(decision.corrupt, jnp.minimum(lower, estimate), lower)
    flips = _unseen_flips(judged, overdispersion, rank)
    suspected = jnp.max(jnp.where(decision.weights > config.plausible, judged.needed, 0.0))
    possible = jnp.minimum(jnp.maximum(flips, suspected), epsilon)
    upper = jnp.where(decision.corrupt | (lower > 0), epsilon, possible)
    return jnp.stack([lower, jnp.maximum(upper, jnp.maximum(lower, estimate))])


def _unseen_flips(
    judged: Judged, overdispersion: Float[Array, ""] | float, rank: Int[Array, ""]
) -> Float[Array, ""]:
    """`most_flips`, over the labels that can exclude any."""
    n = judged.n_informative
    silent = jnp.where(judged.predicted, 2.0 * rank, 0.0).astype(n.dtype)
    flips = most_flips(judged.margins[0], overdispersion)
    return jnp.where(n > silent, flips * n / jnp.maximum(n - silent, 1.0), 1.0)


def most_flips(
    margins: Float[Array, " N"], overdispersion: Float[Array, ""] | float = 1.0
) -> Float[Array, ""]:
    """The largest share q of labels flipped at random that the labels allow, with 95 % confidence.

    Profile likelihood of P(agree) = (1 − 2q)σ(s·m) + q over s > 0 along the fitted direction; a fall of 1.92, times the
    raters' overdispersion, is allowed. To first order a flip at random is a higher temperature (s falls): only pairs
    with large margins tell the two apart, and where there are few of them the answer is large, and has to be.
    """
    m = jnp.clip(margins, -50.0, 50.0)

    def profile(log_s, q):
        def value(log_s):
            return jnp.sum(jnp.log((1.0 - 2.0 * q) * jax.nn.sigmoid(jnp.exp(log_s) * m) + q + 1e-30))

        def step(_, at):
            p = jax.nn.sigmoid(jnp.exp(at) * m)
            mix = jnp.clip((1.0 - 2.0 * q) * p + q, 1e-6, 1.0 - 1e-6)
            slope = (1.0 - 2.0 * q) * p * (1.0 - p) * jnp.exp(at) * m
            known = jnp.sum(slope**2 / (mix * (1.0 - mix)))
            move = jnp.clip(jnp.sum(slope / mix) / jnp.maximum(known, 1e-12), -0.5, 0.5)
            return jnp.clip(at + move, -3.0, 3.0)

        log_s = jax.lax.fori_loop(0, STEPS, step, log_s)
        return log_s, value(log_s)

    shares = jnp.asarray(FLIPS, m.dtype)
    _, values = jax.lax.scan(profile, jnp.zeros((), m.dtype), shares)
    allowed = values >= jnp.max(values) - ALLOWED_FALL * overdispersion
    last = len(FLIPS) - 1 - jnp.argmax(allowed[::-1])
    # Between the last share that is allowed and the next one that is not: linear.
    after = jnp.minimum(last + 1, len(FLIPS) - 1)
    fall = jnp.maximum(values[last] - values[after], 1e-12)
    part = jnp.clip((values[last] - (jnp.max(values) - ALLOWED_FALL * overdispersion)) / fall, 0.0, 1.0)
    return shares[last] + part * (shares[after] - shares[last])
