"""How many threads BLAS may use."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from robust_rlhf_jax.audit import command
from robust_rlhf_jax.audit.config import AuditConfig, Reading, Writing
from robust_rlhf_jax.blas_threads import SMALL, one_if_small


def threads() -> set[int]:
    np.linalg.inv(np.eye(2))
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_small_matrices_have_one_thread_and_large_ones_all():
    with threadpool_limits(2, user_api="blas"):
        with one_if_small(SMALL):
            assert threads() == {1}
        assert threads() == {2}
        with one_if_small(SMALL + 1):
            assert threads() == {2}


def test_an_audit_fits_with_one_thread(monkeypatch):
    found = []

    def fit(pairs, config, tell):
        found.append(threads())
        raise ZeroDivisionError

    monkeypatch.setattr(command, "_fit", fit)
    with threadpool_limits(2, user_api="blas"), pytest.raises(ZeroDivisionError):
        command.audit_file("rail", AuditConfig(), Reading(), Writing())
    assert found == [{1}]
