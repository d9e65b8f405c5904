"""`RobustBradleyTerry`: the robust reward as a scikit-learn classifier. Needs scikit-learn."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from robust_rlhf_jax.checks import check_epsilon
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.preferences import (
    Labelled,
    PreferenceData,
    as_labelled,
    comparison_numbers,
    group_numbers,
)
from robust_rlhf_jax.preferences.validation import check_decided
from robust_rlhf_jax.rewards import CEILING, plain_fit
from robust_rlhf_jax.rewards.front_door import fit_labelled, known_names
from robust_rlhf_jax.row_order import check_rows
from robust_rlhf_jax.sources import PairSource


class RobustBradleyTerry(ClassifierMixin, BaseEstimator):
    """P(classes_[1] | x) = σ(θᵀx), x = φ(second option) − φ(first option), θ by `fit_reward`.

    There is no intercept: an option is not better for its place. Columns of X need no scaling. Some labels may be
    corrupt; without evidence of that the fit is maximum likelihood.

    **Arguments:** `epsilon`: the largest share of corrupt pairs, in [0, ½); None: decided from the evidence, up to a
    fifth; 0: plain maximum likelihood.

    **Attributes after `fit`:** `classes_` [2]; `coef_` [1, p], θ; `intercept_` [1], 0; `n_features_in_`; `epsilon_`,
    `interval_`: share of pairs that are corrupt, as `RewardModel` has them; `weights_`, `suspicion_` [N] of the
    training pairs, too. At ε = 0 there are no suspects: 1 for pairs that a table contradicts, else 0. It passes
    `check_estimator`; it takes two classes, dense X and no sample weights.

    **Raises:** ValueError in `fit` for ε outside [0, ½), anything but two classes, entries that are not finite in JAX's
    floats, or columns whose rows have the same index as those of X in another order.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.scikit_learn import RobustBradleyTerry
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = RobustBradleyTerry(epsilon=0).fit(x, x @ [2.0, -1.0] + x[:, 0] ** 3 / 9 > 0)
    >>> model.score(x, x @ [2.0, -1.0] > 0) > 0.9
    True
    """

    def __init__(self, epsilon: float | None = None):
        self.epsilon = epsilon

    def fit(self, X: Any, y: Any = None, groups: Any = None):
        """Fit θ to differences X [N, p] and labels y [N] of two classes; `groups` [N]: who labelled each pair.

        X may be `Pairs` or `PreferenceData` instead, which have their labels: classes_ are −1 and 1. Predictions take
        them, too.
        """
        if isinstance(X, Pairs | PreferenceData):
            if y is not None:
                raise ValueError("y is given beside preferences, which have their labels: leave it out.")
            seen = as_labelled(X, groups)
            self.n_features_in_, self.classes_ = seen.x.shape[1], np.array([-1, 1])
            self._name(known_names(X))
            if self.epsilon is not None:
                check_epsilon(self.epsilon)
            return self._fit(seen)
        if isinstance(X, PairSource):
            raise ValueError(
                "RobustBradleyTerry takes arrays, and not a PairSource: give it to fit_reward, which reads by passes."
            )
        check_rows(X=X, y=y, groups=groups)
        X, y = validate_data(self, X, y, dtype=(np.float64, np.float32), ensure_min_samples=2)
        check_classification_targets(y)
        if type_of_target(y) != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {type_of_target(y)}."
            )
        self.classes_, place = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("Classifier can't train when only one class is present.")
        if self.epsilon is not None:
            check_epsilon(self.epsilon)
        x, n = _in_floats(X), len(place)
        numbers = None if groups is None else group_numbers(groups, n)
        labels, off = jnp.asarray(2.0 * place - 1.0, x.dtype), jnp.zeros(n, bool)
        return self._fit(Labelled(x, labels, off, numbers, comparison_numbers(X)))

    def _name(self, names: tuple[str, ...]) -> None:
        """Keep the names of the features, by which data frames are checked from now on, and none of a fit before."""
        vars(self).pop("feature_names_in_", None)
        if names:
            self.feature_names_in_ = np.array(names, object)

    def _fit(self, seen: Labelled):
        if self.epsilon == 0:
            off = np.asarray(seen.off, float)
            theta, weights, suspicion = plain_fit(seen.believed_x, seen.labels)[0], 1.0 - off, off
            epsilon, interval = off.mean(), (off.mean(), off.mean())
        else:
            ceiling = jnp.asarray(CEILING if self.epsilon is None else self.epsilon, seen.x.dtype)
            found = fit_labelled(seen, ceiling)
            theta, weights, suspicion = found.theta, found.weights, found.suspicion
            epsilon, interval = found.epsilon, found.interval
        self.coef_, self.intercept_ = np.asarray(theta, np.float64)[None], np.zeros(1)
        self.weights_, self.suspicion_ = np.asarray(weights), np.asarray(suspicion)
        self.epsilon_, self.interval_ = float(epsilon), np.asarray(interval)
        return self

    def decision_function(self, X: Any):
        """θᵀx of rows of X, or of the differences of preferences: above 0 where classes_[1] is likelier."""
        check_is_fitted(self)
        X = np.asarray(self._rows(X))
        # Row by row, so that a row's number does not depend on what it comes with.
        return np.sum(X.astype(np.float64) * self.coef_[0], axis=1)

    def _rows(self, X: Any) -> Any:
        if not isinstance(X, Pairs | PreferenceData):
            return validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        names, fitted = known_names(X), tuple(getattr(self, "feature_names_in_", ()))
        x = X.differences()
        if x.shape[1] != self.n_features_in_ or (names and fitted and names != fitted):
            raise ValueError(
                f"the preferences have the features {', '.join(names) or x.shape[1]}: give those of the fit, "
                f"{', '.join(fitted) or self.n_features_in_}, in that order."
            )
        return x

    def predict_proba(self, X: Any):
        """[N, 2] of P(class | x), in the order of `classes_`."""
        second = expit(self.decision_function(X))
        return np.stack([1.0 - second, second], axis=1)

    def predict(self, X: Any):
        """The likelier class of each row."""
        above = self.decision_function(X) > 0  # first: it says whether there was a fit
        return self.classes_[above.astype(int)]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of right predictions; of preferences, which have their labels, without y.

        **Raises:** ValueError for pairs without a label, such as ties, and for columns of the same index in another
        order.
        """
        check_rows(X=X, y=y, sample_weight=sample_weight)
        if y is None and isinstance(X, Pairs | PreferenceData):
            check_is_fitted(self)
            if isinstance(X, Pairs):
                check_decided(X)
            y = self.classes_[(np.asarray(X.labels) > 0).astype(int)]
        return super().score(X, y, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _in_floats(X: np.ndarray) -> jnp.ndarray:
    """X in JAX's floats.

    **Raises:** ValueError for an entry that they do not hold, or a column of which they leave nothing.
    """
    with np.errstate(over="ignore"):
        x = jnp.asarray(X)
    limits = jnp.finfo(x.dtype)
    beyond = np.argwhere(~np.isfinite(x))
    if len(beyond):
        i, j = beyond[0]
        raise ValueError(
            f"X[{i}, {j}] is {X[i, j]:g}, more than a float holds ({float(limits.max):.2g}): give the feature in a "
            "larger unit."
        )
    lost = np.flatnonzero(X.any(axis=0) & ~(np.abs(x) >= limits.tiny).any(axis=0))
    if len(lost):
        raise ValueError(
            f"Column {lost[0]} of X is as good as 0 in {x.dtype}: give the feature in a smaller unit."
        )
    return x
