"""The page, from findings to HTML."""

import base64
import hashlib
from typing import Any

import numpy as np

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.kernels.ranking import highest_first
from robust_rlhf_jax.outputs import page_templates
from robust_rlhf_jax.raters import Rater, RaterTable
from robust_rlhf_jax.raters.kinds import BAD
from robust_rlhf_jax.terminal import counted

from ..advice import Advice
from ..ask_pairs import ask_sides
from ..audited_file import AuditedFile
from ..findings import Findings
from ..pair_columns import found_at
from ..result import AuditResult
from ..shown_names import shown_names
from . import figures
from .contended import contended
from .effects import effects
from .flagged import CUTS, Packed, cut_text, pack_flagged
from .one_pair import largest_differences, texts_of
from .word_differences import word_differences

# How many are shown: pairs without JavaScript, pairs that flip, characters of a text, raters, pairs to ask about, and
# characters of those.
WORST, FLIPS, LONGEST_TEXT, RATERS, ASKED, BRIEF = 30, 15, CUTS[0], 40, 20, 400
# Rows of the differences that the effects are measured on.
MOST_ROWS = 50_000


def render_audit(audited: AuditedFile, record: dict[str, Any], title: str) -> str:
    """One self-contained HTML page, with what its `record` says; every text is escaped, long ones cut.

    All flagged pairs are on it; its one script, which the page's own policy names by its hash, shows them in parts.

    **Raises:** ImportError without the extra `cli`.
    """
    pairs, result, findings = audited.pairs, audited.result, audited.findings
    advice, raters = audited.advice, audited.raters
    environment = page_templates("robust_rlhf_jax.audit.page")
    environment.filters.update(percent=lambda v: f"{v:.1%}", shown=shown, brief=lambda v: cut_text(v, BRIEF))
    names = shown_names(pairs) if findings is None else findings.batch.shown_names
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
        contention=contended(pairs.decided(), result, names),
        advice=advice,
        findings=findings,
        raters=raters,
        rated=[] if raters is None or raters.table is None else _rated(raters.table),
        **_script(environment),
        **_of_file(findings, advice),
    )


def shown(text: str) -> str:
    """A text of the file without control characters but for ends of lines, cut to a length that is read."""
    return cut_text(text, LONGEST_TEXT)


def _script(environment: Any) -> dict[str, Any]:
    """The page's script, which holds nothing of the file, and its hash for the policy."""
    import markupsafe

    text = environment.loader.get_source(environment, "audit.js")[0]
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return {"script": markupsafe.Markup(text), "script_hash": markupsafe.Markup(digest)}


def _of_file(findings: Findings | None, advice: Advice | None) -> dict[str, Any]:
    if findings is None:
        nothing = Packed("", 0, LONGEST_TEXT)
        return {
            "worst": [],
            "flagged": nothing,
            "flagged_total": 0,
            "elsewhere": "",
            "asked": [],
            "effects": [],
        }
    worst = findings.worst()
    flagged = pack_flagged(findings, advice) if len(worst) else Packed("", 0, LONGEST_TEXT)
    asked = None if advice is None else advice._replace(ask=advice.ask[:ASKED])
    return {
        "worst": [
            _card(findings, int(i), at)
            for i, at in zip(worst, found_at(findings.pairs, worst[:WORST]), strict=False)
        ],
        "flagged": flagged,
        "flagged_total": len(worst),
        "elsewhere": _elsewhere(findings),
        "asked": [] if asked is None else ask_sides(findings, asked),
        "effects": _effects(findings),
    }


def _elsewhere(findings: Findings) -> str:
    """Where the flagged pairs are that the page does not show: `suspects.csv` has those that were fitted."""
    lacking = int(np.sum(~findings.pairs.fitted[findings.worst()]))
    but = f" but the {counted(lacking, 'pair')} that no fit uses, such as ties" if lacking else ""
    return f"suspects.csv has all{but}"


def _rated(table: RaterTable) -> list[Rater]:
    """Bad raters first, then those of another taste, then the least reliable."""
    order = {kind: i for i, kind in enumerate((*BAD, "other taste", "noisy", "attentive"))}
    rows = sorted(table.rows, key=lambda row: (order.get(row.kind, len(order)), row.reliability))
    return rows[:RATERS]


def _effects(findings: Findings):
    pairs, held_out = findings.pairs, findings.held_out
    rows = findings.verdicts.keep & held_out.fitted & (np.arange(pairs.n_pairs) < MOST_ROWS)
    x = np.asarray(pairs.preferred_differences(), np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        try:
            found = effects(held_out.audit.robust.theta, x, rows, findings.batch.shown_names)
        except np.linalg.LinAlgError:
            return []
    return [e for e in found if np.isfinite([e.low, e.high]).all()]


def _card(findings: Findings, i: int, at: str) -> dict[str, Any]:
    pairs = findings.pairs
    issues = [name for name, issue in findings.issues.items() if issue.flag[i]]
    return {
        "row": int(pairs.rows[i]) + 1,
        "at": at,
        "suspicion": float(findings.verdicts.suspicion[i]),
        "kept": bool(findings.verdicts.keep[i]),
        "suggested": findings.verdicts.suggested_label[i],
        "margin": float(findings.held_out.margins[i]),
        "issues": issues,
        "reason": findings.reason(i),
        "rater": None if pairs.raters is None else str(pairs.raters[i]),
        "texts": (texts := texts_of(pairs, i)),
        "sides": [] if texts is None else _sides(texts),
        "features": None if pairs.texts is not None else largest_differences(pairs, i),
    }


def _sides(texts: dict[str, str]) -> list[tuple[str, list[tuple[str, bool]]]]:
    """Heading and runs of words of both sides."""
    runs = word_differences(shown(texts["chosen"]), shown(texts["rejected"]))
    return list(zip(("Chosen", "Rejected"), runs, strict=True))


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
