"""`audit.json`: what an audit found, under a schema with a version (`audit/schema/audit-1.json`).

`files.py` writes it.
"""

import dataclasses
import json
import math
from importlib import resources

from robust_rlhf_jax.outputs import environment

from .advice import advice_record
from .audited_file import AuditedFile
from .contention import Contention
from .findings import Findings
from .raters_of_file import RatersOfFile
from .result import FitScores
from .terminal_tables import audit_warnings

SCHEMA, VERSION = "robust_rlhf_jax.audit", 1


def schema() -> dict:
    """The JSON schema of the record.

    **Example:**

    >>> from robust_rlhf_jax.audit.record import schema
    >>> schema()["properties"]["version"]
    {'const': 1}
    """
    file = resources.files("robust_rlhf_jax.audit") / "schema" / f"audit-{VERSION}.json"
    return json.loads(file.read_text(encoding="utf-8"))


def audit_record(audited: AuditedFile) -> dict:
    """The record of an audit; without findings (labels were flipped on purpose) the parts about the file are null."""
    pairs, result, findings = audited.pairs, audited.result, audited.findings
    advice, raters = audited.advice, audited.raters
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "config": {"source": audited.source, **dataclasses.asdict(audited.config)},
        "environment": environment(),
        "seconds": round(audited.seconds, 3),
        "n_pairs": len(result.labels),
        "n_rows": pairs.n_rows,
        "format": pairs.format,
        "kind": pairs.kind,
        "features": list(pairs.names),
        "feature_words": {} if findings is None else findings.batch.feature_words,
        "unused_columns": dict(pairs.unused),
        "skipped_rows": [{"row": b.row + 1, "column": b.column, "reason": b.reason} for b in pairs.bad],
        "rank": result.rank,
        "contention": None if result.contention is None else _contention(result.contention),
        "warnings": audit_warnings(result),
        "plain": _one_fit(result.plain),
        "robust": _one_fit(result.robust),
        "gain": result.gain,
        "gain_error": result.gain_error,
        "epsilon": result.epsilon,
        "n_flagged": int(result.flagged.sum()),
        "n_injected": int(result.injected.sum()),
        "precision": _number(result.precision),
        "recall": _number(result.recall),
        "average_precision": _number(result.average_precision),
        "corrupt": None if findings is None else _corrupt(findings),
        "advice": None if advice is None else advice_record(advice, pairs.rows),
        "raters": None if raters is None else _raters(raters),
        "issues": None if findings is None else _issues(findings),
        "summary": None if findings is None else _sentences(findings),
    }


def _contention(found: Contention) -> dict:
    return {
        "fits": found.fits,
        "rewards": [
            {"theta": theta.tolist(), "probability": float(p), "needed": float(needed)}
            for theta, p, needed in zip(found.theta, found.probability, found.needed, strict=True)
        ],
    }


def _raters(found: RatersOfFile) -> dict:
    agreement = found.agreement
    return {
        "kinds": None if found.table is None else found.table.counts(),
        "not_rated": found.why_not,
        "agreement": None if agreement is None else dict(zip(agreement._fields, agreement, strict=True)),
    }


def _corrupt(findings: Findings) -> dict:
    low, high = findings.summary.interval
    return {"estimate": findings.summary.epsilon, "lower": low, "upper": high}


def _issues(findings: Findings) -> dict:
    return {
        name: {
            "flagged": int(issue.flag.sum()),
            "share": float(issue.flag.mean()),
            "dropped": int(issue.dropped.sum()),
            "certain": issue.certain,
            "summary": issue.summary,
        }
        for name, issue in findings.issues.items()
    }


def _sentences(findings: Findings) -> dict:
    found = findings.summary
    return {
        "certain": found.certain,
        "likely": found.likely,
        "unknown": found.unknown,
        "shares": found.shares,
        "kept": int(findings.verdicts.keep.sum()),
    }


def _one_fit(fit: FitScores) -> dict:
    return {
        "accuracy": fit.accuracy,
        "accuracy_error": fit.accuracy_error,
        "log_loss": fit.log_loss,
        "log_loss_error": fit.log_loss_error,
        "fold_accuracy": fit.fold_accuracy.tolist(),
        "theta": fit.theta.tolist(),
        "fits_at_radius": int(fit.at_radius.sum()),
    }


def _number(value: float):
    """JSON has no NaN: a figure that does not exist is null."""
    return None if math.isnan(value) else value
