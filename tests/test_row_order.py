"""Frames and columns that are given together have their rows in one order, or are refused."""

import numpy as np
import pandas as pd
import pytest

from robust_rlhf_jax.likelihood import stationarity, trimmed_mle
from robust_rlhf_jax.moments import robust_linear_regression
from robust_rlhf_jax.rewards import fit_differences, plain_fit, robust_reward
from robust_rlhf_jax.row_order import check_rows

EPSILON = np.float32(0.1)
X = pd.DataFrame(np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32))
LABELS = pd.Series(np.sign(X[0]))
TURNED = LABELS.iloc[::-1]
SAID = "{} and {} have the same index in another order: put their rows in one order"


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: robust_linear_regression(X, TURNED, EPSILON), ("phi", "targets")),
        (lambda: trimmed_mle(X, TURNED, EPSILON, radius=3.0), ("x", "labels")),
        (lambda: trimmed_mle(X, LABELS, EPSILON, radius=3.0, weights=TURNED.abs()), ("x", "weights")),
        (lambda: stationarity(np.zeros(2), X, TURNED, EPSILON), ("x", "labels")),
        (lambda: robust_reward(X, X, TURNED, EPSILON, radius=3.0), ("x", "labels")),
        (lambda: fit_differences(X, TURNED, EPSILON), ("x", "labels")),
        (lambda: fit_differences(X, LABELS, EPSILON, TURNED > 0), ("x", "groups")),
        (lambda: plain_fit(X, TURNED), ("x", "labels")),
        (lambda: plain_fit(X, LABELS, TURNED.abs()), ("x", "weights")),
    ],
)
def test_rows_in_another_order_are_refused(call, names):
    with pytest.raises(ValueError, match=f"^{SAID.format(*names)}"):
        call()


def test_rows_of_another_index_count_by_their_place():
    check_rows(x=X, labels=LABELS, weights=None, groups=[0] * 6)
    check_rows(x=X, labels=TURNED.reset_index(drop=True), weights=LABELS.set_axis(list("abcdef")))


def test_an_index_of_several_types_has_an_order_too():
    one = pd.Series([1.0, 2.0], index=["a", 1])
    with pytest.raises(ValueError, match=SAID.format("one", "other")):
        check_rows(one=one, other=one.iloc[::-1])
