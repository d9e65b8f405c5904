"""Pairs whose sides are the same, also for a trainer that cuts them."""

import dataclasses

from issue_batches import batch_of, found_in

from robust_rlhf_jax.audit.issues import ISSUES, Batch, find_issues


def test_the_fault_is_found_and_explained(tmp_path):
    found_in(tmp_path, "identical", "Both sides are the same")


def test_sides_that_part_after_what_a_trainer_sees_are_identical(tmp_path):
    batch, *_ = batch_of(tmp_path, None, 0.0)
    whole = find_issues(batch)["identical"]
    assert not whole.flag.any()
    texts = batch.pairs.texts
    long = dataclasses.replace(
        texts,
        chosen=[f"{'word ' * 100}{t}" for t in texts.chosen],
        rejected=[f"{'word ' * 100}{t}" for t in texts.rejected],
    )
    cut = Batch(dataclasses.replace(batch.pairs, texts=long), batch.held_out, truncate=100)
    issue = ISSUES["identical"](cut)
    assert issue.flag.all()
    assert "Cut to 100 words" in issue.explain(0)
