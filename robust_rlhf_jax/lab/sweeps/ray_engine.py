"""A sweep's batches as tasks of a Ray cluster, whose ports are bound to loopback.

Rows come back to this process, which alone writes them.
"""

import contextlib
import importlib
import itertools
import os
import secrets
import socket
from collections.abc import Generator, Iterator
from typing import Any

import jax

from robust_rlhf_jax.compilation_cache import VARIABLE
from robust_rlhf_jax.lab.processor_devices import check_on_cpu

from .engine import Execute, Rows, Task
from .worker import parts_of

MISSING = "--engine ray needs the package ray: pip install 'robust-rlhf-jax[ray]'."
# Of a batch whose worker or node was lost. An error of ours would come again, and is not tried again.
RETRIES = 10
# Tasks in flight: one that runs, and one that is there when it is done.
TASKS_PER_CPU = 2
# Rows are small; Ray would take a third of the memory for objects.
OBJECT_BYTES = 100 << 20
SECONDS_TO_CONNECT = 10.0
# Off, a node's address is 127.0.0.1, and its servers listen there alone: so it is by default on Windows and macOS,
# whose firewalls would ask, and on Linux too where it is set before Ray is imported.
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


@contextlib.contextmanager
def ray_cluster(address: str | None = None) -> Iterator[Execute]:
    """The block gets `ray_execute`, connected to the cluster at `address`, HOST:PORT or "auto".

    If None, to one of its own on this machine, which ends with the block. That has no dashboard, sends no usage
    statistics, listens on the loopback interface alone, and obeys nobody without its token.

    **Raises:** ValueError where Ray is not installed, the cluster cannot be reached, or JAX runs on no CPU.
    """
    # What Ray reads when it is imported. Where something else listens it would try twenty times, for a quarter hour.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if address is None:
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), LOOPBACK: "0"}
    else:
        os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "1")
    ray = _ray()
    if address is None:
        ray.init("local", include_dashboard=False, object_store_memory=OBJECT_BYTES, **_silent())
    else:
        _connect(ray, address)
    try:
        check_on_cpu("ray")  # not before: Ray forks, which nothing should once JAX has its threads
        yield ray_execute
    finally:
        ray.shutdown()


def ray_execute(tasks: list[Task]) -> Generator[dict[str, Rows], None, None]:
    """`run_sweep`'s `execute` on the cluster that Ray is connected to.

    Tasks that are lost with their worker or node are tried again by Ray. Closed early, it cancels what runs.

    **Raises:** ValueError for a worker whose numbers might be others; ConnectionError for a batch lost too often.
    """
    ray = _ray()
    options = {"num_cpus": 1, "max_retries": RETRIES, "retry_exceptions": False}
    remote = ray.remote(**options, runtime_env={"env_vars": _variables()})(compute)
    waiting, running = iter(tasks), []
    try:
        while True:
            room = max(1, TASKS_PER_CPU * int(ray.cluster_resources().get("CPU", 0))) - len(running)
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


def _ray():
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise ValueError(MISSING) from None


def _silent() -> dict:
    import logging

    return {"log_to_driver": False, "logging_level": logging.ERROR}


def _connect(ray: Any, address: str) -> None:
    try:
        if address != "auto":
            host, _, port = address.rpartition(":")
            if not port.isdecimal():
                raise ValueError("no port is given")
            socket.create_connection((host, int(port)), SECONDS_TO_CONNECT).close()
        ray.init(address, **_silent())
    except (OSError, OverflowError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise ValueError(
            f"--ray-address {address}: no Ray cluster can be reached there ({reason}); give HOST:PORT of one that "
            "runs, or auto, or leave it out for one on this machine alone."
        ) from None


def _variables() -> dict[str, str]:
    """What workers need of this process's environment: JAX's settings, and where compiled programs are kept."""
    kept = {
        name: value for name, value in os.environ.items() if name.startswith("JAX_") or name == "XLA_FLAGS"
    }
    folder = os.environ.get(VARIABLE) or None
    if folder is None and getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        folder = "off"  # as in this process
    if folder not in (None, "off"):
        folder = os.path.abspath(folder)
    return kept | {VARIABLE: folder or ""}


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
        raise _ours(ray, error) from None


def _ours(ray: Any, error: Any) -> Exception:
    if not isinstance(error, ray.exceptions.RayTaskError):
        reason = str(error).strip().splitlines()[0].rstrip(".")
        return ConnectionError(f"the Ray cluster lost a batch {RETRIES + 1} times ({reason}).")
    return error.cause if isinstance(error.cause, ValueError) else error
