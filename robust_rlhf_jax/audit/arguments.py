"""What `robust-rlhf audit` and `robust-rlhf describe` take: how the file is read, once, and what is done with it."""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

import tyro

from robust_rlhf_jax.io import Columns


@dataclasses.dataclass(frozen=True)
class ReadingArguments:
    """How a preference file is read.

    Args:
        chosen: column of the preferred side, or of the first side where a label decides.
        rejected: column of the other side.
        prompt: column of the prompt.
        label: column that says which side won; "none" if the first side always won.
        first_is: the label that means the first side, where words do not tell.
        rater: column of who labelled each pair.
        weight: column of how much each pair counts.
        tie: column that says whether a pair is a tie.
        pair_id: column that names the pair; several rows of one are judgements of several raters.
        scale: the numbers of the label at which the first and the second side are surest; the middle is a tie.
        tie_is: the label that means a tie, where words do not tell.
        ranking: whether a list called ranking holds the rank of each answer or the answers in order.
        features: what features are made of.
        embeddings: two .npy files, chosen and rejected, to be used as features.
        skip_bad: unusable rows to go on without: a count, or below 1 a share.
        split: which split of a data set that has several.
        encoding: of a text file that is not in UTF-8.
    """

    chosen: str | None = None
    rejected: str | None = None
    prompt: str | None = None
    label: str | None = None
    first_is: str | None = None
    rater: str | None = None
    weight: str | None = None
    tie: str | None = None
    pair_id: str | None = None
    scale: tuple[float, float] | None = None
    tie_is: str | None = None
    ranking: Literal["ranks", "order"] | None = None
    features: Literal["auto", "numeric", "embeddings", "texts", "scores"] = "auto"
    embeddings: tuple[Path, Path] | None = None
    skip_bad: float = 0
    split: str | None = None
    encoding: str | None = None

    def reading(self, **rest):
        """The `Reading` that these flags mean, with the `rest` of its fields."""
        from .command import Reading

        columns = Columns(
            self.chosen, self.rejected, self.prompt, self.label, self.first_is, self.rater, self.weight, self.tie,
            self.pair_id, self.scale, self.tie_is, self.ranking,
        )  # fmt: skip
        own = ("features", "embeddings", "skip_bad", "split", "encoding")
        return Reading(columns, **{name: getattr(self, name) for name in own}, **rest)


Read = Annotated[ReadingArguments, tyro.conf.arg(name="")]


@dataclasses.dataclass(frozen=True)
class AuditArguments:
    """Fit plain and robust reward models to a preference file, and say what is wrong with which pairs.

    Args:
        source: a file (CSV, JSON, Parquet, Arrow, arrays; texts also compressed), a folder, a pattern such as
            "data/*.parquet", or "rail", the bundled real choices.
        epsilon: largest fraction of pairs that may be corrupt; decided from the evidence if not given.
        inject: corrupt this known fraction of the labels first, and report precision and recall.
        injection: which labels to flip: the most confident ones or random ones.
        estimator: the robust fit; see docs/audit.md for the choices and what they measured.
        folds: parts of the cross-validation.
        repeats: times that the cross-validation is repeated with other parts; 5 for small files, else 1, if not given.
        seed: of parts and injection.
        top: suspicious pairs to print.
        out: folder for audit.html, suspects.csv, audit.json and suspicion.png.
        read: how the file is read.
        featuriser: how texts become features: hashed, format, or the folder of a local model.
        truncate: words of prompt and response that a trainer keeps.
        export: write the file back with suspicion, keep, suggested_label, weight and margin.
        clean: write the file back without the pairs to drop.
        head: write the reward as .safetensors.
        fail_if: shares that end the command with status 3, such as "corrupt>0.05" or "identical>1%".
        dry_run: print what would be read, with three pairs, and stop.
    """

    source: tyro.conf.Positional[str]
    epsilon: float | None = None
    inject: float = 0.0
    injection: Literal["flip_confident", "flip_random"] = "flip_confident"
    estimator: str = "fit_reward"
    folds: int = 5
    repeats: int | None = None
    seed: int = 0
    top: int = 10
    out: Path | None = None
    read: Read = ReadingArguments()
    featuriser: str = "hashed"
    truncate: int = 512
    export: Path | None = None
    clean: Path | None = None
    head: Path | None = None
    fail_if: tuple[str, ...] = ()
    dry_run: bool = False

    def run(self) -> None:
        from .command import Writing, run_audit

        reading = self.read.reading(featuriser=self.featuriser, truncate=self.truncate)
        if self.dry_run:
            reading.describe(self.source)
            return
        names = ("epsilon", "inject", "injection", "estimator", "folds", "repeats", "seed", "top", "out")
        writing = Writing(None, self.export, self.clean, self.head, self.fail_if)
        options = {name: getattr(self, name) for name in names}
        run_audit(self.source, **options, reading=reading, writing=writing)


@dataclasses.dataclass(frozen=True)
class DescribeArguments:
    """Say what an audit would read of a preference file, with three pairs side by side.

    Args:
        source: a file, a folder, or a pattern such as "data/*.parquet".
        read: how the file is read.
    """

    source: tyro.conf.Positional[str]
    read: Read = ReadingArguments()

    def run(self) -> None:
        self.read.reading(featuriser="format").describe(self.source)
