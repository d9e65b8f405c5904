"""What `robust-rlhf embed` and `robust-rlhf fit` take."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from robust_rlhf_jax.io import Columns
from robust_rlhf_jax.ray_connection import check_address, ray_connected

# Object store of a Ray cluster that the command starts itself: room for the sums of the chunks that are under way.
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
        export: write the pairs back with weight, suspicion and keep: a Parquet file, or a folder of several.
        clean: write the pairs that are not left out, with weight and suspicion: as for export, or a folder of shards.
        quiet: show no progress bar.
        engine: local, this process; ray, tasks of a Ray cluster (needs the extra ray), whose machines see source under
            the same path.
        ray_address: HOST:PORT of a Ray cluster, or auto; one of its own on this machine if not given.
    """

    source: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    epsilon: float | None = None
    memory: str | None = None
    checkpoint: Path | None = None
    out: Path = Path("fit")
    export: Path | None = None
    clean: Path | None = None
    quiet: bool = False
    engine: Literal["local", "ray"] = "local"
    ray_address: str | None = None

    def run(self) -> None:
        check_address(self.engine, self.ray_address)
        with self._engine() as engine:
            from .command import fit_command
            from .copies import Copies

            fit_command(
                self.source,
                self.epsilon,
                self.memory,
                self.checkpoint,
                self.out,
                self.quiet,
                Copies(self.export, self.clean),
                engine,
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


@dataclasses.dataclass(frozen=True)
class EmbedArguments:
    """Embed the texts of a preference file in shards, which fit takes. Stopped, the same command resumes.

    Args:
        source: a file of texts as audit takes it; CSV, JSON lines and Parquet with a pair a row are read in batches.
        out: new folder for the shards.
        columns: which column is what.
        featuriser: what texts become: hashed, format, or the folder of a local model.
        dtype: the type of the numbers; if not given, float16 for a model, else float32.
        rows_per_shard: pairs in each shard, whose embeddings are in memory at once.
        skip_bad: how many unusable rows are skipped at most: a count, or a share if below 1.
        split: the split to read, of a data set that has several.
        encoding: the encoding of a text file that is not in UTF-8.
        quiet: show no progress bar.
    """

    source: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    out: Path
    columns: Annotated[Columns, tyro.conf.arg(name="")] = dataclasses.field(default_factory=Columns)
    featuriser: str = "hashed"
    dtype: Literal["float16", "bfloat16", "float32"] | None = None
    rows_per_shard: int = 10_000
    skip_bad: float = 0
    split: str | None = None
    encoding: str | None = None
    quiet: bool = False

    def run(self) -> None:
        from .embed_command import embed_command

        names = (
            "columns",
            "featuriser",
            "dtype",
            "rows_per_shard",
            "skip_bad",
            "split",
            "encoding",
        )
        embed_command(self.source, self.out, self.quiet, **{name: getattr(self, name) for name in names})
