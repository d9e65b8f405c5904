"""What a rater may be: a mixture of tastes, habits and coin tosses, fitted to all raters' labels."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.lapack import eigh
from robust_rlhf_jax.kernels.linalg import einsum, matmul, weighted_gram, weighted_sum
from robust_rlhf_jax.kernels.sweep import inverses

from ._by_rater import RowsByRater
from ._leap import leap
from ._lengths import lengths
from .taste import Crowd, Tastes, tastes, tastes_nearby

# EM begins with this spread of tastes, as a share of the squared length of the crowd's. Where it ends hardly depends on
# it.
FIRST_SPREAD = 2.0
# A cycle is three rounds and a leap; EM ends after so many, or where each of two gains fewer nats in all, or as few as
# rounding does. One alone may have leapt too far.
CYCLES, ENOUGH = 24, 0.01
# A spread of this share counts as seen, by so many raters. With many more, a crowd without spread among many other
# tastes would be likelier than one that fits the labels better by 50 nats.
PRIOR_SPREAD, SEEN_SPREAD = 0.025, 2.0
# Squared length per axis that a crowd has at least: where labels cancel out t is 0, and no spread is a share of that.
LEAST_SIZE = 1e-6
# The length of weak tastes, of any direction, as a share of the others'. Without them an honest minority with more
# noise in its answers than the crowd passes for random.
WEAK = 0.25
# Raters that count as seen: of the crowd, of all other tastes and weak ones together, and of each kind that does not
# read the pair.
SEEN_CROWD, SEEN_OTHER, SEEN_BAD = 10.0, 1.0, 0.5
# A rater with a habit follows it as if it had been seen to do so in all but half a pair of ten.
FOLLOWED, LEFT = 10.0, 0.5


# How tastes under a crowd are found, from which tastes and variance of margins: `tastes`, or `tastes_nearby`.
Search = Callable[[RowsByRater, Crowd, Float[Array, "K r"], Float[Array, " N"]], Tastes]


class Mixture(NamedTuple):
    """Where EM ended.

    `log_chance` [K, J] of each of J kinds given a rater's labels; `shares` [J] of the kinds; log `evidence` [K, J] of a
    rater's labels under each; `crowd`; `tastes` [m, K] of each rater under the prior of each of m kinds, those that are
    not bad, leanings to habits last; `value`: the log-likelihood of all labels plus log-priors.

    Kinds, in order: the crowd, o reversed tastes, any taste, weak ones, contrary, random, then the habits.
    """

    log_chance: Float[Array, "K J"]
    shares: Float[Array, " J"]
    evidence: Float[Array, "K J"]
    crowd: Crowd
    tastes: Tastes
    value: Float[Array, ""]


class _Near(NamedTuple):
    """Where the next tastes of each of m kinds are looked for: tastes `t`, and the `variance` of their margins."""

    t: Float[Array, "m K r"]
    variance: Float[Array, "m N"]


class _Point(NamedTuple):
    """What EM looks for, without bounds: t̄, the logarithm of Σ, and those of the shares of the kinds."""

    mean: Float[Array, " r"]
    log_covariance: Float[Array, "r r"]
    log_shares: Float[Array, " J"]

    @classmethod
    def of(cls, crowd: Crowd, shares: Float[Array, " J"]) -> "_Point":
        values, vectors = eigh(crowd.covariance)
        values = jnp.maximum(values, jnp.finfo(values.dtype).eps * values[-1])  # rounded below 0
        return cls(crowd.mean, matmul(vectors * jnp.log(values), vectors.T), jnp.log(shares))

    def parts(self) -> tuple[Crowd, Float[Array, " J"]]:
        values, vectors = eigh(self.log_covariance)
        covariance = matmul(vectors * jnp.exp(values), vectors.T)
        return Crowd(self.mean, covariance), jax.nn.softmax(self.log_shares)


@partial(jax.jit, static_argnames="n_raters")
def fit_mixture(
    rows: Float[Array, "N r"],
    t: Float[Array, " r"],
    raters: Int[Array, " N"],
    n_raters: int,
    others: Float[Array, "o r r"],
    habits: Float[Array, "N h"],
) -> Mixture:
    """The mixture of kinds by EM, from a fit t to all pairs and a broad spread of tastes.

    - the crowd: t_k ~ N(t̄, Σ);
    - other tastes: N(A_j t̄, Σ) for each `others` A_j, which reverses a feature, and N(0, Σ + ‖t̄‖²/r·I): any;
    - weak: N(0, w²(Σ + ‖t̄‖²/r·I)), w = `WEAK`: any, with more noise;
    - contrary: N(−t̄, Σ): a member of the crowd whose labels are turned;
    - random: each label with chance ½;
    - a habit: `habits` [N, h] is +1 where the label follows it, −1 where not, 0 where it says nothing.

    Tastes lean to habits, too: t_k, t̄ and Σ have an axis for each, after the r of the features, which no other kind
    turns. What all raters like somewhat is no fault of those who like it most.

    t̄, Σ and the shares of the kinds maximise a bound of the likelihood, that of `tastes`, under weak priors.
    """
    model = _Model.of(rows, t, raters, n_raters, others, habits)
    return model.ended(model.climbed(model.begun()))


class _Climb(NamedTuple):
    """How far EM is: the last `point`, where it leaps to (`ahead`), tastes `near` those of both; of a round before, the
    log-posterior `value`; by how much that changed in this cycle and in the last one.
    """

    point: _Point
    ahead: _Point
    near: _Near
    value: Float[Array, ""]
    gained: Float[Array, " 2"]


class _Model(NamedTuple):
    """What EM is given. The `pairs` by rater, a plain fit `t` [r] and the reversals `others` [o, r, r] have the axes of
    habits last: `axes` of the r are those of the features, and `leaning` [r] is 1 along the others. `fixed` [K, f]: log
    evidence of the kinds that have no taste, random and the habits; `seen` [J]: raters of each kind that count as seen.
    """

    pairs: RowsByRater
    t: Float[Array, " r"]
    others: Float[Array, "o r r"]
    axes: int
    leaning: Float[Array, " r"]
    fixed: Float[Array, "K f"]
    seen: Float[Array, " J"]

    @classmethod
    def of(
        cls,
        rows: Float[Array, "N a"],
        t: Float[Array, " a"],
        raters: Int[Array, " N"],
        n_raters: int,
        others: Float[Array, "o a a"],
        habits: Float[Array, "N h"],
    ) -> "_Model":
        axes, dtype = rows.shape[1], rows.dtype
        rows, t, others = _with_leanings(rows, t, others, habits)
        pairs = RowsByRater.of(rows, raters, n_raters)
        n = pairs.sums(jnp.ones_like(rows[:, 0]))
        of_habits = _habit_evidence(habits, raters, n_raters, n)
        fixed = jnp.concatenate([-jnp.log(2.0) * n[:, None], of_habits], axis=1)
        n_others = others.shape[0] + 2
        seen = [SEEN_CROWD, *[SEEN_OTHER / n_others] * n_others, *[SEEN_BAD] * (1 + fixed.shape[1])]
        leaning = (jnp.arange(rows.shape[1]) >= axes).astype(dtype)
        return cls(pairs, t, others, axes, leaning, fixed, jnp.asarray(seen, dtype))

    @property
    def n_tastes(self) -> int:
        """The crowd, the other tastes and weak ones: all kinds whose raters are not bad."""
        return self.others.shape[0] + 3

    @property
    def turn(self) -> Float[Array, " r"]:
        """The signs that make a taste its opposite, which leans to the same habits."""
        return 2.0 * self.leaning - 1.0

    @property
    def size(self) -> Float[Array, ""]:
        """‖t‖² per axis, and at least `LEAST_SIZE`."""
        return jnp.maximum(matmul(self.t, self.t) / self.axes, LEAST_SIZE)

    def crowds(self, crowd: Crowd) -> Crowd:
        """The prior of tastes of each kind that has some [o + 4]: the crowd, reversed, any, weak, contrary."""
        (mean, covariance), leaning, turn = crowd, self.leaning, self.turn
        taste = (1.0 - leaning) * mean
        broad = covariance + matmul(taste, taste) / self.axes * jnp.diag(1.0 - leaning)
        reversed_ = einsum("oij,j->oi", self.others, mean)
        means = jnp.concatenate(
            [mean[None], reversed_, jnp.stack([leaning * mean, leaning * mean, turn * mean])]
        )
        spreads = jnp.broadcast_to(covariance, (len(means), *covariance.shape))
        last = jnp.stack([broad, WEAK**2 * broad, turn[:, None] * covariance * turn])
        return Crowd(means, spreads.at[-3:].set(last))

    def look(
        self, crowd: Crowd, shares: Float[Array, " J"], near: _Near, search: Search
    ) -> tuple[Tastes, Float[Array, "K J"], Float[Array, "K J"]]:
        """(tastes [m, K] of each rater under the prior of each kind; log evidence and log chance of the kinds)."""
        each = lambda given: search(self.pairs, *given)  # noqa: E731
        # One after another where all at once would take much memory.
        many = self.pairs.n_raters * len(self.t) ** 2 > 2**16
        given = self.crowds(crowd), *near
        found = jax.lax.map(each, given) if many else jax.vmap(each)(given)
        evidence = jnp.concatenate([found.evidence.T, self.fixed], axis=1)
        return found, evidence, jax.nn.log_softmax(evidence + jnp.log(shares), axis=1)

    def step(self, point: _Point, near: _Near, search: Search) -> tuple[_Point, _Near, Float[Array, ""]]:
        """One round of EM, where it expects the tastes of the next, and the log-posterior of the point it was given."""
        crowd, shares = point.parts()
        found, evidence, log_chance = self.look(crowd, shares, near, search)
        value = self.log_posterior(crowd, shares, evidence)
        chance = jnp.exp(log_chance)
        shares = (jnp.sum(chance, axis=0) + self.seen) / (self.pairs.n_raters + jnp.sum(self.seen))
        mean, covariance = self.spread_of(found, chance)
        centres = self.crowds(crowd).mean
        prior = self.pull_of_spread(covariance)
        of_mean, of_spread = lengths(self.pairs, centres, found, chance[:, : len(centres)].T, prior)
        mean = of_mean * crowd.mean + of_spread * (mean - crowd.mean)
        t = of_mean * centres[:, None] + of_spread * (found.t - centres[:, None])
        point = _Point.of(Crowd(mean, of_spread**2 * covariance), shares)
        return point, _Near(t, of_spread**2 * found.variance), value

    def log_posterior(
        self, crowd: Crowd, shares: Float[Array, " J"], evidence: Float[Array, "K J"]
    ) -> Float[Array, ""]:
        likelihood = jnp.sum(jax.nn.logsumexp(evidence + jnp.log(shares), axis=1))
        return likelihood + self.log_prior(crowd, shares)

    def spread_of(self, found: Tastes, chance: Float[Array, "K J"]) -> Crowd:
        """Mean and covariance of the tastes of the crowd and, turned, of contrary raters."""
        turn = self.turn
        weight = jnp.concatenate([chance[:, 0], chance[:, self.n_tastes]])
        own = jnp.concatenate([found.t[0], turn * found.t[-1]])
        spread = jnp.concatenate([found.covariance[0], turn[:, None] * found.covariance[-1] * turn])
        total = jnp.sum(weight) + 1e-3
        mean = weighted_sum(weight, own) / total
        square = weighted_gram(own - mean, weight) + einsum("k,kij->ij", weight, spread)
        unit = jnp.eye(len(mean), dtype=mean.dtype)
        covariance = (square + SEEN_SPREAD * PRIOR_SPREAD * self.size * unit) / (total + SEEN_SPREAD)
        return Crowd(mean, covariance)

    def log_prior(self, crowd: Crowd, shares: Float[Array, " J"]) -> Float[Array, ""]:
        trace, log_determinant = self._narrowness(crowd.covariance)
        return jnp.sum(self.seen * jnp.log(shares)) - 0.5 * SEEN_SPREAD * (trace + log_determinant)

    def pull_of_spread(self, covariance: Float[Array, "r r"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Derivative of the log-prior of α²Σ by α at 1, and what its negative second is near the prior's maximum."""
        trace, _ = self._narrowness(covariance)
        return SEEN_SPREAD * (trace - len(covariance)), SEEN_SPREAD * (trace + len(covariance))

    def _narrowness(self, covariance: Float[Array, "r r"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """(tr S Σ⁻¹, log|Σ|), S the spread that the prior expects."""
        inverse, log_determinant = inverses(covariance)
        return PRIOR_SPREAD * self.size * jnp.trace(inverse), log_determinant

    def begun(self) -> _Climb:
        """After a round from the first spread of tastes."""
        # Leanings begin narrow: where people have none, EM shrinks a wide spread slowly, and it would hide bad raters.
        spread = jnp.diag(jnp.where(self.leaning > 0, PRIOR_SPREAD, FIRST_SPREAD))
        crowd = Crowd(self.t, self.size * spread)
        means = self.crowds(crowd).mean[:, None]
        t = jnp.broadcast_to(means, (len(means), self.pairs.n_raters, len(self.t)))
        near = _Near(t, jnp.zeros((len(means), len(self.pairs.rows)), t.dtype))
        point, near, value = self.step(_Point.of(crowd, self.seen / jnp.sum(self.seen)), near, tastes)
        return _Climb(point, point, near, value, jnp.full(2, jnp.inf, value.dtype))

    def climbed(self, start: _Climb) -> _Climb:
        """The point where EM gains no more, after `CYCLES`, or before a cycle that ends in what is not finite."""

        def round_of(state, _):
            point, near, _ = state
            point, near, value = self.step(point, near, tastes_nearby)
            return (point, near, value), point

        def cycle(state):
            n, at = state
            begin = at.ahead, at.near, at.value
            (point, near, value), points = jax.lax.scan(round_of, begin, None, length=3)
            first, second, third = (jax.tree.map(lambda part, i=i: part[i], points) for i in range(3))
            gained = jnp.stack([jnp.abs(value - at.value), at.gained[0]])
            then = _Climb(point, leap(first, second, third), near, value, gained)
            # Labels that a taste predicts one and all make it longer and longer, until a leap leaves the floats.
            finite = jnp.all(jnp.isfinite(ravel_pytree((point, near, value))[0]))
            return jnp.where(finite, n + 1, CYCLES), jax.tree.map(partial(jnp.where, finite), then, at)

        def goes_on(state):
            n, at = state
            rounding = 4.0 * jnp.finfo(at.value.dtype).eps * jnp.abs(at.value)
            return (n < CYCLES) & (jnp.max(at.gained) > jnp.maximum(ENOUGH, rounding))

        return jax.lax.while_loop(goes_on, cycle, (0, start))[1]

    def ended(self, at: _Climb) -> Mixture:
        crowd, shares = at.point.parts()
        found, evidence, log_chance = self.look(crowd, shares, at.near, tastes)
        good = jax.tree.map(lambda part: part[: self.n_tastes], found)
        value = self.log_posterior(crowd, shares, evidence)
        return Mixture(log_chance, shares, evidence, crowd, good, value)


def _with_leanings(
    rows: Float[Array, "N a"],
    t: Float[Array, " a"],
    others: Float[Array, "o a a"],
    habits: Float[Array, "N h"],
) -> tuple[Float[Array, "N r"], Float[Array, " r"], Float[Array, "o r r"]]:
    """Rows, t and reversals with the axes of habits after their own: nobody leans at first, no reversal turns them."""
    h = habits.shape[1]
    rows = jnp.concatenate([rows, habits], axis=1)
    t = jnp.concatenate([t, jnp.zeros(h, t.dtype)])
    others = jax.vmap(lambda a: jax.scipy.linalg.block_diag(a, jnp.eye(h, dtype=a.dtype)))(others)
    return rows, t, others


def _habit_evidence(
    habits: Float[Array, "N h"], raters: Int[Array, " N"], n_raters: int, n: Float[Array, " K"]
) -> Float[Array, "K h"]:
    """log ∫ ρ^a (1 − ρ)^b Beta(ρ) dρ, and log ½ for each pair of which a habit says nothing."""
    follows = jax.ops.segment_sum((habits > 0).astype(habits.dtype), raters, n_raters)
    leaves = jax.ops.segment_sum((habits < 0).astype(habits.dtype), raters, n_raters)
    silent = n[:, None] - follows - leaves
    log_beta = jax.scipy.special.betaln
    return log_beta(FOLLOWED + follows, LEFT + leaves) - log_beta(FOLLOWED, LEFT) - silent * jnp.log(2.0)


def reversals(
    features: Int[Array, " o"], to_t: Float[Array, "r k"], to_theta: Float[Array, "k r"]
) -> Float[Array, "o r r"]:
    """A_j [r, r] = M⁻¹(I − 2e_je_jᵀ)M, which reverses feature j and no other, for each of the `features`."""
    unit = jnp.eye(to_t.shape[0], dtype=to_t.dtype)
    return jax.vmap(lambda j: unit - 2.0 * to_t[:, j][:, None] * to_theta[j][None])(features)
