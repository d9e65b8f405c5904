"""`rate_raters` and `fit_weighed`: from labels and who gave them to a table of raters, and to a reward."""

from statistics import NormalDist
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.io.given_arrays import other_parts, same_parts
from robust_rlhf_jax.io.unnamed_raters import each_named
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.preferences import PreferenceData, as_labelled
from robust_rlhf_jax.preferences.validation import check_source
from robust_rlhf_jax.rewards import Streaming, plain_fit
from robust_rlhf_jax.rewards.streamed import in_memory
from robust_rlhf_jax.sources import PairSource

from ._habits import Habits, habit_of
from ._holm import holm
from ._opposite import Weights, log_odds, weighs_opposite
from ._reliability import Reliability, reliability
from ._score_test import ScoreTest, scores_of, tested, unit_free_fit, without_each
from .kinds import FEWEST, OTHER_TASTE, admitted, are_noisy, kind_of
from .mixture import Mixture, fit_mixture, reversals
from .table import Rater, RaterTable

# Features whose reversal is looked for, the weightiest: those that move margins most.
WEIGHTIEST = 6
# The most axes r: the taste of each rater takes r² numbers.
MOST_AXES = 64


class WeighedReward(NamedTuple):
    """`theta` [k] of maximum likelihood with raters weighed by evidence; its `status` code; the `table` of raters.

    **Example:**

    >>> from robust_rlhf_jax import preferences, raters
    >>> [round(float(weight), 1) for weight in raters.fit_weighed(preferences.rail_pairs()).theta]
    [-1.9, -0.8, -0.2, -0.6]
    """

    theta: Float[Array, " k"]
    status: Int[Array, ""]
    table: RaterTable

    __eq__, __ne__ = same_parts, other_parts


class _Found(NamedTuple):
    """`told`: numbers of the raters with enough pairs to say anything, those of `weights` and of the `chance` of kinds,
    whose last are the `bad_kinds`; `right` [N]: 1 for labels as the fit without the rater expects them, ½ where it
    favours neither option.
    """

    test: ScoreTest
    reliable: Reliability
    right: Float[np.ndarray, " N"]
    told: np.ndarray
    chance: np.ndarray
    bad_kinds: tuple[str, ...]
    weights: Weights
    weightiest: np.ndarray


def rate_raters(
    data: Pairs | PreferenceData | PairSource,
    raters: ArrayLike | None = None,
    *,
    chose_first: Habits | None = None,
    chose_longer: Habits | None = None,
    streaming: Streaming | None = None,
) -> RaterTable:
    """What each rater is: attentive, noisy, random, contrary, of another taste, or someone who follows a habit.

    Every rater has a taste of their own, t_k ~ N(t̄, Σ) around the crowd's. A bad rater explains their labels better by
    a coin, by a habit, or by the opposite of a taste of the crowd. A rater of another taste explains them better by one
    with a feature reversed, or by any other; or t_k weighs one of the six weightiest features the other way than t̄,
    likelier than not and by 3 nats likelier than before the labels were seen. Tastes lean to the habits that are known,
    too, so that a liking for the first option that all share makes nobody bad. Shares, t̄ and Σ maximise the likelihood
    of all labels, so that few answers condemn nobody, and a bad kind counts only where it explains the labels of all
    better by 3 nats.

    **Arguments:**

    - `data`: N `Pairs` or `PreferenceData`; which option stands first in them plays no part. Or a `PairSource` of up to
      64 features whose pairs memory holds: the mixture takes hundreds of rounds, each over all of them.
    - `raters` [N]: who labelled each pair (any values); None: those of the `Pairs`, or of the source.
    - `chose_first` [N]: +1 or true where the option that was shown first was preferred, −1 or false where the other, 0,
      None or NaN where nobody knows; None: position is not known, and nobody can be "always first".
    - `chose_longer` [N]: the same of the longer option.
    - `streaming`: the memory that the pairs of a source may take.

    **Returns:** `RaterTable`, with weights of pairs for a fit: 1 − P(the rater is bad), 1 without evidence.

    **Raises:** ValueError for malformed data, no raters or fewer than 2, arrays of another length, habits other than
    truths or −1, 0 and 1 (or numbers 0 and 1 alone, which may be meant as truths), differences that span more than 64
    dimensions, or a source that memory does not hold.

    **Source:** mixtures of raters after Dawid & Skene 1979; tastes as in mixed logit (McFadden & Train 2000).

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import Pairs, raters
    >>> rng = np.random.default_rng(0)
    >>> x, who = rng.normal(size=(600, 3)), np.repeat(np.arange(30), 20)
    >>> labels = np.where(rng.logistic(size=600) < x @ [2.0, -1.0, 1.0], 1, -1)
    >>> labels[who == 4] *= -1  # a rater who means the opposite
    >>> table = raters.rate_raters(Pairs.of_differences(x, labels), who)
    >>> [row.name for row in table.rows if row.kind == "contrary"], bool(table.weights[who == 4].max() < 0.1)
    (['4'], True)
    """
    data = _held(data, streaming)
    x, labels, names, of, habits = _checked(data, raters, chose_first, chose_longer)
    found = _find(x, labels, of, len(names), habits)
    columns = data.names if isinstance(data, Pairs) else tuple(f"f{i}" for i in range(x.shape[1]))
    return _table(found, names, of, columns)


