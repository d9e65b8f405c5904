"""All flagged pairs as one packed text that the page's script unpacks: JSON, deflated, in base64."""

import base64
import json
import zlib
from typing import Any, NamedTuple

from robust_rlhf_jax.terminal import harmless, readable

from ..advice import Advice
from ..findings import Findings
from ..pair_check import pair_check
from ..pair_columns import found_at
from .one_pair import largest_differences, texts_of

# Bytes that the flagged pairs take at most, which leaves a page of 5 MB room for everything else.
MOST_BYTES = 4_000_000
# Characters of a text that are shown: the first of these numbers with which the pairs fit.
CUTS = (1500, 600, 250, 100, 40, 0)


class Packed(NamedTuple):
    """`text`: base64; `count`: of pairs; `cut`: characters of a text that are shown."""

    text: str
    count: int
    cut: int


def pack_flagged(findings: Findings, advice: Advice | None, most_bytes: int = MOST_BYTES) -> Packed:
    """All flagged pairs, worst first, with texts cut so that they fit into `most_bytes`.

    Where pairs do not fit even without texts, the last ones are left out, and `count` says how many are there.
    """
    worst = findings.worst()
    found = list(zip(worst.tolist(), found_at(findings.pairs, worst), strict=True))
    dropped = set() if advice is None else set(advice.drop.tolist())
    for cut in CUTS:
        text = _packed(findings, [_entry(findings, i, at, i in dropped, cut) for i, at in found])
        if len(text) <= most_bytes:
            return Packed(text, len(found), cut)
    count = len(found)
    while count and len(text) > most_bytes:
        count = count * 3 // 4
        text = _packed(findings, [_entry(findings, i, at, i in dropped, 0) for i, at in found[:count]])
    return Packed(text, count, 0)


def cut_text(text: str, length: int) -> str:
    """A text of the file without control characters but for ends of lines, cut to `length` characters."""
    return readable(str(text)[:length]) + (" …" if len(str(text)) > length else "")


def _packed(findings: Findings, entries: list[dict[str, Any]]) -> str:
    content = {"total": findings.pairs.n_pairs, "name": harmless(findings.pairs.path.name), "pairs": entries}
    told = json.dumps(content, separators=(",", ":"))
    return base64.b64encode(zlib.compress(told.encode(), 9)).decode()


def _entry(findings: Findings, i: int, at: str, dropped: bool, cut: int) -> dict[str, Any]:
    pairs = findings.pairs
    entry = {
        "pair": i + 1,
        "row": int(pairs.rows[i]) + 1,
        "at": at,
        "check": pair_check(pairs, i),
        "suspicion": round(float(findings.verdicts.suspicion[i]), 3),
        "margin": round(float(findings.held_out.margins[i]), 3),
        "drop": int(dropped),
        "suggested": findings.verdicts.suggested_label[i],
        "issues": [harmless(name) for name, issue in findings.issues.items() if issue.flag[i]],
        "reason": cut_text(findings.reason(i), CUTS[0]),
        "rater": None if pairs.raters is None else harmless(str(pairs.raters[i])),
    }
    texts = texts_of(pairs, i)
    if texts is None:
        return entry | {
            "features": [(harmless(name), float(f"{v:.3g}")) for name, v in largest_differences(pairs, i)]
        }
    return entry | {side: cut_text(text, cut) for side, text in texts.items()}
