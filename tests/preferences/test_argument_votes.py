"""The bundled votes on arguments: what the file holds, its licence beside it, and that it is read as a user's own."""

import hashlib
from collections import Counter

import numpy as np
import pytest

from robust_rlhf_jax.audit.source import describe_source, read_source
from robust_rlhf_jax.io import load_pairs
from robust_rlhf_jax.io.exports import export
from robust_rlhf_jax.preferences import argument_pairs, arguments_file, load

SHA256 = "926943cba7b1c2ce153d9d86c5ee16e3bf5dd785fa6bee1a98f29b70c1c4b5dc"


@pytest.fixture(scope="module")
def votes():
    return argument_pairs("format")


def test_the_file_is_the_one_that_was_bundled():
    content = arguments_file().read_bytes()
    assert hashlib.sha256(content).hexdigest() == SHA256
    assert len(content) <= 150_000


def test_source_and_licence_lie_beside_it():
    folder = arguments_file().parent
    for name in ("arguments.LICENCE.md", "README.md"):
        said = (folder / name).read_text(encoding="utf-8")
        assert "Habernal" in said
        assert "UKPConvArg1" in said
        assert "Attribution 4.0" in said
    assert SHA256 in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_counts_ties_and_raters(votes):
    assert votes.n_pairs == votes.n_rows == 19_324
    assert Counter(votes.labels.tolist()) == {1: 7614, -1: 7435, 0: 4275}
    assert votes.ties.sum() == 4275
    assert set(votes.raters) == {str(rater) for rater in range(1, 2116)}
    assert len(set(votes.texts.prompt)) == 8
    # Two of the 252 arguments have the same text.
    assert len({*votes.texts.chosen, *votes.texts.rejected}) == 251


def test_votes_on_the_same_arguments_share_a_group(votes):
    sides = zip(votes.texts.prompt, votes.texts.chosen, votes.texts.rejected, strict=True)
    pairs = [(prompt, frozenset(texts)) for prompt, *texts in sides]
    assert len(set(zip(pairs, votes.groups.tolist(), strict=True))) == len(set(pairs)) == 3849


@pytest.mark.slow
def test_the_name_and_the_path_read_the_same(votes):
    named = read_source("arguments", featuriser="format")
    assert (str(named.path), named.format, named.source.suffix) == ("arguments", votes.format, ".jsonl.xz")
    by_path = load_pairs(arguments_file(), featuriser="format")
    for pairs in (named, by_path):
        np.testing.assert_array_equal(pairs.labels, votes.labels)
        np.testing.assert_array_equal(pairs.chosen, votes.chosen)


def test_it_is_described_by_its_name():
    found = describe_source("arguments")
    assert str(found).startswith("arguments\n  JSON, xz")
    assert (found.n_raters, found.n_ties) == (2115, 4275)


def test_load_says_that_it_holds_texts():
    with pytest.raises(
        ValueError, match=r"holds texts: make features of them by robust_rlhf_jax\.io\.load_pairs"
    ):
        load(arguments_file())


@pytest.mark.slow
def test_what_is_kept_of_it_is_written_as_a_file_of_its_kind(votes, tmp_path):
    export(votes, tmp_path / "kept.jsonl.xz", {}, keep=~votes.ties)
    kept = load_pairs(tmp_path / "kept.jsonl.xz", featuriser="format")
    assert (kept.n_pairs, kept.ties.sum()) == (19_324 - 4275, 0)
    assert kept.texts.chosen == votes.decided().texts.chosen
