"""Passes by all processes of a `jax.distributed` program: the first one fits, and every one reads its share."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from robust_rlhf_jax.sources import PairSource

from .engine import Compute, Engine, T
from .forward import Forward
from .layout import Layout
from .messages import from_each, from_first
from .one_pass import Part, Pass
from .share import Share, check_alike, share_of, what_decides


class Begin(NamedTuple):
    """A pass begins, without what is given per pair; `fingerprint` and `alike` of the first process."""

    a_pass: Pass
    layout: Layout
    fingerprint: str
    alike: dict[str, Any]


class Round(NamedTuple):
    """Each process computes a chunk, from `first` on; `given` of all of these."""

    first: int
    given: tuple[np.ndarray, ...]


class Ended(NamedTuple):
    """The fit has ended with `found`, or stopped with what `problem` says."""

    found: Any
    problem: str | None


@dataclasses.dataclass(frozen=True)
class Processes(Engine):
    """Passes by all processes that `jax.distributed.initialize` has connected; each of them calls the fit.

    Each opens the source itself, reads every n-th chunk of the pairs, and computes on its own devices. The first one
    adds the sums up in the order of one process alone, decides, reports and keeps the checkpoint; all end with its
    result, to the bit. A process that is lost ends all: the checkpoint is what a new start goes on from.

    **Raises:** ValueError, in all processes, for any error of the fit or of one of them, such as another source or
    other versions.

    **Example:** in every process, `jax.distributed.initialize(...)` and then the fit; on CPUs before it
    `jax.config.update("jax_cpu_collectives_implementation", "gloo")`. One process is a program, too:

    >>> import numpy as np
    >>> from robust_rlhf_jax.rewards import Processes, Streaming, fit_source
    >>> from robust_rlhf_jax.sources import ArraySource
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 2)) + 0.5
    >>> found = fit_source(ArraySource(x), 0.1, streaming=Streaming(engine=Processes()))
    >>> len(found.weights)
    500
    """

    def of(self, source: PairSource, layout: Layout) -> Compute:
        """What computes passes over `source`, for the first process."""
        return lambda a_pass: _parts(source, layout, a_pass)

    def led(self, source: PairSource, fit: Callable[[], T]) -> T:
        """What `fit` gives in the first process; the others compute their share of its passes meanwhile."""
        if jax.process_index() > 0:
            return _served(source)
        try:
            found = fit()
        except Exception as error:
            from_first(Ended(None, str(error) or type(error).__name__))
            raise
        return from_first(Ended(found, None)).found


def _parts(source: PairSource, layout: Layout, a_pass: Pass) -> Iterator[Part]:
    begin = Begin(a_pass._replace(given=()), layout, source.fingerprint(), what_decides())
    from_first(begin)
    mine = _Shares(source, begin)
    for first in range(0, layout.chunks, jax.process_count()):
        place = layout.place(first, min(first + jax.process_count(), layout.chunks))
        for parts in mine.of(from_first(Round(first, a_pass.within(place).given))):
            yield from parts


def _served(source: PairSource) -> Any:
    """The result of the first process, after its passes.

    **Raises:** ValueError for what stopped it.
    """
    mine = None
    while True:
        message = from_first()
        if isinstance(message, Ended) and message.problem is not None:
            raise ValueError(message.problem)
        if isinstance(message, Ended):
            return message.found
        if isinstance(message, Begin):
            mine = _Shares(source, message)
        elif mine is not None:
            mine.of(message, quiet=True)


class _Shares:
    """What this process computes of one pass."""

    def __init__(self, source: PairSource, begin: Begin):
        self.begin, self.given = begin, source
        self.source = source if hasattr(source, "blocks_from") else Forward(source, begin.layout.rows)

    @functools.cached_property
    def _changed(self) -> bool:
        return self.given.fingerprint() != self.begin.fingerprint

    def of(self, now: Round, quiet: bool = False) -> list[list[Part]]:
        """What all processes have computed in one round.

        **Raises:** ValueError for an error in one of them; not if `quiet`, since the first process will raise it.
        """
        found = from_each(self._mine(now))
        problem = next((each for each in found if isinstance(each, str)), None)
        if problem is not None and not quiet:
            raise ValueError(problem)
        return found

    def _mine(self, now: Round) -> list[Part] | str:
        """A chunk, none where there are fewer than processes, or what went wrong."""
        chunk, layout = now.first + jax.process_index(), self.begin.layout
        if chunk >= layout.chunks:
            return []
        begin = layout.place(now.first, now.first + 1).start
        try:
            if self._changed:
                raise ValueError(f"process {jax.process_index()} has another source than the first one.")
            check_alike(self.begin.alike)
            a_pass = self.begin.a_pass._replace(given=now.given, begin=begin)
            share = Share(layout, chunk, chunk + 1)
            return share_of(self.source, a_pass.within(share.place), share)
        except Exception as error:  # the others wait for an answer, whatever it is
            return str(error) or type(error).__name__
