"""`audit.html` of a source: the page of an audit, as far as passes can say it."""

from typing import Any

from robust_rlhf_jax.outputs import page_templates

from ..page import figures
from ..page.render import RATERS, WORST, shown
from .source_audit import SourceAudit


def render_source(found: SourceAudit, record: dict[str, Any], title: str, command: str, raters: Any) -> str:
    """One self-contained HTML page, in which every text is escaped.

    **Arguments:** `command`: what writes a weight for each pair; `raters` [N]: of the source, or None.

    **Raises:** ImportError without the extra `cli`.
    """
    environment = page_templates("robust_rlhf_jax.audit.page")
    environment.filters.update(percent=lambda v: f"{v:.1%}", shown=shown)
    return environment.get_template("source.html").render(
        title=title,
        record=record,
        command=command,
        figures=figures,
        curves={
            "plain": figures.reliability(found.plain_margins),
            "robust": figures.reliability(found.margins),
        },
        bars=figures.margin_bars(found.margins),
        sentences=found.sentences(),
        not_done=found.not_done(),
        raters=found.raters[:RATERS],
        suspects=[suspect(found, int(i), raters) for i in found.worst()[:WORST]],
    )


def suspect(found: SourceAudit, i: int, raters: Any) -> dict[str, Any]:
    """What is said of pair i."""
    said = {
        "index": i,
        "suspicion": float(found.model.suspicion[i]),
        "weight": float(found.model.weights[i]),
        "margin": float(found.margins[i]),
    }
    return said if raters is None else said | {"rater": str(raters[i])}
