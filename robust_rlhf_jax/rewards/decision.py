"""What to believe: every candidate judged by one likelihood, and weighed against the others by its evidence.

Which pairs a candidate calls corrupt: `contamination.py`. Which weights follow: `conclusion.py`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.kernels.lapack import eigh
from robust_rlhf_jax.kernels.linalg import matmul

from .candidates import Explanation
from .comparisons import Comparisons, more_seen
from .config import RobustFit
from .contamination import Cells, NoiseByMargin, contaminated_at_best_length
from .coordinates import UnitFreePairs, count_of
from .once_each import alike, once_each
from .posterior_fit import Fit, margin_covariance, optimism_by_draws, own_leverages
from .slips import Slips

# Draws of the Bayesian bootstrap: the standard error of a belief of ½ is then .03.
DRAWS = 256


class AlikeLabels(NamedTuple):
    """If labels of one comparison are alike because features miss a quality (`lack_of_fit.py`), those of one rater not:
    log-likelihoods [E] in nats with corruption (`corrupted`), nats that explanations [E] gain without corruption
    (`honest`), the share that `recurs` of what each accuses, and `slips` [E]: without corruption, if some labels of
    comparisons that recur are slips instead; its factors are of the margins of `Judged`.
    """

    corrupted: Float[Array, " E"]
    honest: Float[Array, " E"]
    recurs: Float[Array, " E"]
    slips: Slips


class Judged(NamedTuple):
    """Every candidate at its best length, judged.

    `t` [E, r]; `margins` [E, N]; `log_likelihoods` [E, N] of the labels in nats, corruption allowed for; in all [E]:
    `honest`, not allowed for, and `dispersed`, where labels of one rater are alike; `rates`, `lies` [E, N], `needed`
    and `convicted` [E] of `Contaminated`; `noise`: of each, by margin; `status` [E]; `informative` [N] as in
    `UnitFreePairs`: other pairs have no part in what is decided; `comparisons_seen` [E] in nats, as `more_seen` says;
    `alike`: None where no comparison recurs.
    """

    t: Float[Array, "E r"]
    margins: Float[Array, "E N"]
    log_likelihoods: Float[Array, "E N"]
    honest: Float[Array, " E"]
    dispersed: Float[Array, " E"]
    rates: Float[Array, "E N"]
    lies: Float[Array, "E N"]
    needed: Float[Array, " E"]
    convicted: Float[Array, " E"]
    noise: NoiseByMargin
    status: Int[Array, " E"]
    informative: Float[Array, " N"]
    comparisons_seen: Float[Array, " E"]
    alike: AlikeLabels | None = None

    @property
    def n_informative(self) -> Float[Array, ""]:
        return count_of(self.informative)

    @property
    def predicted(self) -> Bool[Array, ""]:
        """Whether the plain fit predicts the labels one and all: they contradict nothing."""
        least = jnp.min(jnp.where(self.informative > 0, self.margins[0], jnp.inf))
        return (least > 0) & jnp.any(self.informative > 0)


class Decision(NamedTuple):
    """`corrupt`: whether there is evidence of corruption that matters; `slipped`: whether there would be if no honest
    label were a slip; `slips`: the row that is likeliest with slips; `weights` [E]: of the explanations, given ε;
    `free` [E]: the same whatever ε; `admissible` [E]; `evidence` [E]: nats ahead of the best reward without corruption;
    `at_stake` [E]: accuracy that the plain fit loses if the explanation is right; `apart` [E, E].
    """

    corrupt: Bool[Array, ""]
    slipped: Bool[Array, ""]
    slips: Int[Array, ""]
    weights: Float[Array, " E"]
    free: Float[Array, " E"]
    admissible: Bool[Array, " E"]
    evidence: Float[Array, " E"]
    at_stake: Float[Array, " E"]
    apart: Float[Array, "E E"]


def judge(pairs: UnitFreePairs, found: Explanation, comparisons: Comparisons | None = None) -> Judged:
    """Every explanation [E] at its best length, its likelihood as of pairs that it has not seen; `comparisons`: None
    if hardly any pair recurs.
    """
    same = alike(found.weights, found.margins)
    prior = margin_covariance(pairs)

    def seen_by(weights: Float[Array, " N"], fit: Fit) -> tuple[Float[Array, ""], Float[Array, ""]]:
        margins = pairs.margins(fit.t)
        leverages = own_leverages(pairs, weights, fit, margins, prior)
        seen = optimism_by_draws(margins, weights, leverages)
        return seen, more_seen(seen, margins, weights, jnp.mean(leverages, axis=0), comparisons)

    seen, more = once_each(seen_by, same, found.weights, found.fit)
    best, scale = found.judged.found, found.judged.scale[:, None]
    return Judged(
        scale * found.fit.t,
        scale * found.margins,
        best.log_likelihoods - seen[:, None] * pairs.informative / pairs.n_informative,
        found.judged.honest - seen,
        found.judged.value - seen,
        best.rates,
        best.lies,
        best.needed,
        best.convicted,
        found.judged.noise,
        found.fit.status,
        pairs.informative,
        more,
    )


def dispersed(judged: Judged, found: Explanation, cells: Cells, overdispersion: Float[Array, ""]) -> Judged:
    """The same where labels of one rater are `overdispersion` times as alike as independent ones: rates cost as many
    times more.
    """
    dearer = cells._replace(overdispersion=overdispersion)
    value = jax.lax.map(lambda margins: contaminated_at_best_length(margins, dearer).value, found.margins)
    return judged._replace(dispersed=judged.dispersed - (found.judged.value - value))


def decide(
    judged: Judged,
    epsilon: Float[Array, ""],
    overdispersion: Float[Array, ""] | float,
    config: RobustFit,
) -> Decision:
    """Whether pairs are corrupt, and how far each explanation is believed.

    - An explanation is admissible if it convicts at most `allowance`·ε of the pairs, and needs at most ε + 2·`habit` of
      them corrupt. If none is, the plain fit is believed and no pair is left out, since ε is a ceiling.
    - Admissible ones are weighed by `bootstrap_weights`.
    - There is corruption if the best of those that are believed (`plausible`) is ahead of every candidate without
      corruption by `certainty` nats, and if it matters: accuracy of `material` is at stake, or the lead exceeds
      `nonlinearity` nats per pair, by which honest people may depart from a linear reward.

    Nats are divided by `overdispersion`, where labels of one rater are dependent (Wedderburn 1974). Whether there is
    corruption is asked of the `dispersed` ones, in which rates cost as many times more, so that their price stays; and
    of labels that may be alike, or slips, where a comparison recurs, instead of alike where a rater does.
    """
    n = judged.n_informative
    finite = jnp.isfinite(judged.dispersed) & jnp.all(jnp.isfinite(judged.t), axis=1)
    first = jnp.arange(len(finite)) == 0
    few_convicted = judged.convicted <= config.allowance * epsilon
    few_needed = judged.needed <= epsilon + 2.0 * config.habit
    allowed = finite & few_convicted & few_needed
    admissible = allowed | (first & ~jnp.any(allowed))
    differ = apart(judged)
    same = differ < config.plausible
    weights, free = jax.lax.map(
        lambda eligible: bootstrap_weights(
            judged.log_likelihoods, eligible, overdispersion, same, judged.informative
        ),
        jnp.stack([admissible, finite]),
    )
    at_stake = _at_stake(judged)
    # The lead must be one of those that are returned: believed, with those that hardly differ from them.
    believed = allowed & (matmul(same.astype(weights.dtype), weights) >= config.plausible)
    staked = matmul(weights, jnp.where(finite, at_stake, 0.0)) > config.material

    def is_found(evidence: Float[Array, " E"]) -> Bool[Array, ""]:
        lead = jnp.max(jnp.where(believed, evidence, -jnp.inf))
        return (lead > config.certainty) & (staked | (lead > config.nonlinearity * n))

    honest = jnp.where(finite, judged.honest, -jnp.inf)
    evidence = _evidence(judged, jnp.max(honest), _excused(judged, honest), admissible, overdispersion)
    corrupt, slipped, row = is_found(evidence), jnp.asarray(False), jnp.asarray(0)
    if judged.alike is not None:
        slips = jnp.where(finite, judged.alike.slips.value, -jnp.inf)
        most, row = jnp.max(slips), jnp.argmax(slips)
        # Slips and a missed quality explain the same labels: what the better one leaves is evidence.
        evidence = jnp.minimum(evidence, _evidence(judged, most, most, admissible, overdispersion))
        found, corrupt = corrupt, is_found(evidence)
        slipped = found & ~corrupt
    return Decision(corrupt, slipped, row, weights, free, admissible, evidence, at_stake, differ)


def _excused(judged: Judged, honest: Float[Array, " E"]) -> Float[Array, "*E"]:
    """Nats of the best reward without corruption, if features miss a quality: of the labels that each accuses, only
    those that recur are excused so.
    """
    alike = judged.alike
    return jnp.max(honest if alike is None else honest + alike.recurs[:, None] * alike.honest, axis=-1)


def _evidence(
    judged: Judged,
    honest: Float[Array, ""],
    excused: Float[Array, "*E"],
    admissible: Bool[Array, " E"],
    overdispersion: Float[Array, ""] | float,
) -> Float[Array, " E"]:
    """Nats by which each is ahead of the best reward without corruption, which has `honest` nats if labels are
    independent. Where labels of one comparison may be alike and it has `excused` nats, no more than the best admissible
    one has if they are independent: that comparisons recur is no evidence.

    Labels are alike because of raters or because of comparisons. Both explain the same labels, so that only the one
    that leaves less evidence is allowed for.
    """
    independent, alike = (judged.dispersed - honest) / overdispersion, judged.alike
    if alike is None:
        return independent
    most = jnp.max(jnp.where(admissible, independent, -jnp.inf))
    return jnp.minimum(most, alike.corrupted - excused)


class Standing(NamedTuple):
    """Explanations that hardly differ are taken as one: the `likeliest` row, and `belief` [E] in each of them; in rows
    that differ from the likeliest one, without what is already counted for it.
    """

    belief: Float[Array, " E"]
    likeliest: Int[Array, ""]


def standing(probability: Float[Array, " E"], same: Bool[Array, "E E"]) -> Standing:
    """What several candidates find is one explanation, whose belief must not be split: the likeliest row is the one
    that is believed most of those that are the `same` as the row with most belief around it.
    """
    belief = matmul(same.astype(probability.dtype), probability)
    around = same[jnp.argmax(belief)]
    likeliest = jnp.argmax(jnp.where(around, probability, -1.0))
    # A row between two rows that differ may be the same as both.
    rest = matmul(same.astype(probability.dtype), jnp.where(same[likeliest], 0.0, probability))
    return Standing(jnp.where(same[likeliest], belief, rest), likeliest)


def apart(judged: Judged) -> Float[Array, "E E"]:
    """How much two explanations differ: the share of the pairs in which they prefer other options, or that only one of
    them accuses, whichever is more.
    """
    accuses = jnp.where(judged.lies > 0.5, 1.0, -1.0).astype(judged.margins.dtype)
    return jnp.maximum(
        disagreement(judged.margins, judged.n_informative), disagreement(accuses, judged.n_informative)
    )


def disagreement(values: Float[Array, "E N"], n: Float[Array, ""] | int) -> Float[Array, "E E"]:
    """The share of n pairs in which two rows have opposite signs; 0 has none."""
    signs = jnp.sign(values)
    either = jnp.abs(signs)
    return 0.5 * (matmul(either, either.T) - matmul(signs, signs.T)) / n


def bootstrap_weights(
    log_likelihoods: Float[Array, "E N"],
    eligible: Bool[Array, " E"],
    overdispersion: float | Float[Array, ""],
    same: Bool[Array, "E E"],
    informative: Float[Array, " N"],
) -> Float[Array, " E"]:
    """The mean over draws of softmax_e(N·ℓ̄_e − log c_e), ℓ̄ as the pairs might have come out: w_e of explanation e.

    N·ℓ̄ ~ N(Σ_n ℓ_n, Σ_n (ℓ_n − ℓ̄)(ℓ_n − ℓ̄)ᵀ), the normal limit of the Bayesian bootstrap: an explanation is believed
    alone only if its lead is more than chance. c_e counts the explanations that are the `same` as e: what several
    candidates find counts once. Draws are the same in every call.

    **Source:** pseudo-BMA+ of Yao, Vehtari, Simpson & Gelman 2018, *Using stacking to average Bayesian predictive
    distributions*.
    """
    eligible = eligible & jnp.isfinite(jnp.sum(log_likelihoods, axis=1))
    known = jnp.where(eligible[:, None], log_likelihoods, log_likelihoods[:1]) / overdispersion
    mean = jnp.sum(known, axis=1, keepdims=True) / count_of(informative)
    centred = jnp.where(informative > 0, known - mean, 0.0)
    # Relative to row 0, so that what all rows share costs no digits.
    values, axes = eigh(matmul(centred - centred[:1], (centred - centred[:1]).T) * overdispersion)
    # Drawn while tracing: they are constants, and a generator takes a second to compile.
    noise = jnp.asarray(np.random.default_rng(0).standard_normal((DRAWS, len(known))), known.dtype)
    root = matmul(axes * jnp.sqrt(jnp.maximum(values, 0.0)), axes.T)
    shaken = matmul(noise, root)
    ahead = jnp.sum(known - known[:1], axis=1)
    copies = jnp.log(jnp.maximum(jnp.sum(same & eligible, axis=1, dtype=known.dtype), 1.0))
    scores = jnp.where(eligible, ahead + shaken - copies, -jnp.inf)
    return jnp.mean(jax.nn.softmax(scores, axis=1), axis=0)


def _at_stake(judged: Judged) -> Float[Array, " E"]:
    """Accuracy that the plain fit, row 0, loses on these pairs if another row is right."""
    margins = judged.margins
    disagree = margins * margins[:1] < 0
    return jnp.sum(jnp.abs(2.0 * jax.nn.sigmoid(margins) - 1.0) * disagree, axis=1) / judged.n_informative
