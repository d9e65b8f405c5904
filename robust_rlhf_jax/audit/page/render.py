"""The page, from findings to HTML."""

from typing import Any

import numpy as np

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.kernels.ranking import highest_first
from robust_rlhf_jax.terminal import harmless

from ..findings import Findings
from ..issues import measure_raters
from ..result import AuditResult
from . import figures
from .contended import contended
from .effects import effects
from .one_pair import largest_differences, texts_of

# Pairs and texts that are shown: a page is read, not searched.
WORST, FLIPS, LONGEST_TEXT, RATERS = 30, 15, 1500, 40
# Rows of the differences that the effects are measured on.
MOST_ROWS = 50_000


def render_audit(
    pairs: Pairs, result: AuditResult, findings: Findings | None, record: dict[str, Any], title: str
) -> str:
    """One self-contained HTML page: `result` is the audit of `pairs.decided()`; every text is escaped, long ones cut.

    **Raises:** ImportError without the extra `cli`.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("robust_rlhf_jax.audit.page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=lambda v: f"{v:.1%}", shown=shown)
    return environment.get_template("audit.html").render(
        title=title,
        record=record,
        figures=figures,
        curves={
            "plain": figures.reliability(result.plain.margins),
            "robust": figures.reliability(result.robust.margins),
        },
        bars=figures.margin_bars(result.robust.margins),
        flips=_flips(pairs.decided(), result),
        contention=contended(pairs.decided(), result),
        findings=findings,
        **_of_file(findings),
    )


def shown(text: str) -> str:
    """A text of the file without control characters but for ends of lines, cut to a length that is read."""
    lines = [harmless(line) for line in str(text)[:LONGEST_TEXT].split("\n")]
    return "\n".join(lines) + (" …" if len(str(text)) > LONGEST_TEXT else "")


def _of_file(findings: Findings | None) -> dict[str, Any]:
    if findings is None:
        return {"worst": [], "raters": [], "effects": []}
    pairs = findings.pairs
    return {
        "worst": [_card(findings, int(i)) for i in findings.worst()[:WORST]],
        "raters": [] if pairs.raters is None else measure_raters(findings.batch)[:RATERS],
        "effects": _effects(findings),
    }


def _effects(findings: Findings):
    pairs, held_out = findings.pairs, findings.held_out
    rows = findings.verdicts.keep & held_out.fitted & (np.arange(pairs.n_pairs) < MOST_ROWS)
    x = np.asarray(pairs.preferred_differences(), np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        try:
            found = effects(held_out.audit.robust.theta, x, rows, pairs.names)
        except np.linalg.LinAlgError:
            return []
    return [e for e in found if np.isfinite([e.low, e.high]).all()]


def _card(findings: Findings, i: int) -> dict[str, Any]:
    pairs = findings.pairs
    issues = [name for name, issue in findings.issues.items() if issue.flag[i]]
    return {
        "row": int(pairs.rows[i]) + 1,
        "suspicion": float(findings.verdicts.suspicion[i]),
        "kept": bool(findings.verdicts.keep[i]),
        "suggested": findings.verdicts.suggested_label[i],
        "margin": float(findings.held_out.margins[i]),
        "issues": issues,
        "reason": findings.reason(i),
        "rater": None if pairs.raters is None else str(pairs.raters[i]),
        "texts": texts_of(pairs, i),
        "features": None if pairs.texts is not None else largest_differences(pairs, i),
    }


def _flips(pairs: Pairs, result: AuditResult) -> dict[str, Any]:
    """Held-out pairs on which the plain and the robust fit disagree."""
    plain, robust = result.plain.margins, result.robust.margins
    differ = np.sign(plain) != np.sign(robust)
    order = highest_first(np.abs(plain - robust))
    return {
        "count": int(differ.sum()),
        "of": len(differ),
        "right": int((differ & (robust > 0)).sum()),
        "rows": [
            {"row": int(pairs.rows[i]) + 1, "plain": float(plain[i]), "robust": float(robust[i])}
            for i in order[differ[order]][:FLIPS]
        ],
    }