def fit_weighed(
    data: Pairs | PreferenceData | PairSource,
    raters: ArrayLike | None = None,
    *,
    chose_first: Habits | None = None,
    chose_longer: Habits | None = None,
    streaming: Streaming | None = None,
) -> WeighedReward:
    """Maximum likelihood in which raters count as far as they are believed (`rate_raters`).

    θ maximises Σ_n w_n log σ(o_nθᵀx_n) with the prior of `fit_reward` at ε = 0; without evidence w = 1, and θ is that.

    **Arguments** and **Raises:** as `rate_raters`.

    **Example:**

    >>> from robust_rlhf_jax import fit_reward, preferences, raters
    >>> rail = preferences.rail_pairs()
    >>> bool(abs(raters.fit_weighed(rail).theta - fit_reward(rail, 0).theta).max() < 1e-3)
    True
    """
    data = _held(data, streaming)
    table = rate_raters(data, raters, chose_first=chose_first, chose_longer=chose_longer)
    seen = as_labelled(data)
    theta, status = plain_fit(seen.x, seen.labels, jnp.asarray(table.weights, seen.x.dtype))
    return WeighedReward(theta, status, table)


def _held(data: Pairs | PreferenceData | PairSource, streaming: Streaming | None) -> Pairs | PreferenceData:
    """**Raises:** ValueError, before a source is read, for too many features and for more than memory holds; TypeError
    for what holds no preferences.
    """
    if not isinstance(data, Pairs | PreferenceData):
        check_source(data)
        _check_axes(data.n_features)
    why = "the mixture of raters' tastes takes hundreds of rounds over all pairs"
    return in_memory(data, why, streaming, "audit.audit_source for the raters' reliability")


def _check_axes(axes: int) -> None:
    if axes > MOST_AXES:
        raise ValueError(
            f"the differences have {axes} features, and the taste of a rater is told in at most {MOST_AXES}: give "
            "fewer, such as principal components, or ask audit.audit_source for the raters' reliability."
        )


def _checked(data, raters, chose_first, chose_longer):
    seen = as_labelled(data)
    raters = data.raters if raters is None and isinstance(data, Pairs) else raters
    if raters is None:
        raise ValueError("nobody says who labelled the pairs: give raters, one for each pair.")
    n = len(seen.labels)
    raters = each_named(raters)
    if raters.shape != (n,):
        raise ValueError(f"raters has shape {raters.shape}: give one rater for each of the {n} pairs.")
    names, of = np.unique(raters, return_inverse=True)
    if len(names) < 2:
        raise ValueError("all pairs have one rater: give the labels of at least 2 raters.")
    habits = {
        name.replace("chose_", "always "): habit_of(given, n, name)
        for name, given in (("chose_first", chose_first), ("chose_longer", chose_longer))
        if given is not None
    }
    return seen.x, seen.labels, names, jnp.asarray(of.astype(np.int32)), habits


def _find(x, labels, of, n_raters, habits) -> _Found:
    pairs, t = unit_free_fit(x, labels)
    _check_axes(pairs.rows.shape[1])
    theta = matmul(pairs.to_theta, t)
    scores = scores_of(pairs.rows, t, of, n_raters)
    margins = jnp.sum(pairs.rows * without_each(scores, t)[of], axis=1)
    columns = np.stack([*habits.values()], axis=1) if habits else np.zeros((len(labels), 0))
    sizes = jnp.sqrt(jnp.mean(x**2, axis=0))
    weightiest = jnp.argsort(-jnp.abs(theta) * sizes)[:WEIGHTIEST]
    others = reversals(weightiest, pairs.from_theta, pairs.to_theta)
    told, mixture = _mixture_of_told(pairs.rows, t, np.asarray(of), n_raters, others, columns)
    bad_kinds = ("contrary", "random", *habits)
    first_bad = mixture.shares.shape[0] - len(bad_kinds)
    chance = admitted(mixture, first_bad)
    weights = _weights(mixture, np.argmax(chance[:, :first_bad], axis=1), np.asarray(pairs.to_theta))
    return _Found(
        tested(scores, t), reliability(margins, of, n_raters), 0.5 + 0.5 * np.sign(margins), told, chance, bad_kinds,
        weights, np.asarray(weightiest),
    )  # fmt: skip


