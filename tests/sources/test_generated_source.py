"""Generated pairs: passes that differ are refused."""

import weakref

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from robust_rlhf_jax.sources import GeneratedSource

X = np.arange(12.0).reshape(4, 3)


def passes(*each):
    """A function that gives one list of blocks after the other, the last one for ever."""
    left = list(each)
    return lambda: iter(left.pop(0) if len(left) > 1 else left[0])


def test_blocks_may_be_of_jax_or_of_whole_numbers():
    for block, dtype in [
        (jnp.ones((2, 3), jnp.bfloat16), jnp.bfloat16),
        (np.ones((2, 3), np.int8), "float32"),
    ]:
        (found,) = GeneratedSource(lambda block=block: [block]).blocks(5)
        assert found.dtype == dtype


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (passes([X], [X, X]), r"make\(\) gave at least 8 rows in a pass, and there are 4 pairs"),
        (passes([X, X], [X]), r"make\(\) gave 4 rows and no more in a pass, and there are 8 pairs"),
        (passes([X], []), r"make\(\) gave 0 rows and no more"),
        (passes([X], [X[:, :2]]), r"gave a block of 2 features in float64, and one of 3 in float64 before"),
        (
            passes([X], [X.astype(np.float32)]),
            r"gave a block of 3 features in float32, and one of 3 in float64",
        ),
        (passes([X], [X[0]]), r"make\(\) gave a block of shape \(3,\): give \[m, k\]"),
        (passes([X], [X.astype(str)]), r"A block of make\(\) holds <U32: give float16"),
    ],
)
def test_a_pass_that_differs_is_refused(make, said):
    source = GeneratedSource(make)
    with pytest.raises(ValueError, match=said):
        list(source.blocks(3))


@pytest.mark.parametrize("n_pairs", [None, 4])
@pytest.mark.parametrize("wrap", [iter, lambda blocks: (block for block in blocks)])
def test_an_iterator_that_was_used_is_refused(n_pairs, wrap):
    same = wrap([X, X[:0]])
    source = GeneratedSource(lambda: same, n_pairs)
    with pytest.raises(ValueError, match=r"make\(\) returned the iterator that it had returned before"):
        list(source.blocks(3))


def test_a_number_of_pairs_that_is_wrong_is_found_in_the_first_pass():
    for n_pairs, said in [(3, "at least 4 rows in a pass, and there are 3"), (5, "4 rows and no more")]:
        with pytest.raises(ValueError, match=said):
            list(GeneratedSource(lambda: [X], n_pairs).blocks(9))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: [], r"make\(\) gave no rows: return an iterator of blocks \[m, k\]"),
        (lambda: [X[:0]], r"make\(\) gave no rows"),
        (lambda: 3, r"make\(\) gave no blocks \(.*\): return an iterator of arrays \[m, k\]"),
        (lambda: [X[:, :0]], r"make\(\) gave a block of shape \(4, 0\): give \[m, k\], with k ≥ 1 features"),
        (lambda: [np.array([[None]])], r"A block of make\(\) holds object"),
    ],
)
def test_what_gives_no_pairs_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        GeneratedSource(make)


@pytest.mark.parametrize("n_pairs", [0, -1, 4.0, "4"])
def test_a_number_of_pairs_is_a_whole_number(n_pairs):
    with pytest.raises(
        ValueError, match=r"^n_pairs=.*: give a whole number of at least 1, or None to count them"
    ):
        GeneratedSource(lambda: [X], n_pairs)


def test_what_make_raises_is_heard():
    def make():
        yield X
        raise KeyError("the shard is lost")

    with pytest.raises(KeyError, match="the shard is lost"):
        GeneratedSource(make)


def test_an_iterator_is_closed_when_a_pass_is_left():
    open_now = []

    def make():
        open_now.append(1)
        try:
            yield X
            yield X
        finally:
            open_now.pop()

    blocks = GeneratedSource(make).blocks(3)
    next(blocks)
    assert open_now == [1]
    blocks.close()
    assert not open_now


def test_a_block_is_not_held_while_the_next_one_is_made():
    made = []

    def make():
        for _ in range(6):
            assert not made or made[-1]() is None
            block = np.zeros((10, 2))
            made.append(weakref.ref(block))
            yield block
            del block

    for x in GeneratedSource(make, n_pairs=60).blocks(4):
        del x
    assert len(made) == 7


def test_frames_have_their_columns_in_one_order():
    frame = pd.DataFrame(np.ones((4, 2)), columns=["price", "time"])
    assert GeneratedSource(lambda: [frame, frame]).names == ("price", "time")
    assert GeneratedSource(lambda: [np.ones((4, 2))]).names == ()
    for other, listed in ((frame[["time", "price"]], "time, price"), (frame.to_numpy(), "no names")):
        with pytest.raises(ValueError, match=f"with the columns {listed}, and one with price, time before"):
            GeneratedSource(lambda other=other: [frame, other])
