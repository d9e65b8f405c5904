"""`audit` as a command: read, fit, find, print, write."""

import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from robust_rlhf_jax.blas_threads import one_if_small
from robust_rlhf_jax.checks import check_seed
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.outputs import whole_folder
from robust_rlhf_jax.raters import Rater
from robust_rlhf_jax.terminal import flush_or_drop, harmless

from .advice import Advice, advise
from .advice_commands import Commands
from .audited_file import AuditedFile
from .by_passes.source_command import point_to_passes
from .by_passes.source_raters import SourceRater
from .config import AuditConfig, Reading, Writing
from .cross_fit import audit
from .delivery import deliver, warn_of_clean
from .files import FILES, RATERS, files_of, write_files
from .findings import Findings, find
from .held_out import MOST_ROWS, enough_pairs, held_out_pairs, usual_repeats
from .old_raters import remove_old_raters
from .progress import Tell, shown_steps
from .raters_of_file import RatersOfFile, rate_file
from .result import AuditResult, FitOverflow
from .source import describe_source, read_source
from .summary import evidence
from .terminal_tables import (
    audit_warnings,
    print_advice,
    print_findings,
    print_fits,
    worst_first,
)

__all__ = ["FILES", "Reading", "Writing", "audit_file", "audit_warnings", "run_audit", "worst_first"]


def run_audit(source: str, *, top: int = 10, out: Path | None = None, **options: Any) -> Findings | None:
    """`audit_file` with the fields of `AuditConfig` as `options`."""
    return audit_file(source, AuditConfig(**options), Reading(), Writing(out), top)


def audit_file(
    source: str, config: AuditConfig, reading: Reading, writing: Writing, top: int = 10
) -> Findings | None:
    """Audit `source` ("rail", "arguments" or a file), print what was found and `top` suspicious pairs, and write it.

    Without `epsilon` "fit_reward" decides it from the evidence; other estimators get `inject` where that is
    positive, else 0.1. The files appear in `writing.out` together or not at all: they are written apart and moved at
    the end. Where labels are flipped on purpose (`inject`) the fits are compared and no findings are reported.

    **Raises:** FileNotFoundError, or ValueError in one sentence, for a bad file or a bad option; ImportError
    without the extra `cli`; ThresholdCrossed, after all is written, where `fail_if` says so.
    """
    if top < 0:
        raise ValueError(f"top={top} is negative: give the number of suspicious pairs to print.")
    check_seed(config.seed)
    began = time.perf_counter()
    point_to_passes(source)
    with shown_steps() as step:
        step("reading")
        pairs = read_source(source, featuriser=config.featuriser, **reading.options())
    writing.check(pairs, config.inject)
    # What cannot be printed now is reported after the results are written, when printing them fails, too.
    with contextlib.suppress(OSError):
        _print_understood(pairs)
    audited = _audited(source, pairs, config.settled(usual_repeats(pairs)), reading, writing, began)
    findings, raters = audited.findings, audited.raters
    if writing.out is not None and RATERS not in files_of(raters):
        remove_old_raters(writing.out, Rater, SourceRater)
    _print(audited, top)
    for sentence in [] if raters is None else raters.sentences():
        print(sentence)
    for sentence in [] if raters is None or writing.drop_raters else raters.may_drop(pairs):
        print(sentence)
    warn_of_clean(audited.advice, writing)
    deliver(findings, writing, raters)
    return findings


def print_description(source: str, reading: Reading) -> None:
    """Print what would be read, with three pairs; a reader who has seen enough, such as `head`, may go.

    **Raises:** as `describe_source`.
    """
    text = "\n".join(map(harmless, str(describe_source(source, **reading.options())).split("\n")))
    try:
        print(text, flush=True)
    except BrokenPipeError:
        flush_or_drop(sys.stdout)


def _print_understood(pairs: Pairs) -> None:
    if pairs.description is not None:
        print("\n".join(harmless(line) for line in pairs.description.lines()), flush=True)


def _audited(
    source: str, pairs: Pairs, config: AuditConfig, reading: Reading, writing: Writing, began: float
) -> AuditedFile:
    """Fit, find, advise and rate; then write the files to `writing.out`, if it is given."""
    fitted = enough_pairs(pairs)
    commands = Commands.called(source, pairs, config, reading, writing)
    # Opened first: that a folder cannot be written is said now, not after a minute of work.
    opened = contextlib.nullcontext() if writing.out is None else whole_folder(writing.out, (*FILES, RATERS))
    with opened as folder, one_if_small(len(pairs.names)), shown_steps() as step:
        try:
            result = _fit(fitted, config, step("fits of held-out folds"))
            found = None if config.inject else _find(pairs, result, config, commands, step)
        except FitOverflow as error:
            raise ValueError(f"{source}: {error}") from None
        findings, advice = found or (None, None)
        raters = _rate(pairs, config, writing, step)
        seconds = time.perf_counter() - began
        audited = AuditedFile(source, pairs, result, config, seconds, findings, advice, raters)
        if folder is not None:
            step("writing")
            write_files(folder, audited)
    return audited


def _fit(pairs: Pairs, config: AuditConfig, tell: Tell) -> AuditResult:
    return audit(jax.random.key(config.seed), pairs, **config.fitting(), most=MOST_ROWS, progress=tell)


def _find(
    pairs: Pairs, result: AuditResult, config: AuditConfig, commands: Commands, step: Callable[[str], Tell]
) -> tuple[Findings, Advice]:
    step("issues")
    findings = find(pairs, held_out_pairs(pairs, result), truncate=config.truncate)
    return findings, advise(findings, config, commands=commands, progress=step("expected gain"))


def _rate(
    pairs: Pairs, config: AuditConfig, writing: Writing, step: Callable[[str], Tell]
) -> RatersOfFile | None:
    """The raters, where somebody wants to see them, to weigh by them or to leave some out."""
    wanted = writing.out or writing.export or writing.drop_raters
    if config.inject or pairs.raters is None or not wanted:
        return None
    step("raters")
    return rate_file(pairs)


def _print(audited: AuditedFile, top: int) -> None:
    from rich.console import Console

    console, findings, result = Console(), audited.findings, audited.result
    if findings is not None and audited.advice is not None:
        print_advice(console, findings, audited.advice, top)
    print_fits(console, audited, top)
    if audited.config.epsilon is None and (findings is None or findings.summary.epsilon == result.evidence):
        console.print(evidence(result, findings is not None and len(findings.worst()) > 0))
    if findings is not None:
        print_findings(console, findings, top)
