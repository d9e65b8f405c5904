"""What a rater may be: a mixture of tastes, habits and coin tosses, fitted to all raters' labels."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.lapack import cholesky, cholesky_solve, eigh
from robust_rlhf_jax.kernels.linalg import einsum, matmul, weighted_gram, weighted_sum

from ._by_rater import RowsByRater
from ._leap import leap
from .taste import Crowd, Tastes, tastes, tastes_nearby

# EM begins with each of these spreads of tastes, as shares of the squared length of the crowd's, and the likelihood
# chooses: from the narrow one it may end where contrary raters pass for people of any taste.
FIRST_SPREADS = (0.25, 2.0)
# Rounds from each start, a multiple of `LEAPS`. Every third round but the last leaps ahead: without leaps EM is far
# from its end after a hundred rounds, and farther from one start than from another.
ROUNDS, LEAPS = 36, 3
# A spread of this share counts as seen, by as many raters as there are axes and two more.
PRIOR_SPREAD = 0.025
# Raters that count as seen: of the crowd, of all other tastes together, and of each kind that does not read the pair.
SEEN_CROWD, SEEN_OTHER, SEEN_BAD = 10.0, 1.0, 0.5
# A rater with a habit follows it as if it had been seen to do so in all but half a pair of ten.
FOLLOWED, LEFT = 10.0, 0.5


# How tastes under a crowd are found, from where: `tastes`, or `tastes_nearby`.
Search = Callable[[RowsByRater, Crowd, Float[Array, "K r"]], Tastes]


class Mixture(NamedTuple):
    """Where EM ended from its best start.

    `log_chance` [K, J] of each of J kinds given a rater's labels; `shares` [J] of the kinds; log `evidence` [K, J] of a
    rater's labels under each; `crowd`; `taste` of each rater as one of the crowd or of the likeliest other taste,
    leanings to habits last; `ends` [S]: the log-likelihood of all labels plus log-priors at the end of each start.

    Kinds, in order: the crowd, o other tastes, contrary, random, then the habits.
    """

    log_chance: Float[Array, "K J"]
    shares: Float[Array, " J"]
    evidence: Float[Array, "K J"]
    crowd: Crowd
    taste: Tastes
    ends: Float[Array, " S"]


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
    """The mixture of kinds by EM, from a fit t to all pairs and several spreads of tastes.

    - the crowd: t_k ~ N(t̄, Σ);
    - other tastes: N(A_j t̄, Σ) for each `others` A_j, which reverses a feature, and N(0, Σ + ‖t̄‖²/r·I): any;
    - contrary: N(−t̄, Σ): a member of the crowd whose labels are turned;
    - random: each label with chance ½;
    - a habit: `habits` [N, h] is +1 where the label follows it, −1 where not, 0 where it says nothing.

    Tastes lean to habits, too: t_k, t̄ and Σ have an axis for each, after the r of the features, which no other kind
    turns. What all raters like somewhat is no fault of those who like it most.

    t̄, Σ and the shares of the kinds maximise the likelihood, in Laplace's approximation, under weak priors. Of the
    maxima that EM finds from `FIRST_SPREADS` the highest is taken.
    """
    model = _Model.of(rows, t, raters, n_raters, others, habits)
    # One start after another: they are one program, and need the memory of one.
    each = jax.lax.map(model.fitted_from, jnp.asarray(FIRST_SPREADS, rows.dtype))
    best = jnp.argmax(jnp.where(jnp.isnan(each.ends), -jnp.inf, each.ends))
    return jax.tree.map(lambda part: part[best], each)._replace(ends=each.ends)


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
        n_others = others.shape[0] + 1
        seen = [SEEN_CROWD, *[SEEN_OTHER / n_others] * n_others, *[SEEN_BAD] * (1 + fixed.shape[1])]
        leaning = (jnp.arange(rows.shape[1]) >= axes).astype(dtype)
        return cls(pairs, t, others, axes, leaning, fixed, jnp.asarray(seen, dtype))

    @property
    def n_tastes(self) -> int:
        """The crowd and the other tastes: all kinds whose raters are not bad."""
        return self.others.shape[0] + 2

    @property
    def turn(self) -> Float[Array, " r"]:
        """The signs that make a taste its opposite, which leans to the same habits."""
        return 2.0 * self.leaning - 1.0

    @property
    def size(self) -> Float[Array, ""]:
        """‖t‖² per axis."""
        return matmul(self.t, self.t) / self.axes

    def crowds(self, crowd: Crowd) -> Crowd:
        """The prior of tastes of each kind that has some [o + 3]: the crowd, the others, any, contrary."""
        (mean, covariance), leaning, turn = crowd, self.leaning, self.turn
        taste = (1.0 - leaning) * mean
        broad = covariance + matmul(taste, taste) / self.axes * jnp.diag(1.0 - leaning)
        reversed_ = einsum("oij,j->oi", self.others, mean)
        means = jnp.concatenate([mean[None], reversed_, (leaning * mean)[None], (turn * mean)[None]])
        spreads = jnp.broadcast_to(covariance, (len(means), *covariance.shape)).at[-2].set(broad)
        return Crowd(means, spreads.at[-1].set(turn[:, None] * covariance * turn))

    def look(
        self, crowd: Crowd, shares: Float[Array, " J"], start: Float[Array, "m K r"], search: Search
    ) -> tuple[Tastes, Float[Array, "K J"], Float[Array, "K J"]]:
        """(tastes [m, K] of each rater under the prior of each kind; log evidence and log chance of the kinds)."""
        each = lambda given: search(self.pairs, *given)  # noqa: E731
        # One after another where all at once would take much memory.
        many = self.pairs.n_raters * len(self.t) ** 2 > 2**16
        given = self.crowds(crowd), start
        found = jax.lax.map(each, given) if many else jax.vmap(each)(given)
        evidence = jnp.concatenate([found.evidence.T, self.fixed], axis=1)
        return found, evidence, jax.nn.log_softmax(evidence + jnp.log(shares), axis=1)

    def step(
        self, point: _Point, start: Float[Array, "m K r"], search: Search
    ) -> tuple[_Point, Float[Array, "m K r"]]:
        """One round of EM, and the tastes that it found."""
        n_raters, turn = self.pairs.n_raters, self.turn
        crowd, shares = point.parts()
        found, _, log_chance = self.look(crowd, shares, start, search)
        chance = jnp.exp(log_chance)
        shares = (jnp.sum(chance, axis=0) + self.seen) / (n_raters + jnp.sum(self.seen))
        weight = jnp.concatenate([chance[:, 0], chance[:, self.n_tastes]])
        own = jnp.concatenate([found.t[0], turn * found.t[-1]])
        crowd_or_contrary = jax.tree.map(lambda part: jnp.concatenate([part[0], part[-1]]), found)
        spread = crowd_or_contrary.covariance().at[n_raters:].multiply(turn[:, None] * turn)
        total = jnp.sum(weight) + 1e-3
        mean = weighted_sum(weight, own) / total
        square = weighted_gram(own - mean, weight) + einsum("k,kij->ij", weight, spread)
        prior, unit = self.axes + 2.0, jnp.eye(len(mean), dtype=mean.dtype)
        covariance = (square + prior * PRIOR_SPREAD * self.size * unit) / (total + prior)
        return _Point.of(Crowd(mean, covariance), shares), found.t

    def log_prior(self, crowd: Crowd, shares: Float[Array, " J"]) -> Float[Array, ""]:
        factor = cholesky(crowd.covariance)
        inverse = cholesky_solve(factor, jnp.eye(len(factor), dtype=factor.dtype))
        log_determinant = 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor)))
        of_spread = PRIOR_SPREAD * self.size * jnp.trace(inverse) + log_determinant
        return jnp.sum(self.seen * jnp.log(shares)) - 0.5 * (self.axes + 2.0) * of_spread

    def fitted_from(self, first: Float[Array, ""]) -> Mixture:
        """Where EM ends if the spread of tastes begins at this share of the squared length of the crowd's."""

        def round_of(n, state):
            before, point, start = state
            new, start = self.step(point, start, tastes_nearby)
            ahead = leap(before, point, new)
            return point, jax.tree.map(partial(jnp.where, n % LEAPS == 0), ahead, new), start

        # Leanings begin narrow: where people have none, EM shrinks a wide spread slowly, and it would hide bad raters.
        spread = jnp.diag(jnp.where(self.leaning > 0, PRIOR_SPREAD, first))
        crowd, k = Crowd(self.t, self.size * spread), jnp.arange(self.pairs.n_raters)
        means = self.crowds(crowd).mean[:, None]
        start = jnp.broadcast_to(means, (len(means), len(k), len(self.t)))
        point, start = self.step(_Point.of(crowd, self.seen / jnp.sum(self.seen)), start, tastes)
        _, point, start = jax.lax.fori_loop(1, ROUNDS, round_of, (point, point, start))
        crowd, shares = point.parts()
        found, evidence, log_chance = self.look(crowd, shares, start, tastes)
        likeliest = jnp.argmax(log_chance[:, : self.n_tastes], axis=1)
        taste = jax.tree.map(lambda part: part[likeliest, k], found)
        likelihood = jnp.sum(jax.nn.logsumexp(evidence + jnp.log(shares), axis=1))
        return Mixture(log_chance, shares, evidence, crowd, taste, likelihood + self.log_prior(crowd, shares))


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
    theta: Float[Array, " k"],
    sizes: Float[Array, " k"],
    to_t: Float[Array, "r k"],
    to_theta: Float[Array, "k r"],
    most: int,
) -> Float[Array, "o r r"]:
    """A_j [r, r] = M⁻¹(I − 2e_je_jᵀ)M for the `most` features j that move margins most: each reverses one feature."""
    top = jnp.argsort(-jnp.abs(theta) * sizes)[:most]
    unit = jnp.eye(to_t.shape[0], dtype=to_t.dtype)
    return jax.vmap(lambda j: unit - 2.0 * to_t[:, j][:, None] * to_theta[j][None])(top)
