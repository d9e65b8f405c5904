"""The certificate that no algorithm can tell two rewards apart."""

import numpy as np
import pytest
import scipy.optimize
import scipy.special

from robust_rlhf_jax.lab.diagnostics import two_worlds

EPSILON = 0.1


def test_equal_rows_share_their_chance():
    x = np.array([[0.0, 2.0], [0.0, -2.0], [1.0, 0.0]])
    # The second row, turned, says that the first one lost: together a coin.
    found = two_worlds.certificate(x, np.array([1.0, 1.0, 0.5]), np.zeros(2), np.zeros(2), EPSILON)
    assert found.cost == pytest.approx(0.0)


@pytest.mark.parametrize("seed", range(4))
def test_the_least_replaced_share_is_the_linear_programs(seed):
    """HiGHS: the least Σ max(Q − hP, 0) over both labels, Σh = N, h ≥ 0."""
    rng = np.random.default_rng(seed)
    n = 15
    p, q = rng.uniform(0.01, 0.99, n), rng.uniform(size=n)
    q = np.round(q) if seed == 0 else q
    rows = [np.hstack([-np.diag(v), -np.eye(2 * n)[i * n : (i + 1) * n]]) for i, v in enumerate((p, 1 - p))]
    bounds = np.concatenate([-q, q - 1])
    sums = np.concatenate([np.ones(n), np.zeros(2 * n)])[None]
    best = scipy.optimize.linprog(1 - sums[0], np.vstack(rows), bounds, sums, [n])
    honest, replaced = two_worlds.least_replaced(p, q)
    assert replaced.mean() == pytest.approx(best.fun / n, abs=1e-9)
    assert honest.mean() == pytest.approx(1.0)
    assert honest.min() >= 0
    assert ((replaced >= 0) & (replaced <= 1)).all()


def test_who_replaces_the_seen_shares_makes_them_of_honest_ones():
    """Drawn from world B: honest pairs by h and P, the replaced ones by what is missing; seen is Q at every x."""
    rng = np.random.default_rng(0)
    p, q = rng.uniform(0.05, 0.95, 8), rng.uniform(size=8)
    honest, replaced = two_worlds.least_replaced(p, q)
    of_b, seen = (np.stack([v, w]) for v, w in ((honest * p, honest * (1 - p)), (q, 1 - q)))
    kept = np.minimum(of_b, seen)
    assert np.sum(seen - kept) == pytest.approx(np.sum(replaced))
    assert np.sum(of_b - kept) == pytest.approx(np.sum(replaced))  # as many honest pairs go as others come


@pytest.mark.parametrize(
    ("cost", "stake", "regret", "holds"),
    [(0.1, 0.1, 0.0, True), (0.101, 0.1, 0.0, False), (0.1, 0.02, 0.0, False), (0.1, 0.1, 0.03, False)],
)
def test_a_certificate_needs_reach_stake_and_an_answer_that_is_right(cost, stake, regret, holds):
    assert two_worlds.Certificate(cost, stake, regret).holds(EPSILON) == holds


def test_a_longer_reward_certifies_where_the_cheapest_one_stakes_too_little():
    """Four fifths of the rows say nothing about the second feature, in which answer and truth differ."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    x[:, 1] *= rng.random(400) < 0.2
    truth, answer = np.array([1.0, 2.0]), np.array([1.0, -0.5])
    wins = scipy.special.expit(x @ truth)
    cheapest, found = (two_worlds.certificate(x, wins, answer, truth, epsilon) for epsilon in (0.0, 0.08))
    assert cheapest.cost < found.cost <= 0.08
    assert cheapest.stake < two_worlds.LOSS < found.stake
    assert found.regret <= two_worlds.LOSS
