"""Bradley–Terry ratings of models: plain, without votes that the rest contradicts, and without bad raters."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from robust_rlhf_jax.io.frames import is_frame, unmasked
from robust_rlhf_jax.io.unnamed_raters import has_name
from robust_rlhf_jax.raters import RaterTable, rate_raters
from robust_rlhf_jax.raters.rating import MOST_AXES
from robust_rlhf_jax.rewards import RewardModel, RobustFit, fit_reward

from .votes import Votes

# Elo's scale: 400 points are odds of ten to one; and where the mean model stands.
POINTS, MIDDLE = 400 / np.log(10), 1000.0
# Votes, so light that no rating moves by a point, that keep a model who never lost from an infinite rating.
LIGHT = 0.01
# A change of the order of two models matters, however little accuracy is at stake.
ORDER_MATTERS = RobustFit(material=0.0)
# Standard errors of a 95 % interval.
WIDTH = 1.96


class Rating(NamedTuple):
    """One model: `plain` rating in Elo points with the ends of its 95 % interval, NaN for `without_finite_rating`, and
    the places that intervals, or chains of wins, allow;
    `robust` and `weighed`: the rating without contradicted votes, and without bad raters, NaN where nobody is known;
    decided `votes` and the share `won`.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.leaderboard import Votes, rate
    >>> best, _ = rate(Votes(np.zeros(40, int), np.ones(40, int), np.repeat([1, -1], [30, 10]), ("a", "b")))
    >>> best.name, best.votes, best.won, best.best_place
    ('a', 40, 0.75, 1)
    """

    name: str
    plain: float
    low: float
    high: float
    best_place: int
    worst_place: int
    robust: float
    weighed: float
    votes: int
    won: float


def bradley_terry(wins: Float[np.ndarray, "M M"]) -> Float[np.ndarray, " M"]:
    """θ [M] of mean 0 that maximises Σ_ij wins_ij log σ(θ_i − θ_j), in float64.

    A hundredth of a vote each way between all models keeps θ finite where one never lost, or two groups never met.

    The rows of a data frame are winners and its columns losers, who may stand in another order; θ is in that of rows.

    **Raises:** ValueError for what is no square of finite numbers of at least 0, or for a data frame whose rows are
    other models than its columns.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.leaderboard import bradley_terry
    >>> theta = bradley_terry(np.array([[0, 300], [100, 0]]))
    >>> round(float(np.exp(theta[0] - theta[1])), 2)  # odds of three to one
    3.0
    """
    counts = _with_light(checked_wins(wins))
    theta = np.zeros(len(counts))
    for _ in range(100):
        gradient, information = _derivatives(counts, theta)
        move = np.linalg.lstsq(information, gradient, rcond=None)[0]
        theta = theta + move / max(1.0, np.abs(move).max() / 2.0)
        if np.abs(move).max() < 1e-10:
            break
    return theta - theta.mean()


def checked_wins(wins: Float[np.ndarray, "M M"]) -> Float[np.ndarray, "M M"]:
    """`wins` in float64, without those of models over themselves.

    **Raises:** ValueError for what is no square of finite numbers of at least 0.
    """
    if isinstance(wins, Votes):
        raise ValueError("wins are Votes: give votes.wins(), how often model i won over model j.")
    square = _square(wins)
    try:
        found = np.array(unmasked(square), float)
    except (TypeError, ValueError):
        raise ValueError(
            f"wins is of the type {type(wins).__name__}, and not of numbers alone: give [M, M], how often model i won "
            "over model j, such as leaderboard.read_votes(path).wins()."
        ) from None
    if found.ndim != 2 or found.shape[0] != found.shape[1] or not found.size:
        raise ValueError(f"wins has shape {found.shape}: give [M, M], how often model i won over model j.")
    wrong = np.argwhere(~(np.isfinite(found) & (found >= 0)))
    if len(wrong):
        i, j = wrong[0]
        raise ValueError(f"wins[{i}, {j}] is {found[i, j]:g}: give finite numbers of at least 0.")
    np.fill_diagonal(found, 0.0)
    return found


def _square(wins: Any) -> Any:
    """A data frame of winners by losers with its columns in the order of its rows; anything else as it is.

    **Raises:** ValueError for a frame whose rows are other models than its columns.
    """
    if not (is_frame(wins) and hasattr(wins, "index")):
        return wins
    rows, columns = list(wins.index), list(wins.columns)
    other = next((model for model in (*rows, *columns) if model not in rows or model not in columns), None)
    if other is None:
        return wins[rows]
    if any(names == list(range(len(names))) for names in (rows, columns)):  # that nobody named
        return wins
    raise ValueError(
        f"wins has other models as rows than as columns, such as {other!r}: give a row and a column for each."
    )


def covariance(wins: Float[np.ndarray, "M M"], theta: Float[np.ndarray, " M"]) -> Float[np.ndarray, "M M"]:
    """The covariance of θ, whose mean is 0: the pseudo-inverse of the information."""
    return np.linalg.pinv(_derivatives(_with_light(wins), theta)[1], hermitian=True)


def win_chances(theta: Float[np.ndarray, " M"]) -> Float[np.ndarray, "M M"]:
    """P(model i wins over model j) = σ(θ_i − θ_j)."""
    return expit(theta[:, None] - theta[None])


def believed(votes: Votes) -> RewardModel:
    """`fit_reward` without ε of the votes, those of one rater being dependent, whose `weights` say which count.

    Any evidence counts that changes the order of two models: `RobustFit.material` is 0.

    **Raises:** ValueError as `Votes.wins`, or where no vote is between two models and decided; TypeError for what is
    no `Votes`.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.leaderboard import Votes, believed
    >>> votes = Votes(np.zeros(40, int), np.ones(40, int), np.repeat([1, -1], [30, 10]), ("a", "b"))
    >>> float(believed(votes).weights.min())
    1.0
    """
    _check_votes(votes)
    if not len(votes.decided().outcome):
        raise ValueError("no vote says which of two different models is better: a leaderboard needs some.")
    return fit_reward(votes.pairs(), config=ORDER_MATTERS)


def _check_votes(votes: Any) -> None:
    if not isinstance(votes, Votes):
        raise TypeError(
            f"votes are of the type {type(votes).__name__}: give leaderboard.Votes(first, second, outcome, names), or "
            "what leaderboard.read_votes(path) reads."
        )


def judged(votes: Votes) -> RaterTable | None:
    """Who the raters are (`raters.rate_raters`), by their decided votes; None where nobody says, or the models are more
    than a taste can have features.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.leaderboard import Votes, judged
    >>> judged(Votes(np.array([0]), np.array([1]), np.array([1]), ("a", "b"))) is None
    True
    """
    _check_votes(votes)
    decided = votes.decided()
    if (
        decided.raters is None
        or not has_name(decided.raters).any()
        or len(np.unique(decided.raters)) < 2
        or len(votes.names) > MOST_AXES
    ):
        return None
    return rate_raters(decided.pairs())


def rate(votes: Votes, model: RewardModel | None = None, table: RaterTable | None = None) -> list[Rating]:
    """All models, the best plain rating first; ties take no part.

    **Arguments:** `model`, `table`: None for `believed` and `judged` of the votes.

    **Raises:** ValueError and TypeError as `believed`.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.leaderboard import Votes, rate
    >>> votes = Votes(np.zeros(40, int), np.ones(40, int), np.repeat([1, -1], [30, 10]), ("a", "b"))
    >>> [(row.name, round(row.plain)) for row in rate(votes)]
    [('a', 1095), ('b', 905)]
    """
    _check_votes(votes)
    model = believed(votes) if model is None else model
    table = judged(votes) if table is None else table
    robust = bradley_terry(votes.wins(np.asarray(model.weights, float)))
    weighed = np.full_like(robust, np.nan)
    if table is not None:
        weighed = bradley_terry(votes.decided().wins(np.asarray(table.weights, float)))
    wins = votes.wins()
    theta = bradley_terry(wins)
    spread, comparable = _spread(wins)
    errors = np.sqrt(np.diagonal(spread))
    apart = np.diagonal(spread)[:, None] + np.diagonal(spread)[None] - 2 * spread
    ahead = theta[:, None] - theta[None] > WIDTH * np.sqrt(np.maximum(apart, 0.0))
    reach = _reaches(wins)
    ahead = np.where(comparable, ahead, reach & ~reach.T)
    rows = [
        Rating(
            votes.names[m],
            float(MIDDLE + POINTS * theta[m]),
            float(MIDDLE + POINTS * (theta[m] - WIDTH * errors[m])),
            float(MIDDLE + POINTS * (theta[m] + WIDTH * errors[m])),
            1 + int(ahead[:, m].sum()),
            len(theta) - int(ahead[m].sum()),
            float(MIDDLE + POINTS * robust[m]),
            float(MIDDLE + POINTS * weighed[m]),
            int(wins[m].sum() + wins[:, m].sum()),
            float(wins[m].sum() / max(wins[m].sum() + wins[:, m].sum(), 1)),
        )
        for m in range(len(theta))
    ]
    return sorted(rows, key=lambda row: -row.plain)


def without_finite_rating(wins: Float[np.ndarray, "M M"]) -> list[int]:
    """Models outside of the largest group in which chains of wins lead from each to each: they won or lost every vote
    against it, or never met it, and the likelihood has no maximum for them (Ford 1957). All where no two are in one.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.leaderboard.ratings import without_finite_rating
    >>> without_finite_rating(np.array([[0, 3, 2], [1, 0, 2], [0, 0, 0]]))
    [2]
    """
    return np.flatnonzero(~_largest_group(wins)).tolist()


def _reaches(wins: Float[np.ndarray, "M M"]) -> np.ndarray:
    """[M, M]: whether a chain of wins leads from one model to another."""
    reach = (np.asarray(wins) > 0) | np.eye(len(wins), dtype=bool)
    for middle in range(len(wins)):
        reach |= reach[:, middle, None] & reach[middle]
    return reach


def _largest_group(wins: Float[np.ndarray, "M M"]) -> np.ndarray:
    both = _reaches(wins)
    both &= both.T
    sizes = both.sum(axis=1)
    # One model alone is compared with nobody.
    return both[np.argmax(sizes)] & (sizes.max() > 1)


def _spread(wins: Float[np.ndarray, "M M"]) -> tuple[np.ndarray, np.ndarray]:
    """(covariance [M, M], NaN outside of the largest group; which pairs of models it compares [M, M])."""
    group = _largest_group(wins)
    within = np.ix_(group, group)
    found = np.full((len(wins), len(wins)), np.nan)
    if group.any():
        found[within] = covariance(np.asarray(wins)[within], bradley_terry(np.asarray(wins)[within]))
    return found, np.outer(group, group)


def _with_light(wins: Float[np.ndarray, "M M"]) -> Float[np.ndarray, "M M"]:
    light = LIGHT * (1.0 - np.eye(len(wins))) / max(len(wins) - 1, 1)
    return np.asarray(wins, float) + light


def _derivatives(counts: Float[np.ndarray, "M M"], theta: Float[np.ndarray, " M"]):
    """(gradient [M], information [M, M]) of the log-likelihood."""
    chance = win_chances(theta)
    missed = counts * (1 - chance)
    weight = counts * chance * (1 - chance)
    weight = weight + weight.T
    return missed.sum(axis=1) - missed.sum(axis=0), np.diag(weight.sum(axis=1)) - weight
