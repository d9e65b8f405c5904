"""Nearly the same two options with opposite results."""

import dataclasses

import numpy as np
from issue_batches import found_in, numeric
from text_pairs import made_up_fit

from robust_rlhf_jax.audit.issues import ISSUES, Batch, find_issues


def test_the_fault_is_found_and_explained(tmp_path):
    found_in(tmp_path, "near_duplicates", "nearly the same pair")


def test_tables_of_few_features_have_no_duplicates():
    pairs = numeric(np.random.default_rng(0).choice([-1.0, 1.0], (100, 3)))
    found = find_issues(Batch(pairs, made_up_fit(pairs)))
    assert not {"both_orders", "near_duplicates", "rater"} & set(found)


def test_near_duplicates_of_embeddings():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 200, 32)).astype(np.float32)
    a[150], b[150] = b[20] + 1e-4, a[20] - 1e-4
    pairs = dataclasses.replace(numeric(a), rejected=b, kind="embeddings")
    issue = ISSUES["near_duplicates"](Batch(pairs, made_up_fit(pairs)))
    np.testing.assert_array_equal(np.flatnonzero(issue.flag), [20, 150])
    assert issue.dropped.sum() == 1
