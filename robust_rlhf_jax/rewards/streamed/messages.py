"""Anything that can be pickled, from one process to all or from each to all, by JAX's collectives."""

import pickle
from typing import Any

import numpy as np
from jax.experimental.multihost_utils import broadcast_one_to_all, process_allgather
from jaxtyping import UInt32


def from_first(message: Any = None) -> Any:
    """What the first process gives, in every one."""
    words = _words(message)
    length = int(broadcast_one_to_all(np.uint32(len(words))))
    return _message(broadcast_one_to_all(_filled(words, length)))


def from_each(message: Any) -> list[Any]:
    """What each process gives, in their order, in every one."""
    words = _words(message)
    longest = int(process_allgather(np.uint32(len(words))).max())
    return [_message(row) for row in process_allgather(_filled(words, longest))]


def _words(message: Any) -> UInt32[np.ndarray, " w"]:
    """The length of the pickled message, its bytes, and padding, up to an eighth: each length has its own program."""
    content = pickle.dumps(message, protocol=5)
    used = 1 + -(-len(content) // 4)
    step = 1 << max(0, used.bit_length() - 4)
    words = np.zeros(-(-used // step) * step + 1, np.uint32)
    words[:2] = len(content) & 0xFFFFFFFF, len(content) >> 32
    words[2:].view(np.uint8)[: len(content)] = np.frombuffer(content, np.uint8)
    return words


def _filled(words: UInt32[np.ndarray, " w"], length: int) -> UInt32[np.ndarray, " l"]:
    filled = np.zeros(length, np.uint32)
    filled[: len(words)] = words[:length]
    return filled


def _message(words: UInt32[np.ndarray, " w"]) -> Any:
    words = np.ascontiguousarray(words)
    size = int(words[0]) + (int(words[1]) << 32)
    return pickle.loads(words[2:].view(np.uint8)[:size].data)
