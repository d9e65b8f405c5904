"""What `robust-rlhf fit` takes."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import tyro

from robust_rlhf_jax.ray_connection import check_address, ray_connected

# Where the command starts a cluster of its own: for the sums of some chunks on their way.
OBJECT_BYTES = 1 << 30


@dataclasses.dataclass(frozen=True)
class FitArguments:
    """Fit a reward head to pairs of embeddings that need not fit into memory, and write it with a weight for each pair.

    Args:
        source: a folder of .npy shards (chosen and rejected, or differences), a .npy file of differences, or Parquet
            files with the columns chosen and rejected.
        epsilon: the largest share of the pairs that may be corrupt; decided from the evidence if not given.
        memory: how much the fit may use beside Python and JAX, such as 2GB; half of the machine's if not given.
        checkpoint: folder for the state after each pass; the same command goes on from there.
        out: folder for the files.
        quiet: no bar.
        engine: local, this process; ray, tasks of a Ray cluster (needs the extra ray), whose machines see source under
            the same path.
        ray_address: HOST:PORT of a Ray cluster, or auto; one of its own on this machine if not given.
    """

    source: tyro.conf.Positional[Path]
    epsilon: float | None = None
    memory: str | None = None
    checkpoint: Path | None = None
    out: Path = Path("fit")
    quiet: bool = False
    engine: Literal["local", "ray"] = "local"
    ray_address: str | None = None

    def run(self) -> None:
        check_address(self.engine, self.ray_address)
        with self._engine() as engine:
            from .command import fit_command

            fit_command(
                self.source, self.epsilon, self.memory, self.checkpoint, self.out, self.quiet, engine=engine
            )

    @contextlib.contextmanager
    def _engine(self) -> Iterator[Any]:
        """A block that gets who computes the passes; None for this process."""
        if self.engine == "local":
            yield None
            return
        from robust_rlhf_jax.rewards import RayTasks

        with ray_connected(self.ray_address, OBJECT_BYTES):
            yield RayTasks()
