"""Raters that nobody names: each pair its own."""

import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.io import Columns, describe, load_pairs
from robust_rlhf_jax.io.unnamed_raters import each_named, has_name, named_in
from robust_rlhf_jax.preferences import group_numbers
from robust_rlhf_jax.raters import krippendorff_alpha, rate_raters

CASES = [
    (["Ann", None, "Ann"], ["Ann", "nobody, row 1", "Ann"]),
    ([1.0, np.nan, 2.0], ["1", "nobody, row 1", "2"]),
    (["Ann", "", "NULL"], ["Ann", "nobody, row 1", "nobody, row 2"]),
    ([7, 8, 7], [7, 8, 7]),
    ([1.5, 2.0, 1.5], [1.5, 2.0, 1.5]),
    ([0.0, 1.0, 0.0], [0, 1, 0]),
    ([0.0, np.inf, 1e300], [0.0, np.inf, 1e300]),
    (np.array([1.0, "a", 2.5], object), ["1", "a", "2.5"]),
    (np.array([1, "1", 2], object), ["1", "1", "2"]),
    (np.ma.masked_array(["Ann", "Ann", "Ben"], [0, 1, 0]), ["Ann", "nobody, row 1", "Ben"]),
    (np.ma.masked_array([1, 2, 1], [0, 0, 1]), ["1", "2", "nobody, row 2"]),
    (np.ma.masked_array([2**60, 2**60 + 1, 1], [0, 0, 1]), [str(2**60), str(2**60 + 1), "nobody, row 2"]),
    (jnp.array([1.0, np.nan, np.nan]), ["1", "nobody, row 1", "nobody, row 2"]),
]


@pytest.mark.parametrize(("given", "names"), CASES, ids=str)
def test_each_pair_has_a_name(given, names):
    found = each_named(given)
    assert found.tolist() == names
    assert has_name(found).tolist() == [not str(name).startswith("nobody") for name in names]
    assert len(np.unique(found)) == len(set(names))
    assert len(set(group_numbers(given, 3).tolist())) == len(set(names))


def pairs(raters, n=300):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    return Pairs.of_differences(x, np.where(rng.logistic(size=n) < x @ [2.0, -1.0], 1, -1), raters=raters)


@pytest.mark.slow
def test_pairs_without_a_rater_are_fitted_and_rated():
    some = np.where(np.arange(300) % 3 == 0, None, [f"r{i % 5}" for i in range(300)])
    given = pairs(some)
    np.testing.assert_allclose(fit_reward(given).theta, fit_reward(pairs(None)).theta, rtol=1e-5)
    rows = {row.name: row.pairs for row in rate_raters(given).rows}
    assert all(rows[f"r{i}"] == 40 for i in range(5))
    assert max(count for name, count in rows.items() if name.startswith("nobody")) == 1


def test_a_file_says_how_many_pairs_name_no_rater(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("prompt,chosen,rejected,annotator\nHi,Yes.,No,Ann\nBye,So long,What?,\nA,B?,C,NULL\n")
    found = describe(file)
    assert found.n_raters == 1
    assert "2 pairs name no rater." in found.notes
    assert load_pairs(file, featuriser="format").raters.tolist() == ["Ann", "nobody, row 1", "nobody, row 2"]


def test_missing_ratings_are_none():
    with_gaps = krippendorff_alpha([1, 1, 1, 2, 2, 2, 3, 3], [1, 1, np.nan, 2, 2, np.nan, 1, 2])
    assert with_gaps == krippendorff_alpha([1, 1, 2, 2, 3, 3], [1, 1, 2, 2, 1, 2])


@pytest.mark.slow
def test_true_and_false_say_whether_the_first_was_chosen():
    given = pairs(np.repeat(np.arange(10), 30))
    first = np.where(np.arange(300) % 2 == 0, 1, -1)
    signs, truths = (rate_raters(given, chose_first=way) for way in (first, first > 0))
    np.testing.assert_array_equal(signs.weights, truths.weights)
    with pytest.raises(ValueError, match="chose_first holds 0 and 1 alone"):
        rate_raters(given, chose_first=(first > 0).astype(int))


def test_what_r_writes_for_a_missing_name_is_none_and_numbers_are_written_once():
    assert named_in(["NA", "na", "1", 1.0]).tolist() == ["nobody, row 0", "na", "1", "1"]


def test_spaces_around_a_name_in_a_file_are_not_of_it():
    assert named_in(["Ann", "Ann ", "\u00a0Ann", "Ann B"]).tolist() == ["Ann", "Ann", "Ann", "Ann B"]


def test_what_a_mask_hides_is_no_rating():
    said = np.ma.masked_array([0, 1, 0, 0, 1], [0, 1, 0, 0, 0])
    assert krippendorff_alpha([1, 1, 1, 2, 2], said) == krippendorff_alpha([1, 1, 2, 2], [0, 0, 0, 1])


@pytest.mark.parametrize(
    ("cells", "names"),
    [
        (["12", "12.0", "7.0"], ["12", "12", "7"]),
        (["12.0", None, "NA", 12.0, 12], ["12", "nobody, row 1", "nobody, row 2", "12", "12"]),
        (["12.0", "v7"], ["12.0", "v7"]),
        (["1.5", "1.0"], ["1.5", "1.0"]),
    ],
)
def test_a_whole_number_has_one_name_in_a_table(cells, names):
    assert named_in(cells).tolist() == names


@pytest.mark.parametrize("missing", [None, "", "NULL", np.nan])
@pytest.mark.parametrize("columns", [None, Columns(pair_id="id")])
def test_pairs_without_an_id_belong_to_no_others(missing, columns):
    ids = [missing, 7, 7, missing, missing]
    found = load_pairs(with_ids(ids), columns=columns, featuriser="format", skip_bad=1)
    assert found.ids.tolist() == (["", "7", "", ""] if columns else ["", "7", "7", "", ""])
    assert len(np.unique(load_pairs(with_ids(ids), featuriser="format").groups)) == 4
    assert load_pairs(with_ids([missing] * 5), columns=columns, featuriser="format").groups is None


def with_ids(ids):
    return [{"id": one, "prompt": "Hi", "chosen": f"x {i}", "rejected": "y"} for i, one in enumerate(ids)]
