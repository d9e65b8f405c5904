"""What one machine of many computes: its chunks, each as one part, and a sentence where it cannot."""

import pickle

import numpy as np
import pytest

from robust_rlhf_jax.rewards.streamed import coordinates, judging, sample, settling
from robust_rlhf_jax.rewards.streamed.layout import Layout
from robust_rlhf_jax.rewards.streamed.one_pass import Kind, Pass, parts_of
from robust_rlhf_jax.rewards.streamed.placed_blocks import placed_blocks
from robust_rlhf_jax.rewards.streamed.share import Share, check_alike, share_of, what_decides
from robust_rlhf_jax.sources import ArraySource, ShardSource

LAYOUT = Layout(5_000, 3, 64)


def described(block, weights):
    x = np.asarray(block)
    return x[:, 0] + weights, (x * weights[:, None]).sum(axis=0), x[weights > 0], x


GIVES = (Kind.PAIR, Kind.SUM, Kind.ROWS, Kind.UNUSED)


def pairs():
    return np.random.default_rng(0).normal(size=(LAYOUT.n, LAYOUT.n_features)).astype(np.float32)


def test_a_part_is_a_whole_chunk():
    weights = np.random.default_rng(1).normal(size=LAYOUT.padded).astype(np.float32)
    one, share = Pass("described", described, GIVES, given=(weights,)), Share(LAYOUT, 2, 5)
    parts = share_of(ArraySource(pairs()), one.within(share.place), share)
    assert [part.place for part in parts] == [LAYOUT.place(chunk, chunk + 1) for chunk in (2, 3, 4)]
    blocks = placed_blocks(ArraySource(pairs()), LAYOUT, share.place)
    small = list(parts_of(one.within(share.place), blocks, LAYOUT))
    for number in (0, 2):
        found, expected = (np.concatenate([part.found[number] for part in many]) for many in (parts, small))
        np.testing.assert_array_equal(found, expected)
    sums = [part.found[1] for part in small if part.found[1] is not None]
    np.testing.assert_array_equal([part.found[1] for part in parts], sums)
    assert {part.found[3] for part in parts} == {None}


def test_files_that_a_machine_does_not_have_are_one_sentence(tmp_path):
    np.save(tmp_path / "pairs.npy", pairs())
    source = ShardSource(tmp_path / "pairs.npy")
    (tmp_path / "pairs.npy").unlink()
    share = Share(LAYOUT, 0, 1)
    one = Pass("described", described, GIVES, given=(np.ones(LAYOUT.padded, np.float32),))
    with pytest.raises(
        ValueError, match=r"cannot read the source .* every machine must see it under the same"
    ):
        share_of(source, one, share)


def test_a_machine_with_other_versions_refuses():
    check_alike(what_decides())
    with pytest.raises(ValueError, match=r"has robust-rlhf-jax .* and the machine that fits has .*jax 0\.0"):
        check_alike(what_decides() | {"jax": "0.0"})


FUNCTIONS = [coordinates._moment, coordinates._lengths, settling._look, judging._measure, sample._rows_at]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_the_functions_of_a_fit_can_be_sent(function):
    one = Pass("sent", function, GIVES, (np.ones(2),), (np.ones(3),), 7)
    found = pickle.loads(pickle.dumps(one))
    assert found.of_block is function
    assert (found.doing, found.gives, found.begin) == ("sent", GIVES, 7)
    np.testing.assert_array_equal(found.shared[0], np.ones(2))
