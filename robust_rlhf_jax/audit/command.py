"""`audit` as a command: read, fit, find, print, write."""

import contextlib
import dataclasses
import time
from pathlib import Path

import jax
import numpy as np

from robust_rlhf_jax.checks import check_seed
from robust_rlhf_jax.io import Columns, Pairs, RewardHead
from robust_rlhf_jax.io.exports import check_export, whole_export, write_rows
from robust_rlhf_jax.outputs import whole_folder
from robust_rlhf_jax.terminal import harmless
from robust_rlhf_jax.unfinished import whole_path

from .cross_fit import DEFAULT_ESTIMATOR, audit
from .fail_if import ThresholdCrossed, check_thresholds, parse_threshold
from .files import FILES, write_files
from .findings import Findings, find
from .held_out import MOST_ROWS, as_data, fitted_rows, groups_of, held_out, usual_repeats
from .issues import TRUNCATED_AT
from .result import AuditResult, FitOverflow
from .source import describe_source, read_source
from .terminal_tables import audit_warnings, evidence, print_findings, print_fits, worst_first

DEFAULT_EPSILON = 0.1
__all__ = ["FILES", "Reading", "Writing", "audit_warnings", "run_audit", "worst_first"]


@dataclasses.dataclass(frozen=True)
class Reading:
    """How the source is read: the arguments of `load_pairs`, and `truncate`, words that a trainer keeps."""

    columns: Columns = dataclasses.field(default_factory=Columns)
    features: str = "auto"
    featuriser: str = "hashed"
    embeddings: tuple[Path, Path] | None = None
    skip_bad: float = 0
    truncate: int = TRUNCATED_AT
    split: str | None = None
    encoding: str | None = None

    def pairs(self, source: str) -> Pairs:
        return read_source(source, self.columns, featuriser=self.featuriser, **self._options())

    def describe(self, source: str) -> None:
        """Print what would be read, with three pairs.

        **Raises:** as `describe_source`.
        """
        print(
            "\n".join(
                harmless(line)
                for line in str(describe_source(source, self.columns, **self._options())).split("\n")
            )
        )

    def _options(self) -> dict:
        names = ("features", "embeddings", "skip_bad", "split", "encoding")
        return {name: getattr(self, name) for name in names}


@dataclasses.dataclass(frozen=True)
class Writing:
    """Where results go: `out`, a folder; `export`, the file with columns more; `clean`, the file without what is
    dropped; `head`, the reward as safetensors; `fail_if`: shares that end the command with status 3.
    """

    out: Path | None = None
    export: Path | None = None
    clean: Path | None = None
    head: Path | None = None
    fail_if: tuple[str, ...] = ()

    def check(self, pairs: Pairs, inject: float) -> None:
        """**Raises:** ValueError for what cannot be written, before any work."""
        for condition in self.fail_if:
            parse_threshold(condition)
        for option, path in (("--export", self.export), ("--clean", self.clean)):
            if path is not None:
                check_export(pairs, path, option)
        if self.head is not None and self.head.suffix != ".safetensors":
            raise ValueError(f"--head {self.head}: give a name that ends in .safetensors.")
        if self.head is not None and not self.head.absolute().parent.is_dir():
            raise ValueError(
                f"--head {self.head}: the folder {self.head.parent} does not exist: make it first."
            )
        if self.export and self.clean and self.export.resolve() == self.clean.resolve():
            raise ValueError(f"--export and --clean both name {self.export}: give two names.")
        if inject and (self.export or self.clean or self.head or self.fail_if):
            raise ValueError(
                f"inject={inject} corrupts labels on purpose: leave --export, --clean, --head and --fail-if out."
            )


