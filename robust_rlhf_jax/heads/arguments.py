"""What `robust-rlhf fit` takes."""

import dataclasses
from pathlib import Path

import tyro


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
        quiet: no bar.
    """

    source: tyro.conf.Positional[Path]
    epsilon: float | None = None
    memory: str | None = None
    checkpoint: Path | None = None
    out: Path = Path("fit")
    export: Path | None = None
    clean: Path | None = None
    quiet: bool = False

    def run(self) -> None:
        from .command import fit_command
        from .copies import Copies

        copies = Copies(self.export, self.clean)
        fit_command(self.source, self.epsilon, self.memory, self.checkpoint, self.out, self.quiet, copies)
