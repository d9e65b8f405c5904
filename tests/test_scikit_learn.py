"""The scikit-learn estimator: its contract, and that it is the robust fit."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from robust_rlhf_jax import Pairs, fit_reward, preferences
from robust_rlhf_jax.rewards import fit_differences
from robust_rlhf_jax.scikit_learn import RobustBradleyTerry

THETA = np.array([2.0, -1.0, 0.5])


def make(n=400, flipped=0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_t(4, size=(n, 3))
    y = rng.uniform(size=n) < 1 / (1 + np.exp(-x @ THETA))
    worst = np.argsort(-np.abs(x @ THETA))[:flipped]
    y[worst] = ~y[worst]
    return x, np.where(y, "second", "first")


@pytest.mark.slow
def test_the_contract_of_scikit_learn():
    # ε = 0 shares all but the fit with other ε, and compiles in a second a shape instead of ten.
    check_estimator(RobustBradleyTerry(epsilon=0))


@pytest.mark.slow
def test_without_corruption_it_is_maximum_likelihood_up_to_the_prior():
    """The prior weighs as a handful of pairs: it shortens θ by a few per cent of 400, and hardly turns it."""
    x, y = make()
    reference = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=1000).fit(x, y)
    plain = RobustBradleyTerry(epsilon=0).fit(x, y)
    one, other = plain.coef_[0], reference.coef_[0]
    assert 0.95 < np.linalg.norm(one) / np.linalg.norm(other) < 1.0
    assert one @ other > 0.9999 * np.linalg.norm(one) * np.linalg.norm(other)
    np.testing.assert_allclose(plain.predict_proba(x), reference.predict_proba(x), atol=0.02)
    robust = RobustBradleyTerry().fit(x, y)
    np.testing.assert_allclose(robust.coef_, plain.coef_, rtol=1e-3)
    assert robust.epsilon_ == 0


@pytest.mark.slow
def test_plain_fit_is_fit_differences_at_zero():
    x, y = make()
    labels = jnp.asarray(np.where(y == "second", 1.0, -1.0), jnp.float32)
    found = fit_differences(jnp.asarray(x, jnp.float32), labels, jnp.asarray(0.0, jnp.float32))
    np.testing.assert_allclose(RobustBradleyTerry(epsilon=0).fit(x, y).coef_[0], found.theta, rtol=1e-3)


@pytest.mark.slow
def test_it_survives_flipped_labels_and_says_so():
    x, y = make(flipped=40)
    _, clean = make()
    robust = RobustBradleyTerry().fit(x, y)
    assert robust.score(x, clean) > LogisticRegression(fit_intercept=False).fit(x, y).score(x, clean) + 0.05
    assert 0.05 < robust.epsilon_ < 0.2
    assert robust.interval_[0] <= 0.1 <= robust.interval_[1]
    assert robust.weights_[y != clean].mean() < 0.2 < robust.suspicion_[y != clean].mean()


@pytest.mark.slow
def test_pipelines_grid_searches_and_cleanlab_take_it():
    x, y = make()
    search = GridSearchCV(RobustBradleyTerry(), {"epsilon": [0, 0.0]}, cv=2, scoring="neg_log_loss").fit(x, y)
    assert search.best_estimator_.coef_.shape == (1, 3)
    pipe = make_pipeline(FunctionTransformer(), RobustBradleyTerry(epsilon=0))
    chance = cross_val_predict(pipe, x, y, cv=3, method="predict_proba")
    cleanlab = pytest.importorskip("cleanlab.filter")
    found = cleanlab.find_label_issues((y == "second").astype(int), chance)
    assert found.shape == y.shape


@pytest.mark.parametrize(("options", "y", "message"), [
    ({"epsilon": 0.5}, [0, 1, 0, 1], "outside"),
    ({}, [0, 1, 2, 1], "Only binary"),
    ({}, [1, 1, 1, 1], "only one class"),
])  # fmt: skip
def test_what_it_refuses(options, y, message):
    with pytest.raises(ValueError, match=message):
        RobustBradleyTerry(**options).fit(np.eye(4), y)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [None, 0.3, 0.0])
def test_pairs_off_the_table_count_as_in_a_reward_model(epsilon):
    """Some recorded features are not those of the table: the pairs are corrupt for certain."""
    rng = np.random.default_rng(0)
    options = rng.normal(size=(2, 300, 3))
    labels = np.where(rng.logistic(size=300) < (options[1] - options[0]) @ THETA, 1.0, -1.0)
    data = preferences.preferences_from_options(*options, labels)
    data = dataclasses.replace(data, features=data.features.at[:20].add(jnp.arange(3.0)))
    model, learnt = fit_reward(data, epsilon), RobustBradleyTerry(epsilon).fit(data)
    assert float(model.epsilon) >= 20 / 300 - 1e-6
    np.testing.assert_allclose(learnt.coef_[0], model.theta, rtol=1e-2)  # plain fits settle to that at ε = 0
    np.testing.assert_allclose(learnt.weights_, model.weights, atol=1e-6)
    suspicion = np.arange(300) < 20 if epsilon == 0 else model.suspicion
    np.testing.assert_allclose(learnt.suspicion_, suspicion, atol=1e-6)
    np.testing.assert_allclose(learnt.epsilon_, model.epsilon, rtol=1e-6)
    np.testing.assert_allclose(learnt.interval_, model.interval, rtol=1e-6)


def test_labels_beside_preferences_are_refused():
    data = preferences.rail_pairs()
    with pytest.raises(ValueError, match="preferences, which have their labels"):
        RobustBradleyTerry(0.0).fit(data, data.labels)


def test_numbers_that_no_float_holds_are_refused():
    x = np.random.default_rng(0).normal(size=(20, 2))
    y = x[:, 0] > 0
    huge = x.copy()
    huge[3, 1] = 1e39
    with pytest.raises(ValueError, match=r"X\[3, 1\] is 1e\+39, more than a float holds \(3.4e\+38\)"):
        RobustBradleyTerry(0).fit(huge, y)
    with pytest.raises(ValueError, match="Column 1 of X is as good as 0 in float32"):
        RobustBradleyTerry(0).fit(x * [1.0, 1e-60], y)


def test_a_fit_to_pairs_knows_the_names_of_their_features():
    x, y = make(60)
    frame = pd.DataFrame(x, columns=["price", "time", "size"])
    signs = np.where(y == "second", 1, -1)
    pairs = Pairs.of_differences(frame, signs)
    model = RobustBradleyTerry(0).fit(frame.rename(columns={"size": "mass"}), y).fit(pairs)
    assert list(model.feature_names_in_) == ["price", "time", "size"]
    right = model.decision_function(frame)
    with pytest.raises(ValueError, match="in the same order"):
        model.decision_function(frame[["time", "price", "size"]])
    np.testing.assert_allclose(model.decision_function(pairs), right, rtol=1e-6)
    np.testing.assert_array_equal(model.predict(pairs), np.sign(right))
    with pytest.raises(
        ValueError, match="the features time, price, size: give those of the fit, price, time, size"
    ):
        model.predict(Pairs.of_differences(frame[["time", "price", "size"]], signs))
    assert not hasattr(model.fit(Pairs.of_differences(x, signs)), "feature_names_in_")
    with pytest.raises(ValueError, match="the features 2: give those of the fit, 3"):
        model.predict_proba(Pairs.of_differences(x[:, :2], signs))


def test_preferences_are_scored_by_their_own_labels():
    rail = preferences.rail_pairs().take(range(300))
    model = RobustBradleyTerry(epsilon=0).fit(rail)
    assert model.score(rail) == model.score(rail, rail.labels) == np.mean(model.predict(rail) == rail.labels)
    words = RobustBradleyTerry(epsilon=0).fit(
        rail.differences(), np.where(rail.labels > 0, "first", "second")
    )
    assert words.classes_.tolist() == ["first", "second"]
    assert words.score(rail) == np.mean((words.predict(rail) == "second") == (rail.labels > 0))
    with pytest.raises(ValueError, match="ties or pairs of weight 0"):
        model.score(dataclasses.replace(rail, strength=np.zeros(300)))
    with pytest.raises(ValueError, match="is not fitted"):
        RobustBradleyTerry().score(rail)


@pytest.mark.parametrize("name", ["y", "groups"])
def test_rows_in_another_order_are_refused(name):
    """They count by their place, which would give each pair the label, or the rater, of another one."""
    x, y = make(n=40)
    frame, given = pd.DataFrame(x), {"y": pd.Series(y), "groups": pd.Series(np.arange(40) % 4)}
    turned = given | {name: given[name][::-1]}
    with pytest.raises(ValueError, match=f"^X and {name} have the same index in another order"):
        RobustBradleyTerry(0).fit(frame, **turned)
    fitted = RobustBradleyTerry(0).fit(frame, **given)
    with pytest.raises(ValueError, match=r"^X and y have the same index in another order"):
        fitted.score(frame, given["y"][::-1])
