"""Batches of pairs with a known fault and made-up fits, and what an issue type must find in them."""

import numpy as np
from text_pairs import faulty_file, made_up_fit, read

from robust_rlhf_jax.audit.issues import Batch, find_issues
from robust_rlhf_jax.io import Pairs


def batch_of(folder, fault, share=0.05, n=300):
    path, faulty, twin = faulty_file(folder, fault, share, n)
    pairs = read(path)
    wrong = np.flatnonzero(faulty) if fault in ("label", "rater") else ()
    return Batch(pairs, made_up_fit(pairs, wrong)), faulty, twin


def numeric(x, raters=None):
    return Pairs(x, np.zeros_like(x), raters=raters)


def found_in(folder, fault, says, share=0.05):
    """Hold the issue type `fault` to the faulty pairs of generated texts: all are flagged, explained, counted."""
    batch, faulty, twin = batch_of(folder, fault, share)
    issue = find_issues(batch)[fault]
    if fault in ("both_orders", "near_duplicates"):  # a pair and its copy contradict each other
        faulty[twin[twin >= 0]] = True
    np.testing.assert_array_equal(issue.flag, faulty)
    assert all(says in issue.explain(row) for row in np.flatnonzero(faulty))
    assert issue.score[faulty].max() < issue.score[~faulty].min() + 1e-9
    assert f"{int(faulty.sum()):,}" in issue.summary
