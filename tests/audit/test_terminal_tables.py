"""What is printed says which labels the scores are of."""

from types import SimpleNamespace

import pytest

from robust_rlhf_jax.audit.config import AuditConfig
from robust_rlhf_jax.audit.summary import evidence
from robust_rlhf_jax.audit.terminal_tables import _accuracy_table

FIT = SimpleNamespace(accuracy=0.7, accuracy_error=0.01, log_loss=0.6, log_loss_error=0.01)
RESULT = SimpleNamespace(plain=FIT, robust=FIT)


@pytest.mark.parametrize(("inject", "labels"), [(0.0, "as in the file"), (0.1, "before the flips")])
def test_the_heading_claims_of_the_labels_what_is_known(inject, labels):
    title = _accuracy_table(RESULT, AuditConfig(inject=inject)).title
    assert title.startswith(f"Held-out labels {labels} (")


@pytest.mark.parametrize(("flagged", "said"), [(False, "no pair is flagged."), (True, "contradict no pair.")])
def test_no_evidence_does_not_deny_flags_of_another_kind(flagged, said):
    assert evidence(SimpleNamespace(epsilon=0.0), flagged).endswith(said)
