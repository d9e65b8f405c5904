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
from .advice import Advice
from .ask_pairs import write_ask
from .config import AuditConfig
from .findings import Findings
from .pair_check import pair_check
from .raters_of_file import RatersOfFile
from .record import audit_record
from .result import AuditResult
from .terminal_tables import worst_first

SUSPECTS, ASK, RECORD, PICTURE, PAGE = "suspects.csv", "ask.csv", "audit.json", "suspicion.png", "audit.html"
FILES = (SUSPECTS, ASK, RECORD, PICTURE, PAGE)
# Of a file that says who labelled the pairs.
RATERS = "raters.csv"


def files_of(raters: RatersOfFile | None) -> tuple[str, ...]:
    """The names of all files that an audit leaves."""
    return FILES if raters is None or raters.table is None else (*FILES, RATERS)


def write_files(
    folder: Path,
    source: str,
    pairs: Pairs,
    result: AuditResult,
    findings: Findings | None,
    config: AuditConfig,
    seconds: float,
    advice: Advice | None = None,
    raters: RatersOfFile | None = None,
) -> None:
    """All of `files_of(raters)`; a page without `findings` tells of the fits alone."""
    from .page import render_audit

    corrupted = f", {config.inject:.0%} of labels flipped" if config.inject else ""
    name = harmless(Path(source).name)
    _write_suspects(folder / SUSPECTS, pairs, result, findings, advice)
    write_ask(folder / ASK, findings, advice)
    if raters is not None and raters.table is not None:
        raters.table.save(folder / RATERS)
    record = audit_record(source, pairs, result, findings, config, seconds, advice, raters)
    write_json(folder / RECORD, record)
    plot.plot_suspicion(result, folder / PICTURE, f"Suspicion of each pair: {name}{corrupted}")
    page = render_audit(
        pairs, result, findings, record, title=f"{name}{corrupted}", advice=advice, raters=raters
    )
    (folder / PAGE).write_text(page, encoding="utf-8", errors="backslashreplace")


def _write_suspects(
    path: Path, pairs: Pairs, result: AuditResult, findings: Findings | None, advice: Advice | None
):
    """All pairs that were fitted, worst first; rows count from 1, and the differences are preferred − other.

    With an `advice` the file is one of decisions (`page_decisions.py`): the advice, until someone edits them.
    """
    header = [] if advice is None else ["pair", "decision"]
    header += ["row", "suspicion", "margin", "label", "flagged", "injected"]
    header += [] if findings is None else ["reason"]
    header += [] if advice is None else ["check"]
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
                    *(f"{v:.6g}" for v in result.labels[i] * result.differences[i] + 0.0),
                ]
            )


def _flagged(pairs: Pairs, result: AuditResult, findings: Findings | None) -> Bool[np.ndarray, " M"]:
    """Of the pairs that were fitted: the ⌊εN⌋ most suspicious where ε is told, else those that have an issue."""
    if findings is None or result.epsilon != result.evidence:
        return result.flagged
    return np.any([issue.flag for issue in findings.issues.values()], axis=0)[pairs.fitted]
