"""The files that an audit leaves in its folder: suspects.csv, ask.csv, audit.json, suspicion.png, audit.html."""

import csv
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.outputs import write_json
from robust_rlhf_jax.spreadsheets import without_formula
from robust_rlhf_jax.terminal import harmless

from . import plot
from .ask_pairs import write_ask
from .audited_file import AuditedFile
from .findings import Findings
from .pair_check import pair_check
from .pair_columns import shown_of
from .raters_of_file import RatersOfFile
from .record import audit_record
from .result import AuditResult
from .terminal_tables import worst_first

SUSPECTS, ASK, RECORD, PICTURE, PAGE = "suspects.csv", "ask.csv", "audit.json", "suspicion.png", "audit.html"
FILES = (SUSPECTS, ASK, RECORD, PICTURE, PAGE)
# Written if the file says who labelled the pairs.
RATERS = "raters.csv"


def files_of(raters: RatersOfFile | None) -> tuple[str, ...]:
    """The names of all files that an audit leaves."""
    return FILES if raters is None or raters.table is None else (*FILES, RATERS)


def write_files(folder: Path, audited: AuditedFile) -> None:
    """All of `files_of(audited.raters)`; a page without findings tells of the fits alone."""
    from .page import render_audit

    raters, inject = audited.raters, audited.config.inject
    title = harmless(Path(audited.source).name) + (f", {inject:.0%} of labels flipped" if inject else "")
    _write_suspects(folder / SUSPECTS, audited)
    write_ask(folder / ASK, audited.findings, audited.advice)
    if raters is not None and raters.table is not None:
        raters.table.save(folder / RATERS)
    record = audit_record(audited)
    write_json(folder / RECORD, record)
    flagged = _flagged(audited.pairs, audited.result, audited.findings)
    plot.plot_suspicion(audited.result, folder / PICTURE, f"Suspicion of each pair: {title}", flagged)
    page = render_audit(audited, record, title)
    (folder / PAGE).write_text(page, encoding="utf-8", errors="backslashreplace")


def _write_suspects(path: Path, audited: AuditedFile):
    """All pairs that were fitted, worst first; rows count from 1, and the differences are preferred − other. What finds
    a pair in the file, and the beginnings of its texts, come before the differences.

    With an advice the file is one of decisions (`page_decisions.py`): the advice, until someone edits them.
    """
    pairs, result, findings, advice = audited.pairs, audited.result, audited.findings, audited.advice
    header = [] if advice is None else ["pair", "decision"]
    header += ["row", "suspicion", "margin", "label", "flagged", "injected"]
    shown = shown_of(pairs)
    header += [] if findings is None else ["reason"]
    header += [] if advice is None else ["check"]
    header += [*shown]
    header += [without_formula(f"preferred_minus_other_{n}") for n in pairs.names]
    places, flagged = np.flatnonzero(pairs.fitted), _flagged(pairs, result, findings)
    dropped = set() if advice is None else set(advice.drop.tolist())
    with open(path, "w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for i in worst_first(result):
            place = int(places[i])
            turn = -1 if pairs.swapped[place] else 1
            decision = [] if advice is None else [place + 1, "drop" if place in dropped else "keep"]
            why = [] if findings is None else [without_formula(findings.reason(place))]
            why += [] if advice is None else [pair_check(pairs, place)]
            writer.writerow(
                [
                    *decision,
                    pairs.rows[place] + 1,
                    f"{result.suspicion[i]:.6g}",
                    f"{result.robust.margins[i]:.6g}",
                    turn * int(result.labels[i]),
                    int(flagged[i]),
                    int(result.injected[i]),
                    *why,
                    *(column[place] for column in shown.values()),
                    *(f"{v:.6g}" for v in result.labels[i] * result.differences[i] + 0.0),
                ]
            )


def _flagged(pairs: Pairs, result: AuditResult, findings: Findings | None) -> Bool[np.ndarray, " M"]:
    """The flags of the fitted pairs: the ⌊εN⌋ most suspicious if ε is given, else those that have an issue."""
    if findings is None or result.epsilon != result.evidence:
        return result.flagged
    return np.any([issue.flag for issue in findings.issues.values()], axis=0)[pairs.fitted]
