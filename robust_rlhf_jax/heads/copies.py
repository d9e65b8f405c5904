"""What a trainer takes: the source written back with weights, and without the pairs that the fit left out."""

import contextlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from robust_rlhf_jax.rewards import RewardModel
from robust_rlhf_jax.rewards.model import kept
from robust_rlhf_jax.rewards.streamed.config import Tell
from robust_rlhf_jax.sources import PairSource, ShardSource
from robust_rlhf_jax.sources.copies import check_copy, copy_to, whole_copy


class Copies(NamedTuple):
    """Paths to which the whole source, and the pairs that are kept, are written back; None: nowhere."""

    export: Path | None = None
    clean: Path | None = None

    @property
    def paths(self) -> list[Path]:
        return [path for path in self if path is not None]

    def check(self, source: PairSource) -> None:
        """**Raises:** ValueError for what cannot be written, before any work."""
        if self.export is not None and isinstance(source, ShardSource):
            raise ValueError(
                f"--export {self.export}: shards have no columns to add to; weights.npy, suspicion.npy and keep.npy in "
                "--out are in their order, and --clean writes shards without the pairs that are left out."
            )
        for option, path in (("--export", self.export), ("--clean", self.clean)):
            if path is not None:
                check_copy(source, path, option)
        if (
            self.export is not None
            and self.clean is not None
            and self.export.resolve() == self.clean.resolve()
        ):
            raise ValueError(f"--export and --clean both name {self.export}: give two names.")

    def write(self, source: PairSource, model: RewardModel, tell: Tell) -> None:
        """Both copies, or none."""
        keep = kept(model)
        weight, suspicion = np.asarray(model.weights), np.asarray(model.suspicion)
        beside = isinstance(source, ShardSource)
        added = {"weights" if beside else "weight": weight, "suspicion": suspicion}
        with contextlib.ExitStack() as whole:
            for doing, path, more, rows in (
                ("export", self.export, {"keep": keep}, np.ones_like(keep)),
                ("clean", self.clean, {}, keep),
            ):
                if path is not None:
                    place = whole.enter_context(whole_copy(source, path))
                    copy_to(source, place, added | more, rows, lambda *at, of=doing: tell(of, *at))
