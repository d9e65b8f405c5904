"""An audit of a file without raters leaves no table of raters of an earlier audit beside its page."""

import numpy as np
import pytest

from robust_rlhf_jax.audit import SourceRater
from robust_rlhf_jax.audit.command import audit_file
from robust_rlhf_jax.audit.config import AuditConfig, Reading, Writing
from robust_rlhf_jax.audit.old_raters import remove_old_raters
from robust_rlhf_jax.raters import Rater

TABLES = [
    (",".join(Rater._fields), False),
    (",".join(SourceRater._fields), False),
    ("who,age\nAnn,7", True),
    ("", True),
]


@pytest.mark.parametrize(("table", "stays"), TABLES)
def test_only_a_table_of_an_audit_is_removed(tmp_path, table, stays):
    (tmp_path / "raters.csv").write_text(table + "\n")
    remove_old_raters(tmp_path, Rater, SourceRater)
    assert (tmp_path / "raters.csv").exists() == stays


@pytest.mark.slow
@pytest.mark.parametrize(("table", "stays"), TABLES[::2])
def test_a_second_audit_into_the_folder(tmp_path, table, stays):
    chosen, rejected = np.random.default_rng(0).normal(size=(2, 40))
    rows = [f"{a},{b}" for a, b in zip(chosen, rejected, strict=True)]
    (tmp_path / "pairs.csv").write_text("\n".join(["chosen_a,rejected_a", *rows]) + "\n")
    out = tmp_path / "out"
    out.mkdir()
    (out / "raters.csv").write_text(table + "\n")
    config = AuditConfig(estimator="row_normalised", epsilon=0.1, folds=2, repeats=1)
    audit_file(str(tmp_path / "pairs.csv"), config, Reading(), Writing(out=out), top=0)
    assert (out / "audit.html").exists()
    assert (out / "raters.csv").exists() == stays
