"""When JAX compiled programs, here and in worker processes: the cells left do not wait for that again."""

import functools
import time
from collections.abc import Iterable

import jax

# Tracing, lowering, and compiling or reading from the cache.
EVENTS = "/jax/core/compile/"
# (start, end) by the clock of the machine, which all its processes share.
Span = tuple[float, float]


class _Record:
    """`spans` of this process, none inside another one; those of others, each with its share of this process's time."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.of_others: list[tuple[Span, float]] = []
        jax.monitoring.register_event_duration_secs_listener(self._listen)

    def _listen(self, event: str, duration_secs: float, **_: object) -> None:
        if event.startswith(EVENTS):
            end = time.monotonic()
            # An outer program's tracing holds that of the inner ones.
            while self.spans and self.spans[-1][0] >= end - duration_secs:
                self.spans.pop()
            self.spans.append((end - duration_secs, end))


@functools.cache
def _record() -> _Record:
    return _Record()


def listen() -> None:
    """Record from now on."""
    _record()


def spans_after(moment: float) -> list[Span]:
    """What this process compiled that ended after `moment`."""
    return [span for span in _record().spans if span[1] > moment]


def add(spans: Iterable[Span], share: float) -> None:
    """`spans` of another process that did `share` of the work."""
    _record().of_others += [(span, share) for span in spans]


def seconds_between(start: float, end: float) -> float:
    """The part of the time from `start` to `end` that went into compilation."""
    weighted = [(span, 1.0) for span in _record().spans] + _record().of_others
    return sum(share * max(0.0, min(end, b) - max(start, a)) for (a, b), share in weighted)