def run_audit(
    source: str,
    *,
    epsilon: float | None = None,
    inject: float = 0.0,
    injection: str = "flip_confident",
    estimator: str = DEFAULT_ESTIMATOR,
    folds: int = 5,
    repeats: int | None = None,
    seed: int = 0,
    top: int = 10,
    out: Path | None = None,
    reading: Reading | None = None,
    writing: Writing | None = None,
) -> Findings | None:
    """Audit `source` ("rail" or a file), print what was found, and write it where `out` and `writing` say.

    Without `epsilon` "fit_reward" decides it from the evidence; other estimators are told `inject` where that is
    positive, else 0.1. `repeats`: None for 5 on small files and 1 on others. `top`: how many suspicious pairs to print.
    The files appear in `out` together or not at all: they are written apart and moved at the end. Where labels are
    flipped on purpose (`inject`) the fits are compared and no findings are told.

    **Raises:** FileNotFoundError, or ValueError in one sentence, for a bad file or a bad option; ImportError
    without the extra `cli`; ThresholdCrossed, after all is written, where `fail_if` says so.
    """
    if top < 0:
        raise ValueError(f"top={top} is negative: give the number of suspicious pairs to print.")
    check_seed(seed)
    reading, writing = reading or Reading(), dataclasses.replace(writing or Writing(), out=out)
    if epsilon is None and estimator != DEFAULT_ESTIMATOR:
        epsilon = inject or DEFAULT_EPSILON
    began = time.perf_counter()
    pairs = reading.pairs(source)
    writing.check(pairs, inject)
    # What cannot be printed now is told after the results are written, when printing them fails, too.
    with contextlib.suppress(OSError):
        _print_understood(pairs)
    rows = fitted_rows(pairs)
    config = {
        "source": source, "epsilon": epsilon, "inject": inject, "injection": injection, "estimator": estimator,
        "folds": folds, "repeats": usual_repeats(pairs) if repeats is None else repeats, "seed": seed,
    }  # fmt: skip
    # Opened first: that a folder cannot be written is said now, not after a minute of work.
    with contextlib.nullcontext() if out is None else whole_folder(out, FILES) as folder:
        try:
            result = _run_with_progress(as_data(pairs, rows), groups_of(pairs, rows), config)
        except FitOverflow as error:
            raise ValueError(f"{source}: {error}") from None
        findings = None if inject else find(pairs, held_out(pairs, rows, result), truncate=reading.truncate)
        seconds = time.perf_counter() - began
        if folder is not None:
            write_files(folder, pairs, rows, result, findings, config, seconds)
    _print(pairs, rows, result, findings, config, top, seconds)
    if findings is not None:
        _deliver(findings, writing)
    return findings


def _print_understood(pairs: Pairs) -> None:
    if pairs.description is not None:
        print("\n".join(harmless(line) for line in pairs.description.lines()), flush=True)


def _run_with_progress(data, groups, config: dict) -> AuditResult:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    options = {name: config[name] for name in ("folds", "repeats", "inject", "injection", "estimator")}
    # A bar in a file is nothing but a line's end, and one on a pipe that nobody reads would end the work.
    with Progress(*columns, transient=True, disable=not Console().is_terminal) as bar:
        task = bar.add_task("folds")
        return audit(
            jax.random.key(config["seed"]), data, config["epsilon"], **options, groups=groups, most=MOST_ROWS,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip


def _print(pairs, rows, result, findings, config, top, seconds) -> None:
    from rich.console import Console

    console = Console()
    print_fits(console, pairs, rows, result, config, top, seconds)
    if config["epsilon"] is None and (findings is None or findings.summary.epsilon == result.evidence):
        console.print(evidence(result))
    if findings is not None:
        print_findings(console, findings, top)


def _deliver(findings: Findings, writing: Writing) -> None:
    """Exports and the reward head, all of them or none; then the thresholds."""
    pairs, verdicts = findings.batch.pairs, findings.verdicts
    with contextlib.ExitStack() as whole:
        if writing.export is not None:
            write_rows(pairs, whole.enter_context(whole_export(pairs, writing.export)), verdicts.columns())
        if writing.clean is not None:
            write_rows(pairs, whole.enter_context(whole_export(pairs, writing.clean)), {}, keep=verdicts.keep)
        if writing.head is not None:
            reward_head(findings).write(whole.enter_context(whole_path(writing.head)))
    crossed = check_thresholds(writing.fail_if, findings.summary.shares)
    if crossed:
        raise ThresholdCrossed("; ".join(crossed) + ".")


def reward_head(findings: Findings) -> RewardHead:
    """The robust reward, mean over the fits, with what it needs to score new texts."""
    pairs, fit = findings.batch.pairs, findings.batch.fit
    facts = {
        "source": pairs.path.name, "pairs": pairs.n_pairs, "kept": int(np.sum(findings.verdicts.keep)),
        "epsilon": findings.summary.epsilon, "accuracy": float(fit.result.accuracy[1]),
        "log_loss": float(fit.result.log_loss[1]), "kind": pairs.kind,
    }  # fmt: skip
    return RewardHead(pairs.names, fit.theta[1], pairs.featuriser, facts)
