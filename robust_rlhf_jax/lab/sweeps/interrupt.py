"""Ctrl-C without a traceback: the batch at hand is finished and kept, then the work ends."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator

NOTICE = b"\nStopping after this batch; Ctrl-C once more drops it.\n"


@contextlib.contextmanager
def interruptible(advance: Callable[..., object]) -> Iterator[Callable[..., None]]:
    """The block gets `advance` for its batches; after a Ctrl-C that raises KeyboardInterrupt once a batch is kept.

    Raised anywhere else it could fall into a callback of JAX's, which prints it and goes on. A second Ctrl-C does
    raise it at once.
    """
    asked = threading.Event()

    def ask(number, frame) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        asked.set()
        os.write(2, NOTICE)  # print() may be what was interrupted

    def checked(*cells) -> None:
        advance(*cells)
        if asked.is_set():
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # where signals never arrive
        yield checked
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield checked
    finally:
        signal.signal(signal.SIGINT, before)
