"""Blocks on devices while the next one is read."""

import threading

import numpy as np

from robust_rlhf_jax.rewards.streamed.layout import Layout
from robust_rlhf_jax.rewards.streamed.placed_blocks import placed_blocks

ROWS, K = 64, 16


class OneBuffer:
    """A source that fills one array again and again, aligned as JAX takes it without a copy."""

    n_pairs, n_features, groups = 3 * ROWS, K, None

    def __init__(self):
        room = np.empty(ROWS * K + 16, np.float32)
        begin = -room.ctypes.data % 64 // 4
        self.buffer = room[begin : begin + ROWS * K].reshape(ROWS, K)
        self.filled = [threading.Event() for _ in range(3)]

    def blocks(self, rows):
        for number, filled in enumerate(self.filled):
            self.buffer[:] = number
            filled.set()
            yield self.buffer

    def fingerprint(self):
        return "one buffer"


def test_a_source_may_fill_one_array_again_and_again():
    source = OneBuffer()
    blocks = placed_blocks(source, Layout(source.n_pairs, K, ROWS), slice(0, source.n_pairs))
    for number, (_, block) in enumerate(blocks):
        if number < 2:
            assert source.filled[number + 1].wait(10)
        np.testing.assert_array_equal(block, np.full((ROWS, K), number))
