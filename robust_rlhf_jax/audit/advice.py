"""What to do about a file: drop pairs, ask raters again, or leave it as it is."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from .advice_commands import Commands
from .config import ASK_FROM, GAIN_CONFIDENCE, MOST_DECIDING, AuditConfig
from .findings import Findings
from .gain import Gain, broken_features, cross_fitted_gain
from .held_out import MOST_ROWS

# Why the gain of dropping flagged pairs is not known.
TOO_FEW = "there are too few groups of pairs to say whether dropping them gains anything."
NONE_IN_PARTS = (
    "training folds by themselves show too little evidence to flag any, so that the gain is not known."
)


class Advice(NamedTuple):
    """One advice for a file.

    | field | shape | meaning |
    |---|---|---|
    | `action` | | "drop": leave `drop` out; "ask": two rewards stand, let raters decide; "leave": the file as it is |
    | `drop` | [M] | pairs to leave out, worst first; none unless the gain's interval lies above 0 |
    | `ask` | [A] | pairs to ask raters about again, the one that tells most first |
    | `flagged` | | pairs that would be dropped if the gain were sure: what `--clean` leaves out |
    | `gain` | | the cross-fitted `Gain`, None where none is known, for the reason in `sentences` |
    | `sentences` | | the advice in words, with its expected gain |
    | `commands` | | (what for, command) |

    **Example:**

    >>> from robust_rlhf_jax import audit, preferences
    >>> pairs = preferences.rail_pairs().take(range(200))
    >>> advice = audit.advise(audit.find(pairs, audit.hold_out(pairs, folds=3, repeats=1)))
    >>> advice.action, advice.flagged, advice.gain
    ('leave', 0, None)
    """

    action: Literal["drop", "ask", "leave"]
    drop: Int[np.ndarray, " M"]
    ask: Int[np.ndarray, " A"]
    flagged: int
    gain: Gain | None
    sentences: tuple[str, ...]
    commands: tuple[tuple[str, str], ...] = ()


def advise(
    findings: Findings,
    config: AuditConfig | None = None,
    *,
    commands: Commands | None = None,
    most: int = MOST_ROWS,
    progress: Callable[[int, int], None] | None = None,
) -> Advice:
    """Advice on the file of `findings`, which does no harm where it can be told.

    Pairs are advised out only where the interval of the cross-fitted gain on held-out labels, of pairs whose
    features are not broken (`cross_fitted_gain`), lies above 0. Where two rewards explain the labels, held-out labels
    cannot decide between them, and the advice is to ask raters about the pairs on which the two differ most.

    **Arguments:** `config`: as the audit had it; `commands`: how the command was called, to name those that follow the
    advice; `most`, `progress`: as `cross_fitted_gain`.

    **Raises:** as `cross_fitted_gain`.

    **Example:**

    >>> from robust_rlhf_jax.audit import advise, find, hold_out
    >>> from robust_rlhf_jax.audit.source import read_source
    >>> pairs = read_source("rail").take(range(200))
    >>> advise(find(pairs, hold_out(pairs, folds=3, repeats=1))).sentences
    ('Leave the file as it is: it has no pair to drop, and no gain is expected.',)
    """
    order = findings.worst()
    out = order[~findings.verdicts.keep[order] & findings.pairs.fitted[order]]
    if findings.held_out.audit.contention is not None:
        advice = _ask(findings, len(out))
    else:
        gain = cross_fitted_gain(findings, config, most=most, progress=progress)
        why = TOO_FEW if gain is None else NONE_IN_PARTS
        gain = gain if gain is not None and gain.dropped else None
        sure = gain is not None and gain.all_pairs.low > 0
        advice = _drop(findings, out, gain) if gain is not None and sure else _leave(findings, out, gain, why)
    return advice if commands is None else advice._replace(commands=tuple(commands.of(advice)))


def _drop(findings: Findings, out: Int[np.ndarray, " M"], gain: Gain) -> Advice:
    ask = _doubtful(findings, findings.verdicts.keep)
    words = [f"Drop {_pairs(len(out))}"]
    words += [f"ask raters again about {len(ask):,} others"] if len(ask) else []
    rest = (
        f"{', '.join(words)}, and leave the rest. Expected gain: {gain.all_pairs.percent_points} of accuracy."
    )
    return Advice("drop", out, ask, len(out), gain, (rest, _meaning(findings, gain)))


def _leave(findings: Findings, out: Int[np.ndarray, " M"], gain: Gain | None, why: str) -> Advice:
    """`why`: nothing is known of the gain where pairs are flagged and `gain` is None."""
    ask = _doubtful(findings, np.ones(findings.pairs.n_pairs, bool))
    if gain is not None:
        found = (
            f"Leave the file as it is: dropping the {_pairs(len(out), 'flagged ')} is expected to gain "
            f"{gain.all_pairs.percent_points} of accuracy, and the interval does not lie above 0."
        )
        said = (found, _meaning(findings, gain))
    elif len(out):
        said = (f"Leave the file as it is: {_pairs(len(out))} {_are(len(out))} flagged, but {why}",)
    else:
        said = ("Leave the file as it is: it has no pair to drop, and no gain is expected.",)
    more = f"Raters can settle it: ask them again about {_pairs(len(ask))}, likelier corrupted than honest."
    return Advice("leave", out[:0], ask, len(out), gain, (*said, more) if len(ask) else said)


def _ask(findings: Findings, flagged: int) -> Advice:
    found = findings.held_out.audit.contention
    assert found is not None
    pairs = findings.pairs
    ask = np.flatnonzero(pairs.fitted)[found.deciding(pairs.decided().preferred_differences(), MOST_DECIDING)]
    said = f"Ask raters again about {_pairs(len(ask))}, and drop none before they answered. {found.sentence}"
    return Advice("ask", ask[:0], ask, flagged, None, (said,))


def _doubtful(findings: Findings, among: Bool[np.ndarray, " N"]) -> Int[np.ndarray, " A"]:
    """Pairs of `among` whose label is likelier corrupted than honest, most suspicious first."""
    suspicion = findings.verdicts.suspicion
    order = np.lexsort((findings.held_out.margins, -suspicion))
    return order[(among & findings.pairs.fitted & (suspicion > ASK_FROM))[order]]


def _meaning(findings: Findings, gain: Gain) -> str:
    """The estimand, and what it is on pairs that are not flagged."""
    broken = int((broken_features(findings) & findings.pairs.fitted).sum())
    aside = f" The {_pairs(broken)} whose features look broken {_are(broken)} not scored." if broken else ""
    return (
        f"Accuracy is agreement with the held-out labels as the file has them, {gain.before:.1%} with the pairs and "
        f"{gain.after:.1%} without ({gain.folds} folds, {gain.groups:,} independent groups; in each, the other "
        f"folds were flagged by themselves, and {gain.dropped:,.0f} pairs left out on average). On held-out pairs that "
        f"are not flagged: {gain.unflagged.percent_points}.{aside}"
    )


def _pairs(count: int, kind: str = "") -> str:
    return f"{count:,} {kind}pair" + ("" if count == 1 else "s")


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def advice_record(advice: Advice, rows: Int[np.ndarray, " N"]) -> dict:
    """`advice` for JSON; `rows` [N]: the file's row of each pair, from 0. Rows in the record count from 1."""
    gain = advice.gain
    return {
        "action": advice.action,
        "sentences": list(advice.sentences),
        "commands": [{"what": what, "command": command} for what, command in advice.commands],
        "drop_rows": (rows[advice.drop] + 1).tolist(),
        "ask_rows": (rows[advice.ask] + 1).tolist(),
        "flagged": advice.flagged,
        "gain": None
        if gain is None
        else {
            "estimand": "held-out agreement with the labels of the file, without − with the flagged pairs, on pairs "
            "whose features are not broken",
            "confidence": GAIN_CONFIDENCE,
            "all_pairs": gain.all_pairs._asdict(),
            "unflagged": gain.unflagged._asdict(),
            "before": gain.before,
            "after": gain.after,
            "folds": gain.folds,
            "groups": gain.groups,
            "dropped": gain.dropped,
        },
    }
