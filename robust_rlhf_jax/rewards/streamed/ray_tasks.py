"""Passes as tasks of a Ray cluster: each reads some chunks of the pairs where it runs, and gives back their sums."""

import dataclasses
import itertools
from collections import deque
from collections.abc import Iterator
from typing import Any

import jax

from robust_rlhf_jax.compilation_cache import keep_compiled_programs
from robust_rlhf_jax.ray_connection import (
    RETRIES,
    TASKS_PER_CPU,
    as_ours,
    cpus,
    ray_module,
    worker_variables,
)
from robust_rlhf_jax.sources import PairSource

from .engine import Compute, Engine
from .layout import Layout
from .one_pass import Part, Pass
from .share import Share, check_alike, share_of, what_decides

# Tasks that each CPU gets of a pass, if there are chunks enough, chunks of one, and bytes of the sums it gives back.
PER_CPU, MOST_CHUNKS, SUM_BYTES = 8, 8, 256 << 20


@dataclasses.dataclass(frozen=True)
class RayTasks(Engine):
    """Passes as tasks of the Ray cluster that this process is connected to by `ray.init`, of one CPU each.

    Every machine must have the same versions installed and see the source under the same path; the source is pickled.
    Tasks that are lost with their machine are computed anew elsewhere. The order in which sums are added is that of one
    process, and so are the numbers, to the bit where the processors are of one kind.

    **Raises:** ValueError, when a fit begins, without Ray, without a connection, where JAX runs on no CPU, and for a
    source that cannot be pickled; while it runs, for a machine that has other versions or cannot read the source, and
    ConnectionError for a task that was lost eleven times.

    **Example:** `ray.init("auto")`, then `fit_reward(source, streaming=Streaming(engine=RayTasks()))`.

    >>> from robust_rlhf_jax.rewards import RayTasks, Streaming
    >>> Streaming(memory="2GB", engine=RayTasks()).engine
    RayTasks()
    """

    def of(self, source: PairSource, layout: Layout) -> Compute:
        """What computes passes over `source`."""
        ray = ray_module()
        if not ray.is_initialized():
            raise ValueError("RayTasks needs a Ray cluster: connect to one by ray.init() before.")
        if jax.default_backend() != "cpu":
            raise ValueError(
                f"RayTasks computes on CPU and JAX is set to {jax.default_backend()}: set JAX_PLATFORMS=cpu."
            )
        return _Tasks(ray, source, layout).parts


class _Tasks:
    """Passes over one source, which each machine is sent once."""

    def __init__(self, ray: Any, source: PairSource, layout: Layout):
        self.ray, self.layout = ray, layout
        self.source = _put(ray, source)
        self.skips = hasattr(source, "blocks_from")
        variables = worker_variables() | {"JAX_NUM_CPU_DEVICES": str(len(jax.local_devices()))}
        options = {"num_cpus": 1, "max_retries": RETRIES, "retry_exceptions": False}
        self.remote = ray.remote(**options, runtime_env={"env_vars": variables})(compute)
        self.expected = what_decides()

    def parts(self, a_pass: Pass) -> Iterator[Part]:
        """Closed early, it cancels what runs."""
        shared = self.ray.put(a_pass._replace(given=()))
        waiting, running = iter(self._shares()), deque()
        try:
            while True:
                room = max(1, TASKS_PER_CPU * cpus(self.ray)) - len(running)
                running.extend(
                    self.remote.remote(
                        self.source, shared, a_pass.within(share.place).given, share, self.expected
                    )
                    for share in itertools.islice(waiting, max(0, room))
                )
                if not running:
                    return
                yield from self._collected(running[0])
                running.popleft()
        finally:
            for reference in running:
                self.ray.cancel(reference, force=True)

    def _shares(self) -> list[Share]:
        """A source that has to read everything before a share gets few shares."""
        chunks, workers = self.layout.chunks, max(1, cpus(self.ray))
        size = min(MOST_CHUNKS, chunks // (PER_CPU * workers)) if self.skips else -(-chunks // workers)
        size = max(1, min(size, SUM_BYTES // (8 * self.layout.n_features**2)))
        return [Share(self.layout, first, min(first + size, chunks)) for first in range(0, chunks, size)]

    def _collected(self, reference: Any) -> list[Part]:
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            raise self._said(error) from None

    def _said(self, error: Any) -> Exception:
        if isinstance(getattr(error, "cause", None), self.ray.exceptions.RaySystemError):
            reason = str(error.cause).strip().splitlines()[-1].rstrip(".")
            return ValueError(
                f"a machine cannot open the source ({reason}): install there what it needs, or give files."
            )
        return as_ours(self.ray, error, "a part of a pass")


def compute(
    source: PairSource, shared: Pass, given: tuple[Any, ...], share: Share, expected: dict[str, Any]
) -> list[Part]:
    """What a Ray task does on its worker."""
    keep_compiled_programs()
    check_alike(expected)
    return share_of(source, shared._replace(given=given, begin=share.place.start), share)


def _put(ray: Any, source: PairSource) -> Any:
    try:
        return ray.put(source)
    except Exception as error:  # whatever its parts raise when they are pickled
        reason = str(error.__cause__ or error.__context__ or error).strip().splitlines()[0].rstrip(".: ")
        raise ValueError(
            f"the source cannot be sent to other machines ({reason}): give files, or a GeneratedSource of a function "
            "that can be pickled."
        ) from None
