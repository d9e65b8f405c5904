"""Reading ahead: order, exceptions, an early end, and how far ahead."""

import threading
import time

import numpy as np
import pytest

from robust_rlhf_jax.sources import ArraySource, read_ahead


def readers():
    return [thread for thread in threading.enumerate() if thread.name == "read_ahead"]


def waited_for(true):
    """Whether something becomes true within seconds."""
    for _ in range(500):
        if true():
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("depth", [1, 2, 10])
def test_the_order_is_kept(depth):
    x = np.arange(200.0).reshape(100, 2)
    found = list(read_ahead(ArraySource(x).blocks(7), depth))
    assert len(found) == 15
    np.testing.assert_array_equal(np.concatenate(found), x)
    assert not readers()
    assert list(read_ahead([], depth)) == []


@pytest.mark.parametrize("depth", [1, 3])
def test_the_reader_is_so_far_ahead_and_no_further(depth):
    made = []

    def blocks():
        for i in range(10):
            made.append(i)
            yield i

    ahead = read_ahead(blocks(), depth)
    assert made == []
    for i in range(3):
        assert next(ahead) == i
        assert waited_for(lambda i=i: len(made) == i + 1 + depth)
        time.sleep(0.02)
        assert len(made) == i + 1 + depth
    ahead.close()


def test_the_caller_computes_meanwhile():
    """The reader waits for what happens only after its first block was taken."""
    taken = threading.Event()

    def blocks():
        yield 0
        assert taken.wait(10)
        yield 1

    ahead = read_ahead(blocks())
    assert next(ahead) == 0
    taken.set()
    assert next(ahead) == 1


@pytest.mark.parametrize("error", [ValueError("the shard is damaged"), KeyboardInterrupt("stop")])
def test_what_the_reader_raises_reaches_the_caller_in_its_place(error):
    def blocks():
        yield 0
        yield 1
        raise error

    ahead = read_ahead(blocks(), depth=5)
    assert [next(ahead), next(ahead)] == [0, 1]
    with pytest.raises(type(error)) as found:
        next(ahead)
    assert found.value is error
    assert not readers()
    assert list(ahead) == []


def test_an_early_end_stops_the_thread_and_closes_the_blocks():
    closed = []

    def blocks():
        try:
            yield from range(1000)
        finally:
            closed.append(threading.current_thread().name)

    ahead = read_ahead(blocks(), depth=2)
    assert next(ahead) == 0
    assert len(readers()) == 1
    ahead.close()
    assert not readers()
    assert closed == ["read_ahead"]


def test_a_loop_that_is_left_stops_the_thread():
    def first():
        for block in read_ahead(iter(range(1000))):
            return block

    assert first() == 0
    assert waited_for(lambda: not readers())


def test_nothing_is_started_before_the_first_block():
    ahead = read_ahead(iter([1]))
    assert not readers()
    ahead.close()


def test_what_cannot_be_iterated_is_heard():
    with pytest.raises(TypeError, match="not iterable"):
        list(read_ahead(3))


@pytest.mark.parametrize("depth", [0, -1, 1.5, True])
def test_depth_is_a_number_above_0(depth):
    with pytest.raises(ValueError, match=r"^depth=.*: give a whole number of at least 1\.$"):
        read_ahead([], depth)
