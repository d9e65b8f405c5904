"""The next block is read while the caller computes with this one."""

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


def read_ahead(blocks: Iterable[T], depth: int = 1) -> Iterator[T]:
    """`blocks` in their order, read in a thread that is at most `depth` blocks ahead.

    The thread begins with the first block that is asked for, and ends with the last one, or where the iterator is
    closed or dropped: once the block that it is reading then is read, and `blocks` closed. What it raises is raised in
    the caller.

    **Raises:** ValueError, at the call, for `depth` below 1.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.sources import ArraySource, read_ahead
    >>> source = ArraySource(np.ones((5, 2)))
    >>> [len(block) for block in read_ahead(source.blocks(2))]
    [2, 2, 1]
    """
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
        raise ValueError(f"depth={depth!r}: give a whole number of at least 1.")
    return _ahead(blocks, depth)


def _ahead(blocks: Iterable[Any], depth: int) -> Iterator[Any]:
    found, room, stop = queue.SimpleQueue(), threading.Semaphore(depth), threading.Event()
    reader = threading.Thread(target=_read, args=(blocks, found, room, stop), name="read_ahead", daemon=True)
    reader.start()
    try:
        # No block has a name here, so that the caller alone holds it.
        while (kind := found.get()) == "block":
            yield _taken(found, room)
        if kind == "error":
            raise found.get()
    finally:
        stop.set()
        room.release()
        reader.join()


def _taken(found: queue.SimpleQueue, room: threading.Semaphore) -> Any:
    room.release()
    return found.get()


def _read(blocks: Any, found: queue.SimpleQueue, room: threading.Semaphore, stop: threading.Event) -> None:
    try:
        iterator = iter(blocks)
        try:
            while room.acquire() and not stop.is_set():
                block = next(iterator)
                found.put("block")
                found.put(block)
                del block
        except StopIteration:
            found.put("end")
        finally:
            if hasattr(iterator, "close"):
                iterator.close()
    except BaseException as error:
        found.put("error")
        found.put(error)
