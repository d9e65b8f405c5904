"""Two rewards that explain a file: found in the fits, said in a sentence, shown side by side."""

import dataclasses

import numpy as np
import pytest
from text_pairs import faulty_file, made_up_fit, read

from robust_rlhf_jax.audit.contention import Contention, contention_of, strongest
from robust_rlhf_jax.audit.findings import find
from robust_rlhf_jax.rewards import Explanations

TWO = Contention(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([0.6, 0.4]), np.array([0.1, 0.12]))


def explanations(*probability):
    e = len(probability)
    theta = np.stack([np.array([1.0, 2.0]) * (-1) ** i for i in range(e)])
    weights = np.ones((e, 50))
    weights[1, :10] = 0
    probability, differs = np.array(probability), np.arange(e) % 2.0
    same = differs[:, None] == differs
    return Explanations(
        theta, probability, weights, np.full(e, 0.1), np.zeros(e), differs, same @ probability,
        np.argmax(probability), None,
    )  # fmt: skip


def test_two_rewards_contend_where_the_second_is_believed_and_prefers_others():
    found = contention_of(explanations(0.7, 0.3))
    np.testing.assert_array_equal(found.theta, [[1, 2], [-1, -2]])
    np.testing.assert_allclose(found.probability, [0.7, 0.3])
    assert contention_of(explanations(0.97, 0.03)) is None
    assert contention_of(None) is None


def test_a_second_reward_that_prefers_the_same_and_accuses_nobody_else_does_not_contend():
    assert contention_of(explanations(0.5, 0.0, 0.5)) is None


def test_the_strongest_of_the_fits_is_shown_in_units_of_the_features():
    weak = TWO._replace(probability=np.array([0.9, 0.1]))
    found = strongest([None, weak, TWO], 2.0 * np.eye(2))
    np.testing.assert_allclose(found.theta, 2.0 * TWO.theta)
    assert found.fits == 2
    assert found.probability[1] == 0.4
    assert strongest([None, None], np.eye(2)) is None


def test_the_pairs_that_decide_are_those_on_which_the_two_differ():
    x = np.array([[0.1, 9.0], [-3.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(TWO.deciding(x, 2), [1, 2])
    np.testing.assert_allclose(TWO.disagreement(x)[1], 1 / (1 + np.exp(-3)) - 1 / (1 + np.exp(3)))


def test_the_page_and_the_summary_show_both(tmp_path):
    pytest.importorskip("jinja2")
    from robust_rlhf_jax.audit.audited_file import AuditedFile
    from robust_rlhf_jax.audit.config import AuditConfig
    from robust_rlhf_jax.audit.page import render_audit
    from robust_rlhf_jax.audit.record import audit_record

    path, faulty, _ = faulty_file(tmp_path, "label", 0.05)
    pairs = read(path)
    fit = made_up_fit(pairs, np.flatnonzero(faulty))
    theta = np.zeros((2, len(pairs.names)))
    theta[:, 0] = 1.0, -1.0
    result = dataclasses.replace(fit.audit, contention=TWO._replace(theta=theta))
    fit = dataclasses.replace(fit, audit=result)
    found = find(pairs, fit)
    assert result.contention.sentence in found.summary.likely
    audited = AuditedFile(str(path), pairs, result, AuditConfig(repeats=1), 1.0, found)
    record = audit_record(audited)
    assert record["contention"]["rewards"][1]["probability"] == pytest.approx(0.4)
    page = render_audit(audited, record, title="pairs")
    assert ">Two explanations</h2>" in page
    assert result.contention.sentence in page
    first = result.contention.deciding(result.differences * result.labels[:, None], 1)[0]
    assert f"Row {pairs.rows[fit.rows[first]] + 1}<" in page
    assert "The same as a table" in page
