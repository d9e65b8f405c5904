"""Pairs are taken in lists, frames, masked arrays and numbers of any type."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from made_pairs import N, P, made

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.io import check_pairs
from robust_rlhf_jax.preferences import as_labelled

LISTED = {
    "columns of lists": lambda side: pd.Series(side.tolist()),
    "columns of arrays": lambda side: pd.Series(list(side)),
    "nullable columns": lambda side: pd.DataFrame(side).astype("Float64"),
    "true, false and numbers": lambda side: pd.DataFrame(side).assign(more=[True, False] * (len(side) // 2)),
}


@pytest.mark.parametrize("hold", LISTED.values(), ids=LISTED)
def test_numbers_are_taken_however_a_frame_holds_them(hold):
    pairs = made()
    held = Pairs(hold(pairs.chosen), hold(pairs.rejected))
    check_pairs(held)
    np.testing.assert_array_equal(held.differences()[:, :3], pairs.differences())


@pytest.mark.parametrize("name", ["weights", "strength"])
@pytest.mark.parametrize(("values", "dtype"), [(["1"] * N, "<U1"), ([1.0, None] * (N // 2), "object")])
def test_what_is_no_number_by_pair_is_named(name, values, dtype):
    with pytest.raises(ValueError, match=rf"^{name} has dtype {dtype}: give a number for each pair\.$"):
        made(**{name: values})


@pytest.mark.parametrize("name", ["weights", "strength"])
@pytest.mark.parametrize("values", [np.ones(3), np.zeros((N, 1)), 1.0])
def test_another_number_of_weights_is_named_before_they_are_compared(name, values):
    """NumPy would make N² of a column of them."""
    pairs = made(**{name: np.asarray(values)})
    for call in (fit_reward, lambda pairs: pairs.fitted, lambda pairs: pairs.decided()):
        with pytest.raises(
            ValueError, match=rf"{name} has shape \(.*: give one for each of the {N} pairs\.$"
        ):
            call(pairs)


def test_lists_are_arrays():
    pairs = made()
    listed = Pairs(pairs.chosen.tolist(), pairs.rejected.tolist(), raters=["Ann", "Ben"] * (N // 2))
    assert listed.take(np.arange(3)).raters.tolist() == ["Ann", "Ben", "Ann"]
    np.testing.assert_array_equal(listed.differences(), pairs.differences())


def test_lists_of_several_lengths_are_named():
    with pytest.raises(ValueError, match="chosen is a list whose entries have several lengths"):
        Pairs([[1.0, 2.0], [3.0]], [[1.0, 2.0], [3.0]])


def test_numbers_by_pair_may_be_of_several_types():
    given = made(
        strength=pd.Series([0, 1.5] * (N // 2), dtype=object), weights=[1, True] * (N // 2), names=(1, 2, 3)
    )
    check_pairs(given)
    assert given.fitted.sum() == N // 2
    assert given.names == ("1", "2", "3")
    assert "features (1, 2, 3)" in repr(given)


def test_floats_longer_than_those_of_jax_are_taken():
    pairs = made()
    long = Pairs(pairs.chosen.astype(np.longdouble), pairs.rejected.astype(np.longdouble))
    assert long.differences().dtype == np.float64
    np.testing.assert_array_equal(as_labelled(long).x, as_labelled(pairs).x)


def test_what_a_mask_hides_is_missing():
    hidden = np.arange(N * P).reshape(N, P) == 4
    pairs, hides = made(), np.ma.masked_array(made().chosen, hidden)
    for given in (
        Pairs(hides, pairs.rejected),
        Pairs(list(hides), pairs.rejected),
        Pairs.of_differences(hides, np.ones(N)),
    ):
        with pytest.raises(ValueError, match=r"chosen\[1, 1\] is nan: every entry must be finite"):
            check_pairs(given)
    with pytest.raises(ValueError, match=r"labels\[1\] is nan"):
        Pairs.of_differences(pairs.chosen, np.ma.masked_array(np.ones(N, int), np.arange(N) == 1))
    raters = made(raters=np.ma.masked_array(["Ann", "Ben"] * (N // 2), np.arange(N) == 1)).raters
    assert raters[:3].tolist() == ["Ann", "nobody, row 1", "Ann"]
    check_pairs(Pairs(np.ma.masked_array(pairs.chosen), pairs.rejected))


@pytest.mark.parametrize(
    "call", [lambda p: jax.jit(fit_reward)(p), lambda p: jax.vmap(fit_reward)(p), jnp.asarray, jnp.sum]
)
def test_pairs_are_no_array_of_jax(call):
    pairs = Pairs(np.ones((3, 1)), np.zeros((3, 1)))
    with pytest.raises(
        ValueError, match=r"^Pairs cannot go into jax\.jit, .*: call fit_reward\(pairs\) and the like"
    ):
        call(pairs)


def test_pairs_are_copied_and_sent_all_the_same():
    pairs = Pairs(np.ones((3, 1)), np.zeros((3, 1)))
    assert copy.deepcopy(pairs) == pickle.loads(pickle.dumps(pairs)) == pairs


def test_a_name_for_each_column_is_asked_for():
    with pytest.raises(ValueError, match=r"^names is 3: give a list with a name for each column"):
        Pairs(np.ones((3, 3)), np.zeros((3, 3)), names=3)
