"""Every core of the processor a device, so that cells of a sweep run side by side; only the command does this."""

import os

import jax

FLAG = "xla_force_host_platform_device_count"


def use_all_cores() -> None:
    """Ask JAX for as many CPU devices as this process has cores; call it before anything is computed.

    One cell keeps one core busy, and little more: on two cores two devices run a sweep almost twice as fast
    (`benchmarks/sweep_cells.py`). Whoever set JAX_NUM_CPU_DEVICES or the older XLA flag keeps that number, as does a
    process that has already computed something. Accelerators are none of its business.
    """
    if devices_are_chosen():
        return
    try:
        jax.config.update("jax_num_cpu_devices", cores())
    except RuntimeError:  # too late: the devices are settled once
        return


def devices_are_chosen() -> bool:
    """Whether the environment says how many devices the processor is."""
    return "JAX_NUM_CPU_DEVICES" in os.environ or FLAG in os.environ.get("XLA_FLAGS", "")


def check_on_cpu(engine: str) -> None:
    """**Raises:** ValueError where JAX runs on something else, which processes cannot share."""
    if jax.default_backend() != "cpu":
        raise ValueError(
            f"--engine {engine} computes on CPU and JAX is set to {jax.default_backend()}: set JAX_PLATFORMS=cpu."
        )


def cores() -> int:
    """How many this process may use."""
    return len(usable_cores())


def usable_cores() -> list[int]:
    """The numbers of those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