def _weights(mixture: Mixture, kind: Int[np.ndarray, " K"], to: Float[np.ndarray, "k r"]) -> Weights:
    """The weights θ = M t of features by raters of these kinds and by the crowd, leanings to habits left out."""
    r, k = to.shape[1], np.arange(len(kind))
    t, covariance = (np.asarray(part[kind, k]) for part in (mixture.tastes.t, mixture.tastes.covariance))
    mean, spread = (np.asarray(part) for part in mixture.crowd)
    error = lambda of: np.sqrt(np.maximum(np.einsum("ki,...ij,kj->...k", to, of[..., :r, :r], to), 0))  # noqa: E731
    return Weights(t[:, :r] @ to.T, error(covariance), to @ mean[:r], error(spread))


def _mixture_of_told(rows, t, of, n_raters, others, columns) -> tuple[np.ndarray, Mixture]:
    """(numbers of the raters with enough pairs, the mixture of those raters); of all raters where none has enough.

    The others would be called "too few pairs to say" whatever it found, and in a file of votes they are the most.
    """
    enough = np.bincount(of, minlength=n_raters) >= FEWEST
    told = np.flatnonzero(enough) if enough.any() else np.arange(n_raters)
    mine = np.isin(of, told)
    renumbered = jnp.asarray(np.searchsorted(told, of[mine]), jnp.int32)
    habits = jnp.asarray(columns[mine], rows.dtype)
    return told, fit_mixture(rows[mine], t, renumbered, len(told), others, habits)


def _table(found: _Found, names, of, columns) -> RaterTable:
    of = np.asarray(of)
    n, place = np.bincount(of, minlength=len(names)), np.full(len(names), -1)
    place[found.told] = np.arange(len(found.told))
    first_bad = found.chance.shape[1] - len(found.bad_kinds)
    chance = np.zeros((len(names), found.chance.shape[1]))
    chance[found.told] = found.chance
    opposite, odds = weighs_opposite(found.weights), log_odds(found.weights)
    bad = np.where(n < FEWEST, 0.0, chance[:, first_bad:].sum(axis=1))
    reliable = [np.asarray(part, float) for part in found.reliable[:4]]
    agreement = np.bincount(of, found.right, minlength=len(names)) / n
    low, high = _wilson(agreement, n)
    p_agreement, p_taste = (holm(np.asarray(p)) for p in (found.test.p_agreement, found.test.p_taste))
    noisy = are_noisy(reliable[0], reliable[3], np.asarray(found.test.agreement))
    rows = []
    for k, name in enumerate(names):
        turned = place[k] >= 0 and opposite[place[k], found.weightiest].any()
        kind = kind_of(int(n[k]), chance[k], first_bad, found.bad_kinds, bool(turned), bool(noisy[k]))
        differs = _names(opposite[place[k]], odds[place[k]], columns) if kind == OTHER_TASTE else ()
        rows.append(
            Rater(
                str(name), int(n[k]), float(agreement[k]), float(low[k]), float(high[k]),
                float(reliable[0][k]), float(reliable[2][k]), float(reliable[3][k]),
                float(p_agreement[k]), float(p_taste[k]), kind, float(bad[k]), differs, float(1.0 - bad[k]),
            )
        )  # fmt: skip
    return RaterTable(tuple(rows), (1.0 - bad)[of])


def _wilson(share: Float[np.ndarray, " K"], n: Int[np.ndarray, " K"]) -> Float[np.ndarray, "2 K"]:
    """The 95 % intervals of shares of n by Wilson 1927; shares of halves, too."""
    z = NormalDist().inv_cdf(0.975)
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return np.clip(np.stack([middle - half, middle + half]), 0.0, 1.0)


def _names(opposite, odds, columns) -> tuple[str, ...]:
    """Features that a rater weighs the other way than the crowd; else the one that comes nearest to it."""
    return tuple(columns[j] for j in (np.flatnonzero(opposite) if opposite.any() else [int(np.argmax(odds))]))
