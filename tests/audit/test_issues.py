"""Each issue type finds its fault, says so in a sentence, and leaves honest pairs alone."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from text_pairs import faulty_file, made_up_fit, read

from robust_rlhf_jax.audit.findings import find
from robust_rlhf_jax.audit.issues import ISSUES, Batch, Issue, find_issues, measure_raters
from robust_rlhf_jax.io import Pairs

WORDS = {
    "label": "label looks flipped",
    "off_manifold": "occur in no other pair",
    "identical": "Both sides are the same",
    "both_orders": "prefers the other one",
    "near_duplicates": "nearly the same pair",
    "rater": "agrees with the rest in",
    "tie": "calls it a tie",
}


def batch_of(folder, fault, share=0.05, n=300):
    path, faulty, twin = faulty_file(folder, fault, share, n)
    pairs = read(path)
    wrong = np.flatnonzero(faulty) if fault in ("label", "rater") else ()
    return Batch(pairs, made_up_fit(pairs, wrong)), faulty, twin


@pytest.mark.parametrize("fault", WORDS)
def test_a_fault_is_found_and_explained(tmp_path, fault):
    batch, faulty, twin = batch_of(tmp_path, fault, 0.1 if fault == "rater" else 0.05)
    issue = find_issues(batch)[fault]
    if fault in ("both_orders", "near_duplicates"):  # a pair and its copy contradict each other
        faulty = faulty.copy()
        faulty[twin[twin >= 0]] = True
    np.testing.assert_array_equal(issue.flag, faulty)
    assert all(WORDS[fault] in issue.explain(row) for row in np.flatnonzero(faulty))
    assert issue.score[faulty].max() < issue.score[~faulty].min() + 1e-9
    assert f"{int(faulty.sum()):,}" in issue.summary


def test_honest_pairs_have_no_issue(tmp_path):
    batch, *_ = batch_of(tmp_path, None, 0.0)
    for name, issue in find_issues(batch).items():
        assert not issue.flag.any(), name
        assert ((issue.score >= 0) & (issue.score <= 1)).all()


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


def numeric(x, raters=None, n_features=3):
    return Pairs(x, np.zeros_like(x), raters=raters)


def test_one_row_far_off_is_found_and_heavy_tails_are_not():
    x = np.random.default_rng(0).standard_t(4, size=(3000, 5))
    clean = numeric(x)
    assert not ISSUES["off_manifold"](Batch(clean, made_up_fit(clean))).flag.any()
    x = x.copy()
    x[7] *= 1000
    corrupted = numeric(x)
    found = ISSUES["off_manifold"](Batch(corrupted, made_up_fit(corrupted)))
    np.testing.assert_array_equal(np.flatnonzero(found.flag), [7])
    assert "times as far out" in found.explain(7)


def test_rare_honest_features_are_not_off_manifold():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 6))
    x[:, 5] = rng.choice([-1, 0, 1], 3000, p=[0.02, 0.96, 0.02])
    pairs = numeric(x)
    assert not ISSUES["off_manifold"](Batch(pairs, made_up_fit(pairs))).flag.any()


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


def test_a_shortcut_is_named():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3))
    x[:, 0] = np.abs(x[:, 0])  # the larger f0 always wins
    pairs = numeric(x)
    issue = ISSUES["shortcut"](Batch(pairs, made_up_fit(pairs)))
    assert "the larger f0 alone explains 100%" in issue.summary
    assert not issue.dropped.any()


def test_no_reason_claims_certainty():
    pairs = numeric(np.random.default_rng(0).normal(size=(50, 3)))
    fit = made_up_fit(pairs, (3, 4))
    margins = fit.audit.robust.margins.copy()
    margins[[3, 4]] = -400.0, -0.01
    robust = dataclasses.replace(fit.audit.robust, margins=margins)
    fit = dataclasses.replace(fit, audit=dataclasses.replace(fit.audit, robust=robust))
    issue = ISSUES["label"](Batch(pairs, fit))
    assert "more than 99.9%" in issue.explain(3)
    assert "more than" not in issue.explain(4)


def test_reliability_of_raters():
    rng = np.random.default_rng(0)
    raters = np.repeat(["good", "coin", "liar", "few"], [4000, 200, 100, 5])
    pairs = numeric(rng.normal(size=(4305, 3)), raters=raters)
    wrong = [*range(0, 200), *range(4000, 4100), *range(4200, 4300)]
    batch = Batch(pairs, made_up_fit(pairs, wrong))
    found = {r.name: r for r in measure_raters(batch)}
    assert [found[name].flagged for name in ("good", "coin", "liar", "few")] == [False, True, True, False]
    assert found["liar"].reliability < -0.9
    assert found["coin"].reliability == pytest.approx(0, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("pairs_each", [12, 40])
def test_many_half_reliable_raters_are_flagged_in_one_file_of_a_hundred(pairs_each):
    rng, n, flagged = np.random.default_rng(pairs_each), 300, 0
    raters = np.repeat(np.arange(n), pairs_each)
    for _ in range(60):
        sure = np.tanh(np.abs(rng.normal(size=raters.shape)))
        right = rng.random(raters.shape) < 0.5 + 0.25 * sure
        chance = 0.5 + 0.5 * np.where(right, sure, -sure)
        fit = SimpleNamespace(agreement=lambda chance=chance: chance, fitted=np.ones(len(raters), bool))
        flagged += any(r.flagged for r in measure_raters(Batch(SimpleNamespace(raters=raters), fit)))
    # .6 are expected: five standard deviations above it.
    assert flagged <= 4


def test_a_rater_who_opposes_ten_of_twelve_clear_pairs_is_flagged_alone_and_not_among_many():
    chance = np.full((400, 12), 0.8)
    chance[0, :10] = 0.2
    fit = SimpleNamespace(agreement=lambda: chance.reshape(-1), fitted=np.ones(chance.size, bool))
    few = Batch(SimpleNamespace(raters=np.repeat(np.minimum(np.arange(400), 1), 12)), fit)
    many = Batch(SimpleNamespace(raters=np.repeat(np.arange(400), 12)), fit)
    assert [r.flagged for r in measure_raters(few)] == [True, False]
    assert not any(r.flagged for r in measure_raters(many))


def test_an_issue_type_of_ones_own(tmp_path):
    batch, *_ = batch_of(tmp_path, None, 0.0)

    def short(batch):
        words = np.array([len(text.split()) for text in batch.pairs.texts.chosen])
        return Issue(
            "short", np.clip(words / 40, 0, 1), words < 20, lambda row: "It is short.", "Some are short."
        )

    found = find(batch.pairs, batch.held_out, extra=[short])
    assert found.issues["short"].flag.any()
    assert not found.verdicts.keep[found.issues["short"].flag].any()
    with pytest.raises(ValueError, match="is there twice"):
        find_issues(batch, [short, short])
    with pytest.raises(ValueError, match=r"a score in \[0, 1\]"):
        find_issues(batch, [lambda b: Issue("bad", np.full(300, 2.0), np.zeros(300, bool), str, "")])


def test_raters_may_be_numbers():
    """The bundled rail choices number their people."""
    pairs = numeric(np.random.default_rng(0).normal(size=(60, 3)), raters=np.repeat([1, 2, 3], 20))
    found = find_issues(Batch(pairs, made_up_fit(pairs, ())))
    assert found["rater"].flag.shape == (60,)
    assert "of 3 raters" in found["rater"].summary
