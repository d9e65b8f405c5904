"""A sweep's batches as tasks of a Ray cluster, whose ports are bound to loopback.

Rows come back to this process, which alone writes them.
"""

import contextlib
import itertools
from collections.abc import Generator, Iterator
from typing import Any

from robust_rlhf_jax.lab.processor_devices import check_on_cpu
from robust_rlhf_jax.ray_connection import (
    RETRIES,
    TASKS_PER_CPU,
    as_ours,
    cpus,
    ray_connected,
    ray_module,
    worker_variables,
)

from .engine import Execute, Rows, Task
from .worker import parts_of

# Rows are small; Ray would take a third of the memory for objects.
OBJECT_BYTES = 100 << 20


@contextlib.contextmanager
def ray_cluster(address: str | None = None) -> Iterator[Execute]:
    """The block gets `ray_execute`, connected to the cluster at `address` as by `ray_connected`.

    **Raises:** ValueError where Ray is not installed, the cluster cannot be reached, or JAX runs on no CPU.
    """
    with ray_connected(address, OBJECT_BYTES):
        check_on_cpu("ray")  # not before: Ray forks, which nothing should once JAX has its threads
        yield ray_execute


def ray_execute(tasks: list[Task]) -> Generator[dict[str, Rows], None, None]:
    """`run_sweep`'s `execute` on the cluster that Ray is connected to.

    Tasks that are lost with their worker or node are tried again by Ray. Closed early, it cancels what runs.

    **Raises:** ValueError for a worker whose numbers might be others; ConnectionError for a batch lost too often.
    """
    ray = ray_module()
    options = {"num_cpus": 1, "max_retries": RETRIES, "retry_exceptions": False}
    remote = ray.remote(**options, runtime_env={"env_vars": worker_variables()})(compute)
    waiting, running = iter(tasks), []
    try:
        while True:
            room = max(1, TASKS_PER_CPU * cpus(ray)) - len(running)
            running += [remote.remote(task) for task in itertools.islice(waiting, max(0, room))]
            if not running:
                return
            if ray.wait(running, timeout=1.0)[0]:
                ready, running = ray.wait(running, num_returns=len(running), timeout=0)
                yield from _collected(ray, ready)
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def compute(task: Task) -> dict[str, Rows]:
    """What a Ray task does on its worker: all parts of `task`."""
    return {part: rows for found in parts_of(task) for part, rows in found.items()}


def _collected(ray: Any, ready: list) -> Iterator[dict[str, Rows]]:
    """The rows of finished tasks together, so that a stop after them loses none, and then the first error."""
    found, errors = {}, []
    for reference in ready:
        try:
            found |= ray.get(reference)
        except ray.exceptions.RayError as error:
            errors.append(error)
    if found:
        yield found
    for error in errors:
        raise as_ours(ray, error, "a batch") from None
