"""One type for pairs: what it derives, what it refuses, and that fits see the same as of trajectories."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from made_pairs import N, made

from robust_rlhf_jax import Pairs, estimate_epsilon, fit_reward, preferences_from_features, robust_policy
from robust_rlhf_jax.audit import audit, flag, suspicion_scores
from robust_rlhf_jax.io import load_pairs
from robust_rlhf_jax.preferences import as_labelled, with_table


@pytest.mark.slow
def test_both_kinds_of_data_give_the_same_fit_flags_and_audit():
    pairs = made()
    data = preferences_from_features(pairs.chosen, pairs.rejected)
    one, other = fit_reward(pairs, 0.1), fit_reward(data, 0.1)
    np.testing.assert_allclose(one.theta, other.theta, rtol=1e-4)
    np.testing.assert_allclose(one.suspicion, other.suspicion, atol=1e-4)
    np.testing.assert_allclose(estimate_epsilon(pairs).upper, estimate_epsilon(data).upper, atol=1e-5)
    np.testing.assert_array_equal(flag(pairs, 0.1), flag(data, 0.1))
    given = {"estimator": "filtered", "ask_table": False}
    scores = [suspicion_scores(d, 0.1, **given) for d in (pairs, data)]
    np.testing.assert_allclose(*scores, rtol=1e-3, atol=1e-4)
    found = [audit(jax.random.key(0), d, folds=2, repeats=1).suspicion for d in (pairs, data)]
    np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_a_policy_is_planned_from_pairs_as_from_their_table():
    pairs = made()
    one, other = (robust_policy(jax.random.key(0), d, 0.1) for d in (pairs, with_table(pairs)))
    np.testing.assert_array_equal(one.policy, other.policy)


@pytest.mark.slow
def test_raters_of_pairs_are_the_groups_of_a_fit():
    raters = np.array([f"r{i % 12}" for i in range(N)])
    alone, told = fit_reward(made(raters=raters)), fit_reward(made(), groups=raters)
    np.testing.assert_array_equal(alone.interval, told.interval)
    assert as_labelled(made(raters=raters)).groups is not None
    assert as_labelled(made(raters=np.arange(N) % 3)).groups is None


def test_arrays_of_jax_are_pairs_under_jit():
    pairs = made()
    x = jax.jit(lambda a, b: as_labelled(Pairs(a, b)).x)(
        jnp.asarray(pairs.chosen), jnp.asarray(pairs.rejected)
    )
    np.testing.assert_allclose(x, pairs.differences(), atol=1e-6)


@pytest.mark.slow
def test_differences_and_labels_of_jax_are_pairs_under_jit_and_vmap():
    """They were what JAX calls a TracerArrayConversionError."""
    pairs = made(swapped=np.arange(N) % 3 == 0)
    x, labels = jnp.asarray(pairs.differences()), jnp.asarray(pairs.labels)
    told = jax.jit(lambda x, labels: (lambda p: (p.differences(), p.labels))(Pairs.of_differences(x, labels)))
    np.testing.assert_array_equal(told(x, labels)[0], x)
    np.testing.assert_array_equal(told(x, labels)[1], labels)
    thetas = jax.vmap(lambda labels: fit_reward(Pairs.of_differences(x, labels), 0).theta)(
        jnp.stack([labels, -labels])
    )
    np.testing.assert_allclose(thetas[0], fit_reward(pairs, 0).theta, rtol=1e-3)
    np.testing.assert_allclose(thetas[1], -thetas[0], rtol=1e-4)


def test_labels_under_jit_beside_differences_in_float64_warn_of_nothing():
    x, labels = np.array([[2.0], [1.0]]), jnp.array([1, -1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chosen = jax.jit(lambda labels: Pairs.of_differences(x, labels).chosen)(labels)
    np.testing.assert_array_equal(chosen, [[2.0], [-1.0]])


def test_one_pair_is_shown_as_one():
    assert repr(Pairs(np.ones((1, 1)), np.zeros((1, 1)))) == "Pairs(1 pair of 1 feature (f0))"


def test_labels_and_differences_say_the_same():
    x, labels = np.random.default_rng(0).normal(size=(6, 2)), np.array([1, -1, 1, 1, -1, -1])
    pairs = Pairs.of_differences(x, labels)
    np.testing.assert_array_equal(pairs.differences(), x)
    np.testing.assert_array_equal(pairs.labels, labels)
    np.testing.assert_array_equal(pairs.preferred_differences(), x * labels[:, None])
    some = pairs.take([4, 0])
    np.testing.assert_array_equal(some.differences(), x[[4, 0]])
    assert some.rows.tolist() == [4, 0]


def test_whole_numbers_are_subtracted_as_floats():
    pairs = Pairs(np.array([[1], [0]], np.uint8), np.array([[2], [0]], np.uint8))
    assert pairs.differences().tolist() == [[-1.0], [0.0]]


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.uint32, np.int64, np.float16])
def test_labels_turn_the_sign_of_differences_of_every_type(dtype):
    x, labels = np.array([[1, 0], [1, 1], [0, 1]]).astype(dtype), np.array([-1, 1, -1], np.int8)
    pairs = Pairs.of_differences(x, labels)
    assert pairs.preferred_differences().tolist() == [[-1.0, 0.0], [1.0, 1.0], [0.0, -1.0]]
    np.testing.assert_array_equal(pairs.differences(), x.astype(float))


def test_the_least_whole_number_has_an_opposite():
    pairs = Pairs.of_differences(np.array([[-128], [127]], np.int8), np.array([-1, -1]))
    assert pairs.preferred_differences().tolist() == [[128.0], [-127.0]]


@pytest.mark.parametrize(
    "dtypes", [(bool, bool), (np.uint8, np.int8), (np.int8, np.int8), (bool, np.float64)]
)
def test_differences_of_sides_of_few_bits_are_whole(dtypes):
    chosen, rejected = (
        np.array([[0], [1], [100]]).astype(dtypes[0]),
        np.array([[1], [0], [-100]]).astype(dtypes[1]),
    )
    want = chosen.astype(float) - rejected.astype(float)
    pairs = Pairs(chosen, rejected, swapped=np.array([True, False, True]))
    np.testing.assert_array_equal(pairs.preferred_differences(), want)
    np.testing.assert_array_equal(pairs.differences(), want * np.array([[-1.0], [1.0], [-1.0]]))


def test_ties_are_left_out_by_hand():
    strength = np.ones(N)
    strength[3] = 0
    pairs = made(strength=strength, weights=np.where(np.arange(N) == 5, 0.0, 2.0))
    with pytest.raises(ValueError, match=r"2 ties or pairs of weight 0.*decided\(\)"):
        as_labelled(pairs)
    assert pairs.decided().n_pairs == N - 2
    assert 3 not in pairs.decided().rows
    assert made().decided().n_pairs == N


@pytest.mark.parametrize("labels", [[1, 0], [1, 2], [1], ["1", "-1"]])
def test_other_labels_are_refused(labels):
    with pytest.raises(ValueError, match="labels"):
        Pairs.of_differences(np.ones((2, 1)), np.array(labels))


def test_data_frames_name_the_features_and_are_put_in_one_order():
    pairs, names = made(), ["price", "time", "size"]
    first = pd.DataFrame(pairs.chosen, columns=names)
    second = pd.DataFrame(pairs.rejected, columns=names)[["size", "price", "time"]]
    # Called otherwise than the rows of the frames, raters count by their place.
    raters = pd.Series(np.arange(N) % 7, index=np.arange(N)[::-1] + 1)
    framed = Pairs(first, second, raters=raters)
    assert framed.names == tuple(names)
    np.testing.assert_array_equal(framed.differences(), pairs.differences())
    np.testing.assert_array_equal(framed.raters, np.arange(N) % 7)
    assert framed.take(np.arange(5)).n_pairs == 5
    assert Pairs(first, second, names=("a", "b", "c")).names == ("a", "b", "c")
    labelled = Pairs.of_differences(first - second, np.ones(N, int))
    assert labelled.names == tuple((first - second).columns)


@pytest.mark.parametrize("rename", [pd.DataFrame.add_prefix, pd.DataFrame.add_suffix])
def test_columns_of_frames_may_bear_the_name_of_their_side(rename):
    pairs, names = made(), ["price", "time", "size_of"]
    mark = "{}_" if rename is pd.DataFrame.add_prefix else "_{}"
    first = rename(pd.DataFrame(pairs.chosen, columns=names), mark.format("chosen"))
    second = rename(pd.DataFrame(pairs.rejected, columns=names), mark.format("rejected"))
    framed = Pairs(first, second[second.columns[::-1]])
    assert framed.names == tuple(names)
    np.testing.assert_array_equal(framed.differences(), pairs.differences())


def test_frames_that_share_no_name_are_taken_by_place():
    pairs = made()
    unnamed = Pairs(pd.DataFrame(pairs.chosen), pd.DataFrame(pairs.rejected))
    others = Pairs(
        pd.DataFrame(pairs.chosen, columns=list("abc")), pd.DataFrame(pairs.rejected, columns=list("xyz"))
    )
    assert unnamed.names == others.names == ("f0", "f1", "f2")


def test_frames_of_other_features_are_refused():
    pairs = made()
    first = pd.DataFrame(pairs.chosen, columns=["price", "time", "size"])
    with pytest.raises(ValueError, match="'price' only in chosen; 'cost' only in rejected"):
        Pairs(first, first.rename(columns={"price": "cost"}))
    with pytest.raises(ValueError, match="none only in chosen; 'cost' only in rejected"):
        Pairs(first, first.assign(cost=1.0))
    with pytest.raises(ValueError, match="rejected has the column 'time' twice"):
        Pairs(first, first.rename(columns={"price": "time"}))


@pytest.mark.parametrize("data", ["pairs.csv", (np.ones((3, 1)), np.zeros((3, 1))), np.ones((3, 1)), None])
def test_what_holds_no_preferences_is_named(data):
    calls = (
        fit_reward,
        estimate_epsilon,
        flag,
        suspicion_scores,
        lambda d: robust_policy(jax.random.key(0), d),
    )
    for call in calls:
        with pytest.raises(TypeError, match=rf"of the type {type(data).__name__}: give Pairs"):
            call(data)


def test_frames_whose_rows_are_the_same_in_another_order_are_refused():
    chosen = pd.DataFrame({"price": [1.0, 2.0, 3.0]}, index=["a", "b", "c"])
    rejected = pd.DataFrame({"price": [4.0, 6.0, 5.0]}, index=["a", "c", "b"])
    with pytest.raises(ValueError, match="the same index in another order"):
        Pairs(chosen, rejected)
    by_place = Pairs(chosen, rejected.reset_index(drop=True))
    assert by_place.preferred_differences().tolist() == [[-3.0], [-4.0], [-2.0]]


ROWS = ["a", "b", "c"]
ARGUMENTS = {
    "raters": ["Ann", "Ben", "Cid"], "strength": [1.0, 0.0, 1.0], "swapped": [True, False, False],
    "weights": [1.0, 2.0, 0.0], "ids": [7, 8, 9], "groups": [0, 0, 1],
}  # fmt: skip


@pytest.mark.parametrize("name", ARGUMENTS)
def test_columns_whose_rows_are_the_frames_in_another_order_are_refused(name):
    frame = pd.DataFrame({"price": [1.0, 2.0, 3.0]}, index=ROWS)
    column = pd.Series(ARGUMENTS[name], index=ROWS)
    turned, said = column.iloc[[2, 0, 1]], rf"and {name} have the same index in another order: put their rows"
    with pytest.raises(ValueError, match=f"chosen {said}"):
        Pairs(frame, 0 * frame, **{name: turned})
    with pytest.raises(ValueError, match=f"chosen {said}"):
        Pairs(frame, np.zeros((3, 1)), **{name: turned})
    if name != "swapped":
        with pytest.raises(ValueError, match=f"differences {said}"):
            Pairs.of_differences(frame, [1, -1, 1], **{name: turned})
    for taken in (column, turned.reset_index(drop=True), turned.iloc[:2]):
        pairs = Pairs(frame, 0 * frame, **{name: taken})
        assert np.asarray(getattr(pairs, name)).tolist() == taken.tolist()


def test_labels_whose_rows_are_the_differences_in_another_order_are_refused():
    frame, labels = pd.DataFrame({"price": [1.0, 2.0, 3.0]}, index=ROWS), pd.Series([1, -1, -1], index=ROWS)
    with pytest.raises(ValueError, match="differences and labels have the same index in another order"):
        Pairs.of_differences(frame, labels.iloc[[2, 0, 1]])
    for index in (ROWS, [0, 1, 2], [2, "a", None]):  # of other entries: by place
        pairs = Pairs.of_differences(frame, labels.set_axis(index))
        assert pairs.preferred_differences().tolist() == [[1.0], [-2.0], [-3.0]]
    mixed = frame.set_axis([1, "a", "b"])
    with pytest.raises(ValueError, match="the same index in another order"):
        Pairs.of_differences(mixed, labels.set_axis(["a", 1, "b"]))


def of_texts(n=4):
    rows = [{"prompt": f"p{i}", "chosen": f"yes {i}", "rejected": f"no {i} {i}"} for i in range(n)]
    return load_pairs(rows, featuriser="format")


def test_pairs_are_taken_by_a_mask_with_their_texts():
    taken = of_texts().take([False, True, False, True])
    assert taken.texts.chosen == ["yes 1", "yes 3"]
    assert taken.rows.tolist() == [1, 3]


@pytest.mark.parametrize("rows", [[4], [-5], [0.0], [True, False], 1, [[0, 1]]])
def test_rows_that_are_none_of_the_pairs_are_refused(rows):
    with pytest.raises(
        ValueError, match="rows must be numbers of pairs, from 0 to 3, or 4 times true or false"
    ):
        of_texts().take(rows)


def test_names_that_permute_the_columns_of_a_frame_are_refused():
    frame = pd.DataFrame({"price": [1.0, 2.0], "time": [3.0, 5.0]})
    with pytest.raises(ValueError, match="names are those of the columns, price, time, in another order"):
        Pairs(frame, 0 * frame, names=("time", "price"))
    for names in (("price", "time"), ("cost", "time")):
        assert Pairs(frame, 0 * frame, names=names).names == names


def test_names_that_have_no_order_are_refused():
    for names in ({"price", "time"}, frozenset({"price", "time"})):
        with pytest.raises(ValueError, match="names is a set, which has no order: give a list"):
            Pairs(np.ones((2, 2)), np.zeros((2, 2)), names=names)


@pytest.mark.parametrize("names", [("a", "b"), ("a", "b", "c", "d"), ()])
def test_as_many_names_as_features_are_wanted(names):
    with pytest.raises(
        ValueError, match=rf"names has length {len(names)}: give one for each of the 3 features"
    ):
        Pairs(np.ones((2, 3)), np.zeros((2, 3)), names=names)
    with pytest.raises(ValueError, match=rf"names has length {len(names)}"):
        Pairs.of_differences(np.ones((2, 3)), np.ones(2), names=names)


def test_a_text_is_no_list_of_names():
    with pytest.raises(ValueError, match=r"names is 'abc': give a list with a name for each column"):
        Pairs(np.ones((2, 3)), np.zeros((2, 3)), names="abc")


def test_pairs_are_equal_where_all_fields_are():
    x = np.ones((2, 2))
    pairs = Pairs(x, 0 * x, raters=["Ann", None])
    assert pairs == Pairs(x.copy(), 0 * x, raters=["Ann", None])
    for other in (
        Pairs(x, 0 * x),
        Pairs(x, 0 * x, raters=[1, 2]),
        Pairs(2 * x, 0 * x, raters=["Ann", None]),
        1,
    ):
        assert pairs != other


def test_names_may_be_generated():
    pairs = Pairs(np.eye(2), np.zeros((2, 2)), names=(name for name in ("price", "time")))
    assert pairs.names == ("price", "time")


def test_complex_labels_are_refused_and_not_cut():
    with pytest.raises(ValueError, match=r"labels has dtype complex128: .* give labels.real"):
        Pairs.of_differences(np.eye(2), np.array([1, -1], complex))
