"""The settings of an audit: how to fit (`AuditConfig`), how to read (`Reading`), where to write (`Writing`)."""

import dataclasses
from pathlib import Path
from typing import Any, Literal

from robust_rlhf_jax.collected import told_in_help
from robust_rlhf_jax.io import Columns, Pairs
from robust_rlhf_jax.io.exports import check_export
from robust_rlhf_jax.rewards.registry import DEFAULT, ESTIMATORS, needs_epsilon
from robust_rlhf_jax.unfinished import check_file

from .fail_if import SHARES, check_name
from .issues import ISSUES, TRUNCATED_AT

DEFAULT_EPSILON = 0.1
# The advice is to drop pairs only if this confidence interval of the gain lies above 0. Where nothing is gained, that
# happens by chance in about 1 of 40 files.
GAIN_CONFIDENCE = 0.95
# A pair of a training fold is scored without its own fold and without the held-out one: a third must be left to fit.
FEWEST_FOLDS = 3
# Raters are asked again about kept pairs whose label is likelier corrupted than honest: where that is less likely, a
# new label would more often confirm the old one than not.
ASK_FROM = 0.5
# Pairs that decide between two rewards, as many as `RewardModel.deciding` lists.
MOST_DECIDING = 20


@told_in_help({"names in `ESTIMATORS`": ESTIMATORS})
@dataclasses.dataclass(frozen=True)
class AuditConfig:
    """What is fitted, and how often.

    Args:
        epsilon: the largest share of the pairs that may be corrupt; decided from the evidence if not given.
        inject: flip this share of the labels first, and report precision and recall.
        injection: which labels to flip: the most confident ones or random ones.
        estimator: the robust fit, one of: names in `ESTIMATORS`; docs/do_no_harm.md compares them.
        folds: number of parts of the cross-validation.
        repeats: runs of the cross-validation, each with other parts; if not given, 5 for small files, else 1.
        seed: seed of the parts and of the flips.
        featuriser: how texts become features: hashed, format, or the folder of a local model.
        truncate: number of words of prompt and response that a trainer keeps.
    """

    epsilon: float | None = None
    inject: float = 0.0
    injection: Literal["flip_confident", "flip_random"] = "flip_confident"
    estimator: str = DEFAULT
    folds: int = 5
    repeats: int | None = None
    seed: int = 0
    featuriser: str = "hashed"
    truncate: int = TRUNCATED_AT

    def settled(self, usual_repeats: int) -> "AuditConfig":
        """The configuration with the usual repeats, and with the injected share as ε of estimators that need one."""
        epsilon = self.epsilon
        if epsilon is None and needs_epsilon(self.estimator):
            epsilon = self.inject or DEFAULT_EPSILON
        repeats = usual_repeats if self.repeats is None else self.repeats
        return dataclasses.replace(self, epsilon=epsilon, repeats=repeats)

    def fitting(self) -> dict[str, Any]:
        """The arguments of `audit`."""
        names = ("epsilon", "inject", "injection", "estimator", "folds", "repeats")
        return {name: getattr(self, name) for name in names}


@dataclasses.dataclass(frozen=True)
class Reading(Columns):
    """How a preference file is read: its columns, and:

    Args:
        features: what features are made of.
        embeddings: two .npy files, chosen and rejected, to be used as features.
        skip_bad: how many unusable rows are skipped at most: a count, or a share if below 1.
        split: the split to read, of a data set that has several.
        encoding: the encoding of a text file that is not in UTF-8.
    """

    features: Literal["auto", "numeric", "embeddings", "texts", "scores"] = "auto"
    embeddings: tuple[Path, Path] | None = None
    skip_bad: float = 0
    split: str | None = None
    encoding: str | None = None

    def options(self) -> dict[str, Any]:
        """The arguments of `load_pairs` and `describe`."""
        return {"columns": self} | {name: getattr(self, name) for name in Reading.__annotations__}


@dataclasses.dataclass(frozen=True)
class Writing:
    """Where results go.

    Args:
        out: folder for audit.html, suspects.csv, ask.csv, audit.json, suspicion.png; with raters, raters.csv.
        export: write the file back with suspicion, keep, suggested_label, weight and margin.
        clean: write the file back without the pairs to drop.
        drop_raters: leave out of --clean all pairs of raters whose labels look random, contrary, or a habit.
        head: write the reward as .safetensors.
        fail_if: conditions that end the command with status 3, such as "corrupt>0.05" or "identical>1%".
    """

    out: Path | None = None
    export: Path | None = None
    clean: Path | None = None
    drop_raters: bool = False
    head: Path | None = None
    fail_if: tuple[str, ...] = ()

    def files(self, of_folder: tuple[str, ...]) -> list[Path]:
        """All files that are written; `of_folder`: the names of those in `out`."""
        found = [] if self.out is None else [self.out / name for name in of_folder]
        return found + [path for path in (self.export, self.clean, self.head) if path is not None]

    def check_conditions(self) -> None:
        """**Raises:** ValueError for a `fail_if` that cannot be parsed, or that names a share which no audit has."""
        for condition in self.fail_if:
            check_name(condition, (*ISSUES, *SHARES))

    def check(self, pairs: Pairs, inject: float) -> None:
        """**Raises:** ValueError for what cannot be written, before any work."""
        self.check_conditions()
        for option, path in (("--export", self.export), ("--clean", self.clean)):
            if path is not None:
                check_export(pairs, path, option)
        if self.drop_raters and self.clean is None:
            raise ValueError("--drop-raters leaves pairs out of the file that --clean names: give --clean.")
        if self.drop_raters and pairs.raters is None:
            raise ValueError(
                "--drop-raters: the file does not say who labelled the pairs: name the column by --rater."
            )
        if self.head is not None and self.head.suffix != ".safetensors":
            raise ValueError(f"--head {self.head}: give a name that ends in .safetensors.")
        if self.head is not None:
            check_file("--head", self.head)
        if self.export and self.clean and self.export.resolve() == self.clean.resolve():
            raise ValueError(f"--export and --clean both name {self.export}: give two names.")
        if inject and (self.export or self.clean or self.head or self.fail_if):
            raise ValueError(
                f"inject={inject} corrupts labels on purpose: leave --export, --clean, --head and --fail-if out."
            )
