"""The files that the audit of a source leaves in its folder."""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from robust_rlhf_jax.outputs import environment, write_json
from robust_rlhf_jax.sources import PairSource
from robust_rlhf_jax.spreadsheets import without_formula

from .source_audit import SourceAudit
from .source_page import render_source
from .source_raters import SourceRater

SUSPECTS, RECORD, PAGE = "suspects.csv", "audit.json", "audit.html"
FILES = (SUSPECTS, RECORD, PAGE)
# Written if the source names its raters.
RATERS = "raters.csv"
# So many suspects are listed, or all that are left out if those are more.
LISTED = 1_000
# Explanations with less probability are not listed, except maximum likelihood on all pairs.
BELIEVED = 0.001


def files_of(found: SourceAudit) -> tuple[str, ...]:
    """The names of all files."""
    return (*FILES, RATERS) if found.raters else FILES


def write_source_files(
    folder: Path, source: PairSource, found: SourceAudit, title: str, command: str, seconds: float
) -> None:
    """All of `files_of(found)`."""
    record = source_record(source, found, title, seconds)
    raters = getattr(source, "raters", None) if found.raters else None
    _write_suspects(folder / SUSPECTS, found, record["suspects"], raters)
    if found.raters:
        _write_raters(folder / RATERS, found)
    write_json(folder / RECORD, record)
    page = render_source(found, record, title, command, raters)
    (folder / PAGE).write_text(page, encoding="utf-8", errors="backslashreplace")


def source_record(source: PairSource, found: SourceAudit, name: str, seconds: float) -> dict[str, Any]:
    """What `audit.json` holds."""
    model, explained = found.model, found.model.explanations
    kept = int(found.keep.sum())
    rows = zip(explained.probability, explained.needed, explained.differs, strict=True)
    return {
        "source": name,
        "pairs": source.n_pairs,
        "features": source.n_features,
        "fingerprint": source.fingerprint(),
        "share_left_out": float(model.epsilon),
        "interval": [float(end) for end in model.interval],
        "kept": kept,
        "suspects": min(source.n_pairs, max(LISTED, source.n_pairs - kept)),
        **{what: int(mask.sum()) for what, mask in found.look._asdict().items()},
        "raters": len(found.raters),
        "explanations": [
            {
                "believed": float(believed),
                "needed": float(needed),
                "differs": float(differs),
                "likeliest": number == explained.likeliest,
            }
            for number, (believed, needed, differs) in enumerate(rows)
            if number in (0, explained.likeliest) or believed >= BELIEVED
        ],
        "said": found.sentences(),
        "not_done": found.not_done(),
        "seconds": seconds,
        "environment": environment(),
    }


def _write_suspects(path: Path, found: SourceAudit, count: int, raters: Any) -> None:
    """The most suspicious pairs, and all that are left out; `index` counts from 0."""
    weights, suspicion = np.asarray(found.model.weights), np.asarray(found.model.suspicion)
    with open(path, "w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["index", "suspicion", "weight", "margin", "kept", *([] if raters is None else ["rater"])]
        )
        for i in found.worst()[:count].tolist():
            who = [] if raters is None else [without_formula(str(raters[i]))]
            numbers = (f"{v:.6g}" for v in (suspicion[i], weights[i], found.margins[i]))
            writer.writerow([i, *numbers, int(found.keep[i]), *who])


def _write_raters(path: Path, found: SourceAudit) -> None:
    with open(path, "w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file)
        writer.writerow(SourceRater._fields)
        for name, pairs, *shares in found.raters:
            writer.writerow([without_formula(name), pairs, *(f"{share:.6g}" for share in shares)])
