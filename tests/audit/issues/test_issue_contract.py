"""Every issue type keeps the contract of `Issue` on any kind of pairs, and leaves honest pairs alone."""

import dataclasses
import inspect
import pickle

import numpy as np
import pytest
from issue_batches import batch_of, numeric
from text_pairs import made_up_fit

from robust_rlhf_jax.audit.findings import find
from robust_rlhf_jax.audit.issues import ISSUES, Batch, Issue, find_issues
from robust_rlhf_jax.io import Pairs


def texts_of_raters(folder):
    return batch_of(folder, None, 0.0)[0].pairs


def texts_alone(folder):
    return dataclasses.replace(texts_of_raters(folder), raters=None, ids=None, groups=None)


def numbers(folder):
    return numeric(np.random.default_rng(0).normal(size=(300, 3)))


def numbers_of_raters(folder):
    return dataclasses.replace(numbers(folder), raters=np.repeat(["a", "b", "c"], 100))


def embeddings(folder):
    chosen, rejected = np.random.default_rng(0).normal(size=(2, 300, 32)).astype(np.float32)
    return Pairs(chosen, rejected, kind="embeddings")


def two_pairs(folder):
    return texts_of_raters(folder).take(range(2))


KINDS = (texts_of_raters, texts_alone, numbers, numbers_of_raters, embeddings, two_pairs)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def honest(request, tmp_path_factory):
    pairs = request.param(tmp_path_factory.mktemp("pairs"))
    return Batch(pairs, made_up_fit(pairs))


@pytest.mark.parametrize("name", ISSUES)
def test_honest_pairs_of_any_kind_have_scores_and_hardly_a_flag(honest, name):
    """Or None: what a type needs, such as texts or raters, may be missing."""
    issue = ISSUES[name](honest)
    if issue is None:
        return
    n = honest.pairs.n_pairs
    assert issue.checked(n).name == name
    assert issue.flag.dtype == issue.dropped.dtype == bool
    assert issue.dropped.shape == (n,)
    assert issue.flag.sum() <= 0.01 * n
    assert issue.summary.endswith(".")


@pytest.fixture(scope="module")
def rated(tmp_path_factory):
    return texts_of_raters(tmp_path_factory.mktemp("pairs"))


@pytest.mark.parametrize("name", ISSUES)
def test_flagged_pairs_are_explained_and_nothing_is_changed(rated, name):
    """In a file of all that is wrong at once: equal sides, a pair and its reverse, flipped labels, ties."""
    pairs = rated
    texts = [list(side) for side in (pairs.texts.prompt, pairs.texts.chosen, pairs.texts.rejected)]
    texts[1][3] = texts[2][3]
    for side, other in zip(texts, (texts[0], texts[2], texts[1]), strict=True):
        side[5] = other[6]
    texts = dataclasses.replace(pairs.texts, prompt=texts[0], chosen=texts[1], rejected=texts[2])
    strength = np.where(np.arange(pairs.n_pairs) == 8, 0.0, pairs.strength)
    pairs = dataclasses.replace(pairs, texts=texts, strength=strength)
    batch = Batch(pairs, made_up_fit(pairs, range(20, 40)))
    before = pairs.chosen.copy()
    issue = ISSUES[name](batch)
    assert issue is not None
    for row in np.flatnonzero(issue.flag):
        said = issue.explain(int(row))
        assert said[0].isupper() or said[0].isdigit()
        assert said.endswith(".")
        assert "\n" not in said
    np.testing.assert_array_equal(pairs.chosen, before)
    again = ISSUES[name](batch)
    np.testing.assert_array_equal(again.score, issue.score)


@pytest.mark.parametrize("name", ISSUES)
def test_a_type_says_what_its_score_is(name):
    assert ISSUES[name].__name__ == name
    assert inspect.getdoc(ISSUES[name])


def test_reports_keep_their_order():
    known = [
        "label",
        "off_manifold",
        "identical",
        "both_orders",
        "near_duplicates",
        "shortcut",
        "rater",
        "tie",
    ]
    assert [name for name in ISSUES if name in known] == known


@pytest.mark.slow
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


def test_findings_can_be_pickled(tmp_path):
    batch, *_ = batch_of(tmp_path, "near_duplicates")
    found = find(batch.pairs, batch.held_out)
    copy, worst = pickle.loads(pickle.dumps(found)), found.worst()
    assert len(worst)
    assert copy.pairs == found.pairs
    assert copy.worst().tolist() == worst.tolist()
    assert [copy.reason(row) for row in worst] == [found.reason(row) for row in worst]


def test_copies_of_findings_are_equal(tmp_path):
    """`==` of arrays gives an array, which is neither true nor false."""
    batch, *_ = batch_of(tmp_path, "near_duplicates")
    found = find(batch.pairs, batch.held_out)
    copy = pickle.loads(pickle.dumps(found))
    assert copy.verdicts == found.verdicts
    assert (copy.verdicts != found.verdicts) is False
    assert copy.issues == found.issues
    assert copy.batch.held_out == found.batch.held_out
    assert copy == found
    weighed = found.verdicts._replace(weight=found.verdicts.weight * 0.5)
    assert weighed != found.verdicts
    assert dataclasses.replace(found, verdicts=weighed) != found
    name, issue = next(iter(found.issues.items()))
    scored = dataclasses.replace(issue, score=issue.score * 0.5)
    assert scored != issue
    assert scored != name
