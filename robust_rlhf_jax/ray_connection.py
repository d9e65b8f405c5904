"""A connection to a Ray cluster, or one of this process's own on this machine, and what its workers need to know."""

import contextlib
import importlib
import logging
import os
import secrets
import socket
from collections.abc import Iterator
from typing import Any

import jax

from robust_rlhf_jax.compilation_cache import VARIABLE

MISSING = "The engine ray needs the package ray: pip install 'robust-rlhf-jax[ray]'."
# Retries of a task whose worker or node was lost. An error of our own would occur again, and is not retried.
RETRIES = 10
# Tasks in flight for each CPU: one that runs, and the next one.
TASKS_PER_CPU = 2
SECONDS_TO_CONNECT = 10.0
# Off, a node's address is 127.0.0.1, and its servers listen there alone: so it is by default on Windows and macOS,
# whose firewalls would ask, and on Linux too where it is set before Ray is imported.
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


def ray_module() -> Any:
    """The package ray.

    **Raises:** ValueError where it is not installed.
    """
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise ValueError(MISSING) from None


def check_address(engine: str, address: str | None) -> None:
    """**Raises:** ValueError for the address of a Ray cluster where another engine is meant."""
    if engine != "ray" and address is not None:
        raise ValueError(f"--ray-address {address} is for --engine ray: add that.")


@contextlib.contextmanager
def ray_connected(address: str | None, object_bytes: int) -> Iterator[Any]:
    """A block that is connected to the cluster at `address`, HOST:PORT or "auto", and gets the package ray.

    If None, to one of its own on this machine, which ends with the block and has `object_bytes` for objects. That has
    no dashboard, sends no usage statistics, listens on the loopback interface alone, and obeys nobody without its
    token. Ray forks, which nothing should once JAX has its threads: begin before anything is computed.

    **Raises:** ValueError where Ray is not installed, or the cluster cannot be reached.
    """
    # What Ray reads when it is imported. Where something else listens it would try twenty times, for a quarter hour.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # of tasks beside one whose error is told
    if address is None:
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), LOOPBACK: "0"}
    else:
        os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "1")
    ray = ray_module()
    if address is None:
        ray.init("local", include_dashboard=False, object_store_memory=object_bytes, **_silent())
    else:
        _connect(ray, address)
    try:
        yield ray
    finally:
        ray.shutdown()


def cpus(ray: Any) -> int:
    """How many the cluster has now."""
    return int(ray.cluster_resources().get("CPU", 0))


def worker_variables() -> dict[str, str]:
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


def as_ours(ray: Any, error: Any, what: str) -> Exception:
    """The ValueError that a task raised, or that the cluster lost it; `what` is what it computed."""
    if not isinstance(error, ray.exceptions.RayTaskError):
        reason = str(error).strip().splitlines()[0].rstrip(".")
        return ConnectionError(f"the Ray cluster lost {what} {RETRIES + 1} times ({reason}).")
    return error.cause if isinstance(error.cause, ValueError) else error


def _silent() -> dict[str, Any]:
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
