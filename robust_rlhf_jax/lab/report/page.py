"""The page, from results to HTML: its sections (`_section`, drawn by `templates/section.html`) and their words."""

import json
import math
from collections import Counter
from typing import Any

from robust_rlhf_jax.outputs import page_templates

from . import numbers
from .load import Result
from .panels import gap_panels, worst_panels
from .styles import styles

# A hundred years in seconds.
LONGEST = 100 * 365.25 * 86400


def render_page(results: list[Result], title: str) -> str:
    """One self-contained HTML page; every text from the data is escaped.

    **Raises:** ImportError without the extra `cli`.

    **Example:**

    >>> from robust_rlhf_jax.lab.report import Result, render_page
    >>> cell = {"family": "chain", "attack": "flip_random", "epsilon": 0.1, "seed": 0, "algorithm": "standard"}
    >>> rows = [{**cell, "normalised_gap": 0.03, "status": "converged", "oracle_calls": 1}]
    >>> page = render_page([Result("Sweep", rows, unscaled=[], facts={}, parts=None)], title="A & B")
    >>> "A &amp; B" in page, "flip_random" in page
    (True, True)
    """
    environment = page_templates("robust_rlhf_jax.lab.report")
    environment.filters.update(share=share, bar=bar)
    algorithms = numbers.axes_of([row for result in results for row in result.rows]).algorithms
    drawn = styles(algorithms)
    sections = [_section(f"r{i}", result, drawn) for i, result in enumerate(results)]
    return environment.get_template("page.html").render(title=title, styles=drawn, sections=sections)


def share(value: float) -> str:
    """Three digits, no −0; "–" for NaN and infinity."""
    return "–" if value != value else f"{round(value, 3) + 0.0:.3f}"


def bar(calls: float, most: float) -> int:
    """Length in % of a bar on a logarithmic scale."""
    return round(100 * math.log1p(calls) / math.log1p(max(most, 1)))


def _section(anchor: str, result: Result, drawn) -> dict[str, Any]:
    """All that the template shows of one result."""
    rows = result.rows
    compared = rows if result.parts is None else numbers.comparable(rows)
    gaps, worst = numbers.gap_lines(rows), numbers.worst_lines(compared)
    axes = numbers.axes_of(rows)
    calls = numbers.calls_lines(rows)
    return {
        "id": anchor,
        "result": result,
        "axes": axes,
        "size": _size(len(rows), axes),
        "left_out": len(rows) - len(compared),
        "glances": numbers.glances(worst),
        "worst": worst,
        "worst_panels": worst_panels(worst, drawn),
        "gaps": gaps,
        "gap_panels": gap_panels(gaps, drawn),
        "calls": calls,
        "most_calls": max((line.high for line in calls), default=1),
        "statuses": numbers.status_lines(rows),
        "status_counts": Counter(row["status"] for row in rows if row["status"] is not None).most_common(),
        "unscaled": numbers.unscaled_lines(result.unscaled),
        "facts": flat(result.facts),
        "seconds": duration(result.facts.get("wall_seconds")),
    }


def _size(cells: int, axes: numbers.Axes) -> str:
    """How many cells there are, and of what: a product where every combination is there."""
    attacks = [attack for attack in axes.attacks if attack != numbers.NO_ATTACK]
    counts = [len(part) for part in (axes.families, attacks, axes.epsilons, axes.seeds, axes.algorithms)]
    names = [
        ("family", "families"),
        ("attack", "attacks"),
        ("ε", "ε"),
        ("seed", "seeds"),
        ("algorithm", "algorithms"),
    ]
    listed = [f"{count} {name[count != 1]}" for count, name in zip(counts, names, strict=True)]
    whole = math.prod(counts) == cells
    return f"{cells:,} cells: {' × '.join(listed)}" if whole else f"{cells:,} cells of {', '.join(listed)}"


def flat(facts: dict[str, Any], above: str = "") -> list[tuple[str, str]]:
    """Nested settings as (name, value) lines: {"versions": {"jax": "1"}} → [("versions: jax", "1")]."""
    found = []
    for name, value in facts.items():
        place = f"{above}{name}".replace("_", " ")
        if isinstance(value, dict):
            found += flat(value, f"{place}: ")
        else:
            found.append((place, _text(value)))
    return found


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return (
            ", ".join(map(_text, value)) if not any(isinstance(x, list) for x in value) else json.dumps(value)
        )
    return "none" if value is None else f"{value}"


def duration(seconds: Any) -> str | None:
    """Seconds in words; None for what is no number, or no possible duration."""
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not 0 <= seconds < LONGEST:
        return None
    minutes = round(seconds / 60)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{seconds / 3600:.1f} h"
