"""Who is compared: every registered estimator, `fit_reward` without ε, those that know raters, and null baselines."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.lab.pair_attacks import AttackedPairs
from robust_rlhf_jax.lab.pair_attacks.base import chance, sizes
from robust_rlhf_jax.preferences import comparison_numbers
from robust_rlhf_jax.raters import fit_weighed
from robust_rlhf_jax.raters.kinds import BAD
from robust_rlhf_jax.raters.protocol import BAD_BELOW, RaterEntry
from robust_rlhf_jax.raters.registry import RATER_ESTIMATORS
from robust_rlhf_jax.rewards import CEILING, fit_differences
from robust_rlhf_jax.rewards.registry import DEFAULT, ESTIMATORS, Entry

# The ball of θ, in columns of root mean square 1, for estimators that need one: it binds for none of the files here.
RADIUS = 50.0
PLAIN = "maximum_likelihood"
LENGTH = ("words", "length", "tokens", "chars")


class Fitted(NamedTuple):
    """`probability` of the first option from differences [m, k]; `suspicion` [N] or None; `bad` [K]: which raters are
    called bad, None if raters are not judged.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.lab.benchmark import Fitted
    >>> Fitted(lambda x: np.full(len(x), 0.5)).probability(np.ones((2, 3))).tolist()
    [0.5, 0.5]
    """

    probability: Callable[[Float[np.ndarray, "m k"]], Float[np.ndarray, " m"]]
    suspicion: Float[np.ndarray, " N"] | None = None
    bad: Bool[np.ndarray, " K"] | None = None


class Contestant(NamedTuple):
    """`fit(pairs, ε, names of the features)`; `line`: what it is; `needs_raters`: only run where they are known.

    **Example:**

    >>> from robust_rlhf_jax.lab.benchmark import contestants
    >>> contestants()["fit_weighed"].needs_raters
    True
    """

    fit: Callable[[AttackedPairs, float, tuple[str, ...]], Fitted]
    line: str
    needs_raters: bool = False


def contestants(more: Mapping[str, Entry | RaterEntry] | None = None) -> dict[str, Contestant]:
    """All contestants by name: `fit_reward`, told ε and not, the other estimators, those that know raters, null
    baselines.

    **Arguments:** `more`: further estimators, as in `rewards/registry.py` and `raters/registry.py`.

    **Example:**

    >>> from robust_rlhf_jax.lab.benchmark import contestants
    >>> list(contestants())[:3]
    ['fit_reward', 'fit_reward_untold', 'maximum_likelihood']
    """
    entries = {**ESTIMATORS, **RATER_ESTIMATORS, **(more or {})}
    return {
        DEFAULT: Contestant(_robust(told=True), "the explanations of the labels, weighed; ε is told"),
        f"{DEFAULT}_untold": Contestant(_robust(told=False), "the same without ε"),
        **{name: _of_entry(entry) for name, entry in entries.items() if name != DEFAULT},
        "fit_weighed": Contestant(
            _weighed, "raters weighed by evidence, then maximum likelihood; ε is not used", needs_raters=True
        ),
        "longest": Contestant(_longest, "the longer option, as often as it is preferred"),
        "majority": Contestant(_majority, "the place that is preferred more often"),
    }


@cache
def _compiled_robust():
    return jax.jit(fit_differences)


def _robust(told: bool):
    def fit(pairs: AttackedPairs, epsilon: float, names: tuple[str, ...]) -> Fitted:
        x, labels = (jnp.asarray(part, jnp.float32) for part in (pairs.x, pairs.labels))
        groups = None if pairs.raters is None else jnp.asarray(pairs.raters)
        level = jnp.float32(epsilon if told else CEILING)
        same = comparison_numbers(pairs.x)
        found = jax.block_until_ready(_compiled_robust()(x, labels, level, groups, None, same))

        def probability(x):
            return np.asarray(found.probability(jnp.asarray(x, jnp.float32)), float)

        return Fitted(probability, np.asarray(found.suspicion, float))

    return fit


def _of_entry(entry: Entry | RaterEntry) -> Contestant:
    if isinstance(entry, RaterEntry):
        return Contestant(_rater_entry(entry), entry.line, needs_raters=True)
    return Contestant(_entry(entry), entry.line)


def _entry(entry: Entry):
    compiled = jax.jit(lambda x, labels, epsilon: entry.estimate(x, labels, epsilon, radius=RADIUS))

    def fit(pairs: AttackedPairs, epsilon: float, names: tuple[str, ...]) -> Fitted:
        size = sizes(pairs.x)
        given = (jnp.asarray(part, jnp.float32) for part in (pairs.x / size, pairs.labels, epsilon))
        found = jax.block_until_ready(compiled(*given))
        _check_estimate(found, pairs)
        theta = np.asarray(found.theta, float) / size
        return Fitted(lambda x: chance(theta, x), np.asarray(found.suspicion, float))

    return fit


def _check_estimate(found: Any, pairs: AttackedPairs) -> None:
    """**Raises:** TypeError for no estimate, ValueError for one of other shapes: broadcast, it would be scored."""
    if not hasattr(found, "theta") or not hasattr(found, "suspicion"):
        raise TypeError(f"it gave a {type(found).__name__}: return a rewards.RewardEstimate")
    _check_shape("theta", found.theta, pairs.x.shape[1], "feature")
    _check_shape("suspicion", found.suspicion, len(pairs.x), "pair")


def _check_shape(name: str, value: Any, size: int, of: str) -> None:
    if np.iscomplexobj(value):
        raise ValueError(f"its {name} has complex numbers: return real ones")
    if np.shape(value) != (size,):
        raise ValueError(
            f"its {name} has shape {np.shape(value)}: return ({size},), one number for each {of}"
        )


def _rater_entry(entry: RaterEntry):
    compiled = jax.jit(partial(entry.estimate, radius=RADIUS), static_argnames="n_raters")

    def fit(pairs: AttackedPairs, epsilon: float, names: tuple[str, ...]) -> Fitted:
        assert pairs.raters is not None
        size, n_raters = sizes(pairs.x), int(pairs.raters.max()) + 1
        given = (jnp.asarray(part, jnp.float32) for part in (pairs.x / size, pairs.labels, epsilon))
        found = jax.block_until_ready(compiled(*given, jnp.asarray(pairs.raters), n_raters=n_raters))
        _check_estimate(found, pairs)
        if found.reliability is not None:
            _check_shape("reliability", found.reliability, n_raters, "rater")
        theta = np.asarray(found.theta, float) / size
        bad = None if found.reliability is None else np.asarray(found.reliability) < BAD_BELOW
        return Fitted(lambda x: chance(theta, x), np.asarray(found.suspicion, float), bad)

    return fit


def _weighed(pairs: AttackedPairs, epsilon: float, names: tuple[str, ...]) -> Fitted:
    assert pairs.raters is not None
    given = Pairs.of_differences(np.float32(pairs.x), pairs.labels)
    found = fit_weighed(given, pairs.raters, chose_first=pairs.labels)
    theta = np.asarray(found.theta, float)
    # The table has the raters by number, as texts in the order of the numbers.
    bad = np.isin([row.kind for row in found.table.rows], BAD)
    return Fitted(lambda x: chance(theta, x), 1.0 - np.asarray(found.table.weights, float), bad)


def _majority(pairs: AttackedPairs, epsilon: float, names: tuple[str, ...]) -> Fitted:
    first = float(np.mean(pairs.labels > 0))
    return Fitted(lambda x: np.full(len(x), first))


def _longest(pairs: AttackedPairs, epsilon: float, names: tuple[str, ...]) -> Fitted:
    """A fair coin if no feature is a length."""
    column = next((i for i, name in enumerate(names) if any(word in name for word in LENGTH)), None)
    if column is None:
        return Fitted(lambda x: np.full(len(x), 0.5))
    longer = np.sign(pairs.x[:, column])
    often = float(np.mean(np.where(longer == 0, 0.5, pairs.labels * longer > 0)))
    return Fitted(lambda x: 0.5 + (often - 0.5) * np.sign(x[:, column]))
