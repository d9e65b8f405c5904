"""What texts say, read once."""

import numpy as np
import pytest
from issue_batches import batch_of
from text_pairs import made_up_fit

from robust_rlhf_jax.audit import find, gain
from robust_rlhf_jax.audit.issues import ISSUES, Batch
from robust_rlhf_jax.audit.issues.wordings import Wordings
from robust_rlhf_jax.io import Texts

SIDES = ["a b c", "A  b c ", "b c d", "", "d d e", "e f"]
TEXTS = Texts(prompt=["", "x", "x y"], chosen=SIDES[:3], rejected=SIDES[3:])


def test_overlap_is_that_of_sets_of_words():
    said, words = Wordings.read(TEXTS), [set(side.lower().split()) for side in SIDES]
    numbers = said.of[:, 1:].T.ravel()
    i, j = (place.ravel() for place in np.indices((6, 6)))
    jaccard = [len(words[a] & words[b]) / max(len(words[a] | words[b]), 1) for a, b in zip(i, j, strict=True)]
    empty = np.array([not (words[a] | words[b]) for a, b in zip(i, j, strict=True)])
    np.testing.assert_array_equal(said.overlap(numbers[i], numbers[j]), np.where(empty, 1.0, jaccard))


def test_pairs_with_a_word_count_once_whatever_part_is_taken():
    for rows in ([0, 1, 2], [2], [1, 1, 0]):
        said = Wordings.read(TEXTS).take(np.array(rows))
        both = [set(f"{TEXTS.chosen[row]} {TEXTS.rejected[row]}".lower().split()) for row in rows]
        counted = sorted(sum(word in pair for pair in both) for word in "abcdefxy")
        assert sorted(said.pairs_with().tolist()) == counted


@pytest.mark.parametrize("fault", ["both_orders", "near_duplicates", "off_manifold"])
def test_a_part_of_the_file_is_judged_as_a_file_of_its_own(tmp_path, fault):
    batch, *_ = batch_of(tmp_path, fault, n=100)
    rows = np.arange(0, batch.pairs.n_pairs, 2)
    part = batch.pairs.take(rows)
    fit = made_up_fit(part)
    whole = ISSUES[fault](Batch(part, fit))
    taken = ISSUES[fault](Batch(part, fit, said=batch.wordings.take(rows)))
    np.testing.assert_array_equal(taken.flag, whole.flag)
    np.testing.assert_array_equal(taken.score, whole.score)


@pytest.mark.slow
def test_an_audit_with_its_gain_reads_texts_once(tmp_path, monkeypatch):
    batch, *_ = batch_of(tmp_path, "near_duplicates", n=100)
    read, times = Wordings.read, []
    monkeypatch.setattr(Wordings, "read", lambda texts: times.append(1) or read(texts))
    monkeypatch.setattr(gain, "_robust", lambda rng, work, *_: (np.ones(work.z.shape[1]), 0.0))
    monkeypatch.setattr(gain, "_agreement", lambda work, fold, keep: np.ones((2, sum(work.fold_of == fold))))
    found = find(batch.pairs, batch.held_out)
    assert gain.cross_fitted_gain(found).dropped > 0
    assert len(times) == 1
