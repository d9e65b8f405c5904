"""What `robust-rlhf best-of-n` takes."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from robust_rlhf_jax.io import Columns


@dataclasses.dataclass(frozen=True)
class BestOfNArguments:
    """Choose the best of several answers to each prompt, by preferences of which some may be corrupt.

    Args:
        candidates: a JSON or Parquet file with the columns prompt and responses, a list of texts.
        pairs: a preference file of texts, as audit takes it.
        out: the JSON lines to write: each prompt with the answer that was chosen.
        columns: which column of pairs is what.
        epsilon: the largest share of the pairs that may be corrupt; decided from the evidence if not given.
        temperature: 0 takes the best answer; above 0, answers are drawn at this temperature, in units of the reward.
        featuriser: what texts become: hashed, format, or the folder of a local model.
        seed: seed of the draws.
    """

    candidates: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    pairs: Path
    out: Path
    columns: Annotated[Columns, tyro.conf.arg(name="")] = dataclasses.field(default_factory=Columns)
    epsilon: float | None = None
    temperature: float = 0.0
    featuriser: str = "hashed"
    seed: int = 0

    def run(self) -> None:
        from .command import best_of_n_command

        names = ("columns", "epsilon", "temperature", "featuriser", "seed")
        best_of_n_command(
            self.candidates, self.pairs, self.out, **{name: getattr(self, name) for name in names}
        )
