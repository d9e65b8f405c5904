import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from robust_rlhf_jax import Pairs
from robust_rlhf_jax.preferences import preferences_from_features, preferences_from_options, with_table

OPTION0 = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
OPTION1 = np.array([[3.0, 4.0], [5.0, 6.0], [0.0, 0.0]])
LABELS = np.array([1.0, -1.0, 1.0])


def test_options_become_rows_of_the_table():
    data = preferences_from_options(OPTION0, OPTION1, LABELS)
    assert data.state_features.shape == (4, 1, 2)
    assert data.states.shape == (3, 2, 2)
    assert data.states.dtype == jnp.int32
    assert data.actions.shape == (3, 2, 1)
    assert not data.actions.any()
    np.testing.assert_array_equal(data.states[..., 0], data.states[..., 1])
    np.testing.assert_array_equal(data.features[:, 0, 0], OPTION0)
    np.testing.assert_array_equal(data.features[:, 1, 0], OPTION1)
    np.testing.assert_array_equal(data.state_features[data.states[..., :-1], data.actions], data.features)
    np.testing.assert_array_equal(data.differences(), OPTION1 - OPTION0)
    np.testing.assert_array_equal(data.labels, LABELS)


@pytest.mark.parametrize("n", [3, 4096])  # memory of the second size may be aligned, and then be shared
def test_what_was_given_may_be_written_to(n):
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(n, 2)).astype(np.float32), rng.normal(size=(n, 2)).astype(np.float32)]
    labels = rng.choice([-1.0, 1.0], n).astype(np.float32)
    data = preferences_from_options(*given, labels)
    kept = jax.tree.map(np.array, data)
    for array in (*given, labels):
        array[:] = 7.0
    jax.tree.map(np.testing.assert_array_equal, data, kept)


def test_chosen_is_trajectory_1_by_default():
    data = preferences_from_features(OPTION1, OPTION0)
    np.testing.assert_array_equal(data.labels, np.ones(3))
    np.testing.assert_array_equal(data.features[:, 1, 0], OPTION1)


def test_labels_place_the_chosen_option():
    data = preferences_from_features(OPTION1, OPTION0, LABELS)
    np.testing.assert_array_equal(data.labels, LABELS)
    np.testing.assert_array_equal(data.labels[:, None] * data.differences(), OPTION1 - OPTION0)
    np.testing.assert_array_equal(data.features[1, 0, 0], OPTION1[1])


FRAMES = [pd.DataFrame(side, columns=["price", "time"]) for side in (OPTION0, OPTION1)]


def test_columns_of_frames_are_taken_by_their_names():
    expected = preferences_from_options(OPTION0, OPTION1, LABELS)
    turned = FRAMES[1][["time", "price"]].convert_dtypes()
    found = preferences_from_options(FRAMES[0], turned, pd.Series(LABELS))
    jax.tree.map(np.testing.assert_array_equal, dataclasses.replace(found, names=()), expected)
    chosen = preferences_from_features(FRAMES[1].add_prefix("chosen_"), turned.add_prefix("rejected_") - 1)
    np.testing.assert_array_equal(chosen.differences(), np.ones((3, 2)))


def test_names_of_columns_are_kept():
    option0, option1 = FRAMES
    names = tuple(option0.columns)
    for data in (
        preferences_from_options(option0, option1, LABELS),
        preferences_from_features(option0.add_prefix("chosen_"), option1.add_prefix("rejected_"), LABELS),
        with_table(Pairs(option0, option1)),
        with_table(Pairs(OPTION0, OPTION1, names=names)),
    ):
        assert data.names == data.take([1]).names == names
    assert (
        preferences_from_options(OPTION0, OPTION1, LABELS).names
        == with_table(Pairs(OPTION0, OPTION1)).names
        == ()
    )


def test_labels_may_be_numbers_in_an_array_of_objects():
    options = np.eye(2), np.zeros((2, 2))
    for make in (preferences_from_options, preferences_from_features):
        labels = make(*options, np.array([1, -1.0], object)).labels
        assert labels.dtype == np.float32
        assert labels.tolist() == [1, -1]


def test_columns_of_arrow_tables_are_taken_by_their_names():
    first, second = (pa.Table.from_pandas(frame) for frame in FRAMES)
    expected = preferences_from_options(OPTION0, OPTION1, LABELS)
    for other in (second.select(["time", "price"]), FRAMES[1][["time", "price"]]):
        found = preferences_from_options(first, other, pa.array(LABELS))
        assert found.names == ("price", "time")
        jax.tree.map(np.testing.assert_array_equal, dataclasses.replace(found, names=()), expected)
    raters = pa.array(["ann", None, "ben"])
    pairs = Pairs(
        first, second.select(["time", "price"]), raters=raters, swapped=pa.array([False, True, False])
    )
    assert pairs.names == ("price", "time")
    assert pairs.raters.tolist() == ["ann", "nobody, row 1", "ben"]
    assert pairs.labels.tolist() == [1, -1, 1]
    np.testing.assert_array_equal(pairs.take([2]).preferred_differences(), OPTION0[2:] - OPTION1[2:])


