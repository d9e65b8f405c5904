"""Arrays: what is not copied, labels, and what is refused."""

import re

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from robust_rlhf_jax import Pairs
from robust_rlhf_jax.preferences import as_labelled
from robust_rlhf_jax.sources import ArraySource

X = np.arange(12.0).reshape(4, 3)


def test_differences_are_not_copied_and_cannot_be_written_to():
    x = X.astype(np.float16)
    block = next(ArraySource(x).blocks(2))
    assert np.shares_memory(block, x)
    with pytest.raises(ValueError, match="read-only"):
        block[0] = 0
    x[0] = 1


@pytest.mark.parametrize(("dtype", "gives"), [("int8", "float32"), ("int64", "float64"), (">f4", "<f4")])
def test_other_numbers_come_as_floats(dtype, gives):
    (block,) = ArraySource(X.astype(dtype)).blocks(4)
    assert block.dtype == gives
    np.testing.assert_array_equal(block, X)


def test_two_bytes_without_a_meaning_are_bfloat16():
    x = X.astype(jnp.bfloat16)
    np.testing.assert_array_equal(next(ArraySource(x.view("V2")).blocks(4)), x)


def test_both_kinds_of_half_precision_are_subtracted_in_float32():
    (block,) = ArraySource(X.astype(np.float16), X.astype(jnp.bfloat16)).blocks(4)
    assert block.dtype == np.float32
    assert not block.any()


@pytest.mark.parametrize(
    "labels", [[1, -1, 1, -1], [1.0, 0.0, 1.0, 0.0], [True, False, True, False], np.int8([1, -1, 1, -1])]
)
def test_labels_turn_signs(labels):
    (block,) = ArraySource(X, labels=labels).blocks(4)
    np.testing.assert_array_equal(block, X * [[1], [-1], [1], [-1]])


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([1, 0, -1, 1], "labels[2] is -1: give 1 where the first option is preferred"),
        ([1, 2, 1, 1], "labels[1] is 2: give 1"),
        ([1, 0.5, 1, 1], "labels[1] is 0.5: give 1"),
        ([0, np.nan, 1, 1], "labels[1] is nan: give 1"),
        (["a", "b", "a", "b"], "labels holds <U1: give 1"),
        ([1, 1], "labels has shape (2,): give one for each of the 4 pairs."),
    ],
)
def test_other_labels_are_refused(labels, said):
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        ArraySource(X, labels=labels)


@pytest.mark.parametrize(
    "dtype", ["U2", object, complex, "M8[s]", ml_dtypes.float8_e4m3fn, "i1,i1", np.longdouble]
)
def test_only_numbers_are_taken(dtype):
    with pytest.raises(ValueError, match=r"^chosen holds .*: give float16, bfloat16, float32 or float64\.$"):
        ArraySource(np.ones((2, 2), int).astype(dtype))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((X[0],), r"^chosen has shape \(3,\): give \[N, k\], with N ≥ 1 pairs of k ≥ 1 features\.$"),
        ((X[:0],), r"^chosen has shape \(0, 3\)"),
        ((X[:, :0],), r"^chosen has shape \(4, 0\)"),
        ((X, X[:3]), r"^chosen has shape \(4, 3\) and rejected \(3, 3\): both must be the same \[N, k\]\.$"),
        ((X, None, None, ["Ann"]), r"^groups has shape \(1,\): give one for each of the 4 pairs\.$"),
    ],
)
def test_arrays_that_do_not_match_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        ArraySource(*given)


def test_pairs_give_what_a_fit_sees_of_them():
    pairs = Pairs.of_differences(X + 1, np.array([1, -1, 1, -1]), raters=np.arange(4))
    source, seen = ArraySource.of_pairs(pairs), as_labelled(pairs)
    np.testing.assert_array_equal(next(source.blocks(4)), seen.x * seen.labels[:, None])
    assert source.groups is None
    assert seen.groups is None
    np.testing.assert_array_equal(source.raters, np.arange(4))


@pytest.mark.parametrize(
    "fields", [{"strength": np.array([1, 0, 1, 1])}, {"weights": np.array([1, 1, 1, 0])}]
)
def test_undecided_pairs_are_refused(fields):
    pairs = Pairs(X + 1, X, **fields)
    with pytest.raises(
        ValueError, match=r"^pairs has 1 ties or pairs of weight 0.*: give pairs.decided\(\)\.$"
    ):
        ArraySource.of_pairs(pairs)
    assert ArraySource.of_pairs(pairs.decided()).n_pairs == 3


def test_other_labels_groups_or_rows_have_another_fingerprint():
    some = {"labels": np.array([1, -1, 1, 1]), "groups": np.array(["a", "b", "a", "b"])}
    others = [
        ArraySource(X, **some),
        ArraySource(X),
        ArraySource(X + 1, **some),
        ArraySource(X.astype(np.float32), **some),
        ArraySource(X, X * 2, **some),
        ArraySource(X, labels=-some["labels"] * 0 + [1, 1, -1, 1], groups=some["groups"]),
        ArraySource(X, labels=some["labels"], groups=np.array(["a", "b", "b", "a"])),
        ArraySource(X, labels=some["labels"], groups=np.array(["a", "b", "b", "a"], object)),
    ]
    assert len({source.fingerprint() for source in others}) == len(others)


def test_frames_are_subtracted_by_the_names_of_their_columns():
    pandas = pytest.importorskip("pandas")
    chosen = pandas.DataFrame(X, columns=["a", "b", "c"])
    rejected = pandas.DataFrame(2 * X, columns=["a", "b", "c"])[["c", "a", "b"]]
    (block,) = ArraySource(chosen, rejected).blocks(4)
    np.testing.assert_array_equal(block, -X)
    with pytest.raises(ValueError, match="The frames have other columns"):
        ArraySource(chosen, rejected.rename(columns={"c": "d"}))


def test_what_a_mask_hides_is_missing():
    source = ArraySource(np.ma.masked_array(X, np.arange(12).reshape(4, 3) == 4))
    assert np.argwhere(np.isnan(next(source.blocks(4)))).tolist() == [[1, 1]]
    with pytest.raises(ValueError, match=r"labels\[2\] is nan"):
        ArraySource(X, labels=np.ma.masked_array([1, -1, -1, 1], np.arange(4) == 2))


def test_names_are_those_of_columns_or_of_pairs():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    assert ArraySource(frame).names == ("a", "b", "c")
    assert ArraySource(frame.add_prefix("chosen_"), frame.add_prefix("rejected_")).names == ("a", "b", "c")
    assert ArraySource.of_pairs(Pairs(frame + 1, frame)).names == ("a", "b", "c")
    unnamed = ArraySource(X), ArraySource(X, X + 1), ArraySource.of_pairs(Pairs(X + 1, X))
    assert [source.names for source in unnamed] == [(), (), ()]


@pytest.mark.parametrize("name", ["rejected", "labels", "groups", "raters"])
def test_rows_in_another_order_are_refused(name):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X)
    column = pandas.Series(frame.index % 2) if name != "rejected" else frame
    ArraySource(frame, **{name: column})
    said = f"chosen and {name} have the same index in another order"
    with pytest.raises(ValueError, match=said):
        ArraySource(frame, **{name: column[::-1]})
