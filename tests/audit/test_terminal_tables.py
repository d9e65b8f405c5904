"""What is printed says which labels the scores are of."""

from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.audit.config import AuditConfig
from robust_rlhf_jax.audit.summary import evidence
from robust_rlhf_jax.audit.terminal_tables import (
    SHOWN_REASON,
    _accuracy_table,
    _reasons_table,
    audit_warnings,
    print_findings,
    print_fits,
)

FIT = SimpleNamespace(accuracy=0.7, accuracy_error=0.01, log_loss=0.6, log_loss_error=0.01)
RESULT = SimpleNamespace(plain=FIT, robust=FIT)


@pytest.mark.parametrize(("inject", "labels"), [(0.0, "as in the file"), (0.1, "before the flips")])
def test_the_heading_claims_of_the_labels_what_is_known(inject, labels):
    title = _accuracy_table(RESULT, AuditConfig(inject=inject)).title
    assert title.startswith(f"Held-out labels {labels} (")


@pytest.mark.parametrize(("flagged", "said"), [(False, "no pair is flagged."), (True, "contradict no pair.")])
def test_no_evidence_does_not_deny_flags_of_another_kind(flagged, said):
    assert evidence(SimpleNamespace(epsilon=0.0), flagged).endswith(said)


def reported(*reasons):
    """Findings of texts in which these reasons, and nothing else, speak against the first pairs."""
    n = len(reasons)
    return SimpleNamespace(
        issues={},
        summary=SimpleNamespace(likely=()),
        held_out=SimpleNamespace(audit=SimpleNamespace(contention=None)),
        pairs=SimpleNamespace(n_skipped=0, unused={}, texts=(), rows=np.arange(n)),
        verdicts=SimpleNamespace(suspicion=np.full(n, 0.5)),
        worst=lambda: np.arange(n),
        reason=lambda i: reasons[i],
    )


def test_a_reason_that_is_too_long_ends_after_a_word_with_a_sign_that_more_follows():
    long = "its features lie far out, " * 20
    cells = list(_reasons_table(reported("Both sides are the same.", long), 2).columns[2].cells)
    assert cells[0] == "Both sides are the same."
    assert cells[1].endswith("…")
    assert len(cells[1]) <= SHOWN_REASON
    assert long.startswith(f"{cells[1][:-1]} ")


def test_without_a_suspicious_pair_no_empty_line_is_printed():
    console = Console(record=True, width=80)
    print_findings(console, reported(), 10)
    assert console.export_text() == "No issue was found.\n"


def test_no_precision_is_printed_where_nothing_is_flagged():
    none = np.zeros(2, bool)
    result = SimpleNamespace(
        differences=np.ones((2, 1)), injected=~none, flagged=none, rank=1, plain=whole(), robust=whole(), gain=0.0,
        gain_error=0.0, precision=np.nan, recall=0.0, average_precision=0.5,
    )  # fmt: skip
    audited = SimpleNamespace(
        source="f", pairs=None, result=result, config=AuditConfig(inject=0.1), seconds=1.0
    )
    console = Console(record=True, width=80)
    print_fits(console, audited, 0)
    assert "flagged 0: recall 0.000, average precision 0.500" in console.export_text()


def whole():
    return SimpleNamespace(**vars(FIT), **vars(fits(Status.CONVERGED)))


def fits(*codes):
    status = np.array([[int(code) for code in codes]])
    return SimpleNamespace(status=status, at_radius=status == int(Status.SEPARABLE))


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ((Status.CONVERGED, Status.CONVERGED), []),
        (
            (Status.SEPARABLE, Status.CONVERGED),
            ["In 2 of 4 fits a reward predicts all, or nearly all, labels"],
        ),
        ((Status.MAX_STEPS, Status.CONVERGED), ["2 of 4 fits did not end well (max steps)."]),
    ],
)
def test_a_fit_that_is_separable_is_warned_of_once(codes, said):
    result = SimpleNamespace(differences=np.ones((9, 2)), rank=2, plain=fits(*codes), robust=fits(*codes))
    warnings = audit_warnings(result)
    assert len(warnings) == len(said)
    assert all(warning.startswith(start) for warning, start in zip(warnings, said, strict=True))


def test_what_people_write_is_shown_in_one_line():
    """Persian has joiners within its words, families of emoji have them between; codes of a terminal stay escaped."""
    written = "می\u200cخواهم\r\n\tpass 👩\u200d👧 \x1b[31m[red]"
    (cell,) = _reasons_table(reported(written), 1).columns[2].cells
    assert cell == "می\u200cخواهم pass 👩\u200d👧 \\x1b[31m\\[red]"
