"""What `check_pairs` refuses, in one sentence each."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from made_pairs import N, P, made

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.io import check_pairs


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"chosen": np.array([["a"]] * N)},
            r"chosen has dtype <U1: give an array of numbers; texts .* io\.load_pairs",
        ),
        ({"rejected": np.ones(N)}, r"rejected has shape \(120,\): give \[N, p\]"),
        ({"rejected": np.ones((N, 2))}, r"chosen has shape \(120, 3\) and rejected \(120, 2\)"),
        ({"rejected": np.full((N, P), np.nan)}, r"rejected\[0, 0\] is nan: every entry must be finite"),
        ({"raters": np.arange(3)}, "raters has shape .3,.: give one for each of the 120 pairs"),
        ({"ids": np.arange(3)}, "ids has shape .3,."),
        ({"names": ("a",)}, "names has length 1: give one for each of the 3 features"),
        (
            {"weights": np.linspace(1.0, -1.0, N)},
            r"weights\[60\] is -0\.00840\d*: every entry must be finite and not neg",
        ),
        (
            {"strength": np.full(N, np.nan)},
            r"strength\[0\] is nan: every entry must be finite and not negative",
        ),
        ({"rejected": np.full((N, P), 1e39)}, r"column rejected_f0 is 1e\+39 in row 1, more than a float"),
    ],
)
def test_each_mistake_has_its_sentence(change, message):
    with pytest.raises(ValueError, match=message):
        check_pairs(dataclasses.replace(made(), **change))


def test_half_precision_is_taken_and_what_is_no_number_is_refused():
    pairs = made()
    halves = Pairs(jnp.asarray(pairs.chosen, jnp.bfloat16), jnp.asarray(pairs.rejected, jnp.bfloat16))
    check_pairs(halves)
    assert halves.differences().dtype == jnp.float32
    np.testing.assert_allclose(halves.differences(), pairs.differences(), atol=0.05)
    sparse = scipy.sparse.csr_matrix(pairs.chosen)
    with pytest.raises(ValueError, match=r"chosen is a sparse matrix: give chosen\.toarray\(\)"):
        check_pairs(Pairs(sparse, sparse))
    for wrong in (pd.Series([[1.0, 2.0], [3.0]]), pd.DataFrame({"x": ["1", "2"]})):
        with pytest.raises(ValueError, match="chosen has dtype object: give an array of numbers; chosen"):
            check_pairs(Pairs(wrong, wrong))


@pytest.mark.parametrize(
    ("side", "said"),
    [
        (pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, "4 km"]}), r"; chosen\[1, 1\] \(y\) is '4 km'\.$"),
        ([{"x": 1.0}, {"x": 2.0}], r"; chosen\[0\] is {'x': 1\.0}\.$"),
        ({"x": [1.0, 2.0]}, r"; chosen is {'x': \[1\.0, 2\.0\]}\.$"),
    ],
)
def test_the_first_entry_that_is_no_number_is_named(side, said):
    with pytest.raises(ValueError, match=said):
        fit_reward(Pairs(side, side))


@pytest.mark.parametrize(
    "swapped", [np.where(np.arange(N) % 2, 1, -1), ["False"] * N, [None, True] * (N // 2)]
)
def test_swapped_is_true_or_false(swapped):
    """−1 and words are true in NumPy."""
    with pytest.raises(ValueError, match="swapped must be true or false for each pair"):
        check_pairs(made(swapped=swapped))
    for given in (np.arange(N) % 2, pd.Series(np.arange(N) % 2 == 1).astype(object)):
        check_pairs(made(swapped=given))


def test_a_column_that_floats_lose_is_refused():
    """Its weight would be 0, as if the options were equal in it."""
    x = made().differences() * [1.0, 1e-50, 1.0]
    with pytest.raises(
        ValueError, match="rejected time is as good as 0 in float32: give the feature in a smaller"
    ):
        check_pairs(Pairs(x, 0 * x, names=("price", "time", "size")))
    x[3, 1] = 1e-30
    check_pairs(Pairs(x, 0 * x))
    x[:, 1] = 0
    check_pairs(Pairs(x, 0 * x))
