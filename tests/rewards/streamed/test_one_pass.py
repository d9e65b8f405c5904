"""One pass: what there is per pair stays in its place, and sums are those of fixed chunks, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.rewards.streamed import passes
from robust_rlhf_jax.rewards.streamed.layout import BLOCKS, Layout
from robust_rlhf_jax.rewards.streamed.one_pass import Kind, Pass, parts_of
from robust_rlhf_jax.rewards.streamed.passes import Passes
from robust_rlhf_jax.rewards.streamed.placed_blocks import placed_blocks
from robust_rlhf_jax.sources import ArraySource

K, ROWS, N = 5, 64, 5_000


@jax.jit
def described(block, shift, factor):
    """Per pair, a sum, rows that nobody asks for, and rows."""
    x = (block + shift) * factor[:, None]
    return x.sum(axis=1), x.sum(axis=0), x, block


def pairs():
    return np.random.default_rng(0).normal(size=(N, K)).astype(np.float32)


@pytest.fixture
def made(monkeypatch):
    """(a pass, `Passes` of blocks of 64 rows)."""
    monkeypatch.setattr(passes, "NUMBERS", ROWS * K)
    many = Passes(ArraySource(pairs()))
    factor = np.random.default_rng(1).normal(size=many.padded).astype(np.float32)
    gives = (Kind.PAIR, Kind.SUM, Kind.UNUSED, Kind.ROWS)
    return Pass("described", described, gives, (jnp.float32(2.0),), (factor,)), many


def test_a_pass_gives_what_its_function_gives(made):
    one, many = made
    listed = []
    lengths, total, unused, rows = many.run(one, lambda place, found: listed.append((place, found)))
    x = np.zeros((many.padded, K))
    x[:N] = pairs()
    y = (x + 2.0) * one.given[0][:, None]
    np.testing.assert_allclose(lengths, y.sum(axis=1), atol=1e-5)
    np.testing.assert_allclose(total, y.sum(axis=0), rtol=1e-5)
    assert (total.dtype, unused, rows, many.made) == (np.float64, None, None, 1)
    np.testing.assert_array_equal(np.concatenate([found for _, found in listed]), x.astype(np.float32))
    assert [place.start for place, _ in listed] == list(range(0, many.padded, ROWS))


@pytest.mark.parametrize("ends", [(1, 5), (2, 3, 5), (1, 2, 3, 4, 5)])
def test_the_split_of_chunks_changes_no_bit(made, ends):
    one, many = made
    source, layout = many.source, many.layout
    assert layout.chunks == 5
    found, first = [], 0
    for end in ends:
        place = layout.place(first, end)
        found += parts_of(one.within(place), placed_blocks(source, layout, place), layout)
        first = end
    expected = list(many.compute(one))
    assert [part.place for part in found] == [part.place for part in expected]
    for part, other in zip(found, expected, strict=True):
        for kind, mine, its in zip(one.gives, part.found, other.found, strict=True):
            assert (mine is None) == (its is None)
            assert kind is Kind.UNUSED or mine is None or np.array_equal(mine, its)


@pytest.mark.parametrize(
    ("n", "k", "rows"), [(1, 3, 64), (64 * 16, 3, 64), (64 * 16 + 1, 3, 64), (9_999, 400, 64)]
)
def test_chunks_are_all_pairs(n, k, rows):
    layout = Layout(n, k, rows)
    assert layout.padded - n < rows
    assert layout.per_chunk >= BLOCKS
    assert layout.per_chunk * rows >= 16 * k
    places = [layout.place(chunk, chunk + 1) for chunk in range(layout.chunks)]
    assert [pair for place in places for pair in range(place.start, place.stop)] == list(range(layout.padded))
    assert all(layout.ends_chunk(place.stop) for place in places)
    ends = [end for end in range(rows, layout.padded + 1, rows) if layout.ends_chunk(end)]
    assert ends == [place.stop for place in places]


@pytest.mark.parametrize(("rows", "gave"), [(900, "at most 1,024"), (2_000, "2,000"), (1_920, "1,920")])
def test_a_source_that_ends_early_is_refused_in_the_middle_too(made, rows, gave):
    one, many = made
    place = many.layout.place(1, 2)
    blocks = placed_blocks(ArraySource(pairs()[:rows]), many.layout, place)
    with pytest.raises(
        ValueError, match=rf"the source has 5,000 pairs and gave {gave}: it must give the same"
    ):
        list(parts_of(one.within(place), blocks, many.layout))


def test_a_source_that_goes_on_is_refused(made):
    one, many = made
    longer = ArraySource(np.concatenate([pairs(), pairs()]))
    everywhere = many.layout.place(0, many.layout.chunks)
    blocks = placed_blocks(longer, many.layout, everywhere)
    with pytest.raises(ValueError, match=r"the source has 5,000 pairs and gave 5,0\d\d"):
        list(parts_of(one, blocks, many.layout))
