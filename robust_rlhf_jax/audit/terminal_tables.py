"""What an audit prints: a few lines, two or three tables."""

from pathlib import Path
from typing import Any

import numpy as np

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.kernels.ranking import highest_first
from robust_rlhf_jax.terminal import beginning, counted, harmless, marked

from .advice import Advice
from .ask_pairs import ask_sides
from .audited_file import AuditedFile
from .config import AuditConfig
from .findings import Findings
from .result import AuditResult

# Characters of a reason and of a side of a pair.
SHOWN_REASON, SHOWN_SIDE = 180, 60


def audit_warnings(result: AuditResult) -> list[str]:
    """One sentence for each thing that makes the figures doubtful."""
    n, k = result.differences.shape
    fits = (result.plain, result.robust)
    status, at_radius = np.stack([f.status for f in fits]), np.stack([f.at_radius for f in fits])
    failed = ~np.isin(status, (Status.CONVERGED, Status.SEPARABLE))  # separable ones are at the bound
    bound = int(at_radius.sum())
    found = []
    if n < k:
        found.append(f"There are fewer pairs ({n}) than features ({k}): held-out figures mean little.")
    if result.rank < k:
        found.append(
            f"The differences span {result.rank} of {k} dimensions: along {k - result.rank} the data say nothing."
        )
    if bound:
        found.append(
            f"In {bound} of {at_radius.size} fits a reward predicts all, or nearly all, labels of its pairs: only a "
            "bound keeps it finite."
        )
    if failed.any():
        names = ", ".join(
            Status(int(code)).name.lower().replace("_", " ") for code in np.unique(status[failed])
        )
        found.append(f"{failed.sum()} of {status.size} fits did not end well ({names}).")
    return found


def worst_first(result: AuditResult) -> np.ndarray:
    """Row indices [N] in the order of falling suspicion; ties in the order of the data."""
    return highest_first(result.suspicion)


def print_advice(console: Any, findings: Findings, advice: Advice, top: int) -> None:
    """What to do, why, by which command, and `top` of the pairs to ask raters about."""
    console.print(f"[bold]Advice:[/] {marked(advice.sentences[0])}")
    for sentence in advice.sentences[1:]:
        console.print(marked(sentence))
    for what, command in advice.commands:
        console.print(f"{marked(what)}:", style="dim")
        console.print(f"  {marked(command)}", soft_wrap=True, highlight=False)
    if len(advice.ask) and top:
        console.print(_ask_table(findings, advice, top))


def _ask_table(findings: Findings, advice: Advice, top: int):
    """Both sides of the pairs to ask about; where two rewards stand, what each expects of the label."""
    from rich.table import Table

    sides = ask_sides(findings, advice)
    table = Table("row", *sides[0].columns, title="Pairs to ask raters about", title_justify="left")
    for one in sides[:top]:
        table.add_row(str(one.row), *(_cell(cell, SHOWN_SIDE) for cell in one.cells))
    return table


def _cell(text: str, length: int) -> str:
    """For rich's markup, which would take "[red]" for a colour."""
    from rich.markup import escape

    return escape(beginning(text, length))


def print_written(files: list[Path]) -> None:
    """A line with every file that was written."""
    if files:
        print(f"Wrote {', '.join(harmless(path) for path in files)}.")


def print_fits(console: Any, audited: AuditedFile, top: int) -> None:
    """Held-out figures of the plain and the robust fit, and the pairs of tables that look corrupt."""
    pairs, result, config = audited.pairs, audited.result, audited.config
    n, k = result.differences.shape
    flipped = f", {int(result.injected.sum()):,} labels flipped" if config.inject else ""
    took = f"{audited.seconds:.1f} s"
    console.print(
        f"{marked(audited.source)}: {counted(n, 'pair')}{flipped}; rank {result.rank} of {k}; {took}"
    )
    for sentence in audit_warnings(result):
        console.print(f"[yellow]Warning:[/] {sentence}")
    console.print(_accuracy_table(result, config))
    console.print(f"robust − plain accuracy: {result.gain:+.3f} ± {result.gain_error:.3f}")
    if config.inject:
        precision = f"precision {result.precision:.3f}, " if result.flagged.any() else ""
        console.print(
            f"flagged {int(result.flagged.sum()):,}: {precision}recall {result.recall:.3f}, "
            f"average precision {result.average_precision:.3f}"
        )
    if top and pairs.texts is None:
        console.print(_suspects_table(result, pairs.decided(), top))


def print_findings(console: Any, findings: Findings, top: int) -> None:
    """Counts of issues, the file's ε, and for texts the most suspicious pairs with their reasons."""
    from rich.table import Table

    table = Table("issue", "flagged", "what it means", title="Issues", title_justify="left")
    for name, issue in findings.issues.items():
        if issue.flag.any():
            table.add_row(marked(name), f"{int(issue.flag.sum()):,}", marked(issue.summary))
    console.print(table if table.row_count else "No issue was found.")
    for sentence in findings.summary.likely[-1:]:
        console.print(sentence)
    if findings.held_out.audit.contention is not None:
        console.print(f"[yellow]Warning:[/] {findings.held_out.audit.contention.sentence}")
    pairs = findings.pairs
    if pairs.n_skipped:
        console.print(f"[yellow]Warning:[/] {pairs.n_skipped:,} unusable rows were skipped.")
    if pairs.unused:
        console.print(f"Not used: {marked(', '.join(list(pairs.unused)[:12]))}.")
    if pairs.texts is not None and top and len(findings.worst()):
        console.print(_reasons_table(findings, top))


def _reasons_table(findings: Findings, top: int):
    from rich.table import Table

    table = Table(
        "row", "suspicion", "why", title="Flagged pairs, most suspicious first", title_justify="left"
    )
    for i in findings.worst()[:top]:
        row = str(findings.pairs.rows[i] + 1)
        reason = _cell(findings.reason(i), SHOWN_REASON)
        table.add_row(row, f"{findings.verdicts.suspicion[i]:.2f}", reason)
    return table


def _accuracy_table(result: AuditResult, config: AuditConfig):
    from rich.table import Table

    labels = "before the flips" if config.inject else "as in the file"
    title = f"Held-out labels {labels} ({config.folds} folds × {config.repeats}; ± one standard error)"
    table = Table("fit", "accuracy", "log-loss", title=title, title_justify="left")
    told = "ε from evidence" if config.epsilon is None else f"ε = {config.epsilon:g}"
    for name, fit in (("plain", result.plain), (f"robust ({config.estimator}, {told})", result.robust)):
        table.add_row(
            name,
            f"{fit.accuracy:.3f} ± {fit.accuracy_error:.3f}",
            f"{fit.log_loss:.3f} ± {fit.log_loss_error:.3f}",
        )
    return table


def _suspects_table(result: AuditResult, pairs: Pairs, top: int):
    from rich.table import Table

    shown = [marked(name) for name in pairs.names[:8]]
    table = Table(title="Pairs that look corrupt, worst first (preferred − other)", title_justify="left")
    for column in ("row", "suspicion", *shown, *(["injected"] if result.injected.any() else [])):
        table.add_column(column, justify="right")
    for i in worst_first(result)[:top]:
        x = result.labels[i] * result.differences[i] + 0.0  # no −0
        mark = ["yes" if result.injected[i] else "no"] if result.injected.any() else []
        row = str(pairs.rows[i] + 1)
        table.add_row(row, f"{result.suspicion[i]:.2f}", *(f"{v:+.3g}" for v in x[: len(shown)]), *mark)
    return table
