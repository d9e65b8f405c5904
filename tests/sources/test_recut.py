"""Blocks are cut anew: the same rows, blocks of one length, nothing held that is not needed."""

import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_rlhf_jax.sources._recut import cuts, cuts_from, recut

LENGTHS = st.lists(st.integers(0, 40), max_size=12)
ROWS = st.integers(1, 50)


@given(lengths=LENGTHS, rows=ROWS)
def test_rows_stay_in_order_and_blocks_have_one_length(lengths, rows):
    x = np.arange(2 * sum(lengths)).reshape(-1, 2)
    ends = np.cumsum(lengths, dtype=int)
    found = list(recut((x[end - n : end] for n, end in zip(lengths, ends, strict=True)), rows))
    assert [len(block) for block in found] == [min(rows, len(x) - i) for i in range(0, len(x), rows)]
    np.testing.assert_array_equal(np.concatenate(found) if found else x[:0], x)


@given(lengths=LENGTHS, rows=ROWS)
def test_stretches_that_were_cut_are_not_cut_again(lengths, rows):
    begin = 0
    for n in lengths:
        found = list(cuts(begin, n, rows))
        assert [i for cut in found for i in range(cut.start, cut.stop)] == list(range(n))
        assert all((begin + cut.stop) % rows == 0 for cut in found[:-1])
        assert all((begin + cut.start) // rows == (begin + cut.stop - 1) // rows for cut in found)
        begin += n


@given(lengths=LENGTHS, rows=ROWS, begin=st.integers(0, 500))
def test_stretches_are_cut_from_any_row(lengths, rows, begin):
    found, at = [], 0
    for n in lengths:
        found += [range(at + cut.start, at + cut.stop) for cut in cuts_from(begin, at, n, rows)]
        at += n
    assert [row for cut in found for row in cut] == list(range(begin, at))
    assert all((cut.start - begin) // rows == (cut[-1] - begin) // rows for cut in found)


def test_blocks_of_that_length_are_passed_on():
    blocks = [np.ones((4, 2)), np.ones((4, 2)), np.ones((3, 2))]
    found = list(recut(iter(blocks), 4))
    assert all(np.shares_memory(a, b) for a, b in zip(found[:2], blocks, strict=False))


def test_nothing_holds_a_block_while_the_next_one_is_made():
    last = []

    def blocks():
        for _ in range(5):
            assert not last or last[-1]() is None
            block = np.ones((10, 2))
            last.append(weakref.ref(block))
            yield block
            del block

    for block in recut(blocks(), 4):
        del block
    assert len(last) == 5


@pytest.mark.parametrize("rows", [0, 1.0, True])
def test_rows_are_checked_at_the_call(rows):
    with pytest.raises(ValueError, match=r"give a whole number of at least 1"):
        recut([], rows)
