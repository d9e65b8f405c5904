"""The certificates that no algorithm can tell how sure raters are."""

import numpy as np
import pytest
from scipy.special import expit

from robust_rlhf_jax.lab.diagnostics import two_chances

EPSILON = 0.1


def test_probabilities_that_random_flips_shorten_have_a_certificate():
    """A fifth of the labels turned: three fifths of p − ½ are left, and shorter honest rewards show that, too."""
    x, theta = np.random.default_rng(0).normal(size=(400, 2)), np.array([2.0, -1.0])
    honest = expit(x @ theta)
    seen = 0.8 * honest + 0.2 * (1 - honest)

    def believed(rows):
        return 0.5 + 0.6 * (expit(rows @ theta) - 0.5)

    found = two_chances.certificate_of_probabilities(x, seen, believed, theta)
    assert found.cost == pytest.approx(0, abs=1e-9)
    # Nothing is replaced, and the preferred option of an honest pair of B wins less often than A says.
    assert found.stake == pytest.approx(np.mean(0.4 * np.abs(honest - 0.5)))
    assert found.holds(0.2, 0.1)


def test_true_probabilities_have_nothing_at_stake():
    x, theta = np.random.default_rng(1).normal(size=(300, 3)), np.array([1.0, 0.5, -1.0])

    def believed(rows):
        return expit(rows @ theta)

    found = two_chances.certificate_of_probabilities(x, believed(x), believed, theta)
    assert found.cost == pytest.approx(0, abs=1e-9)
    assert found.stake == pytest.approx(0, abs=1e-9)
    assert not found.holds(0.2, 0.1)


@pytest.mark.parametrize(
    ("cost", "stake", "holds"), [(0.1, 0.11, True), (0.11, 0.11, False), (0.1, 0.1, False)]
)
def test_a_certificate_of_probabilities_needs_reach_and_stake(cost, stake, holds):
    assert two_chances.ProbabilityCertificate(cost, stake).holds(EPSILON, 0.1) == holds


def test_the_log_loss_at_stake_is_the_divergence_of_coins():
    """A: chances ¾; B and the fit: ½. Every fourth pair is a win that B would not show."""
    x = np.arange(1.0, 41.0)[:, None]

    def sure(rows):
        return np.full(len(rows), 0.75)

    def even(rows):
        return np.full(len(rows), 0.5)

    found = two_chances.certificate_of_log_loss(x, sure(x), sure, even, even, x[:7])
    assert found.cost == pytest.approx(0.25)
    assert found.stake == pytest.approx(0.5 * np.log(0.5 / 0.75) + 0.5 * np.log(0.5 / 0.25))
    assert found.regret == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("cost", "stake", "regret", "holds"),
    [
        (0.1, 0.03, 0.02, True),
        (0.101, 0.03, 0.02, False),
        (0.1, 0.02, 0.02, False),
        (0.1, 0.03, 0.021, False),
    ],
)
def test_a_certificate_of_log_loss_needs_reach_stake_and_an_answer_that_is_right(cost, stake, regret, holds):
    assert two_chances.LogLossCertificate(cost, stake, regret).holds(EPSILON, 0.02) == holds