def test_frames_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="'time' only in option0; 'taste' only in option1"):
        preferences_from_options(FRAMES[0], FRAMES[1].rename(columns={"time": "taste"}), LABELS)
    with pytest.raises(ValueError, match="option0 and option1 have the same index in another order"):
        preferences_from_options(FRAMES[0], FRAMES[1][::-1], LABELS)
    with pytest.raises(ValueError, match="chosen and labels have the same index in another order"):
        preferences_from_features(*FRAMES, pd.Series(LABELS)[::-1])


def test_options_in_bfloat16():
    data = preferences_from_options(
        jnp.asarray(OPTION0, jnp.bfloat16), jnp.asarray(OPTION1, jnp.bfloat16), LABELS
    )
    np.testing.assert_array_equal(data.differences(), OPTION1 - OPTION0)


@pytest.mark.slow
@given(
    array_shapes(min_dims=2, max_dims=2, max_side=4).flatmap(
        lambda shape: arrays(np.float32, (2, *shape), elements=st.sampled_from([-1.5, 0.0, -0.0, 0.25, 3.0]))
    )
)
def test_the_table_always_gives_the_features_back(options):
    options[0, 0, 0], options[1, 0, 0] = 7.0, 8.0  # some pair differs
    data = preferences_from_features(options[1], options[0])
    np.testing.assert_array_equal(data.state_features[data.states[..., :-1], data.actions], data.features)
    np.testing.assert_array_equal(data.differences(), options[1] - options[0])
    assert len(np.unique(data.state_features[:, 0], axis=0)) == len(data.state_features)


def test_integers_and_booleans_become_floats():
    data = preferences_from_options(np.array([[1], [2]]), np.array([[True], [False]]), np.array([1, -1]))
    assert data.features.dtype == data.labels.dtype == data.state_features.dtype == jnp.zeros(()).dtype


@pytest.mark.parametrize(
    ("option0", "option1", "labels", "message"),
    [
        (OPTION0, OPTION1[:2], LABELS, r"option0 has shape \(3, 2\) and option1 \(2, 2\)"),
        (OPTION0, OPTION1[:, 0], LABELS, r"option1 has shape \(3,\): give \[N, p\]"),
        (OPTION0[:0], OPTION1[:0], LABELS[:0], r"option0 has shape \(0, 2\)"),
        (OPTION0[:, :0], OPTION1[:, :0], LABELS, r"option0 has shape \(3, 0\)"),
        (OPTION0, OPTION1, LABELS[:2], "one label for each of the 3 pairs"),
        (OPTION0, OPTION1, np.array([0, 1, 1]), "map 0 to -1"),
        (OPTION0, OPTION1, np.array(["a", "b", "b"]), "^labels holds 'a': every label must be the number"),
        (OPTION0, OPTION1, np.array(["1", "1", "-1"]), "^labels holds '1': every label must be the number"),
        (OPTION0.astype(str), OPTION1, LABELS, "option0 has dtype .*: give an array of numbers"),
        (OPTION0 * np.nan, OPTION1, LABELS, "is nan"),
        (OPTION0, OPTION0, LABELS, "no direction"),
    ],
)
def test_bad_options_are_named(option0, option1, labels, message):
    with pytest.raises(ValueError, match=message):
        preferences_from_options(option0, option1, labels)


def test_what_overflows_float32_is_named():
    with jax.enable_x64(False), pytest.raises(ValueError, match=r"features\[\d+, 0, 0\] is inf"):
        preferences_from_options(OPTION0 * 1e300, OPTION1, LABELS)


def test_bad_features_are_named():
    with pytest.raises(ValueError, match=r"chosen has shape \(3, 2\) and rejected \(3, 1\)"):
        preferences_from_features(OPTION0, OPTION1[:, :1])
    with pytest.raises(ValueError, match="map 0 to -1"):
        preferences_from_features(OPTION0, OPTION1, np.array([0, 1, 0]))


def test_labels_that_a_mask_hides_are_missing():
    with pytest.raises(ValueError, match=r"labels\[1\] is nan"):
        preferences_from_options(OPTION0, OPTION1, np.ma.masked_array(LABELS, [0, 1, 0]))


@pytest.mark.parametrize("units", [[1.0, 1e-50], [1e-50, 1e-50]])
def test_columns_that_float32_makes_0_are_named(units):
    with jax.enable_x64(False), pytest.raises(ValueError, match=r"f[01] is as good as 0 in float32"):
        preferences_from_options(OPTION0 * units, OPTION1 * units, LABELS)
