"""What a process that computes tasks of a sweep for another one does."""

import functools
import socket
from collections.abc import Generator

from robust_rlhf_jax.compilation_cache import keep_compiled_programs

from .config import SweepConfig
from .engine import Material, Rows, Task, part_names, sample_material, solve_job, sweep_worlds
from .store import world_digests


def parts_of(task: Task) -> Generator[dict[str, Rows], None, None]:
    """The parts of a task, one at a time.

    **Raises:** ValueError where the numbers would be others than those of the process that planned the task.
    """
    keep_compiled_programs()
    config, job = task.config, task.job
    digests, material = _kept(config)
    if part_names(config, digests, job.group, job.width, job.parts) != job.parts:
        raise ValueError(
            f"the worker {socket.gethostname()} would compute other numbers than this machine: its version "
            "and source code of robust-rlhf-jax, its version of JAX, its platform, JAX's settings and the worlds it "
            "builds must be the same."
        )
    yield from solve_job(config, job, material)


@functools.lru_cache(maxsize=1)
def _kept(config: SweepConfig) -> tuple[list[str], Material]:
    """The data sets, kept for the next task of the same sweep; a new worker draws them again, to the same bits."""
    worlds = sweep_worlds(config)
    return world_digests(config, worlds), sample_material(config, worlds)
