import numpy as np
import pytest
from scipy.optimize import approx_fprime

from robust_rlhf_jax.audit.flips import BOUNDS, Differences, _honest, estimate_flips, posterior


def labelled(n, share, rewards, seed=0):
    """Margins under the mean reward and lengths of normal rows; `rewards(rng)`: [n, 4], what each labeller wants."""
    rng = np.random.default_rng(seed)
    x, wanted = rng.normal(size=(n, 4)), rewards(rng)
    label = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-(x * wanted).sum(axis=1))), 1, -1)
    label[: int(share * n)] *= -1
    return label * (x @ MEAN), np.linalg.norm(x, axis=1)


MEAN = np.array([2.5, 1.5, -1.0, 0.5])
PEOPLE = {
    "all alike": lambda n: lambda rng: np.broadcast_to(MEAN, (n, 4)),
    "tastes": lambda n: lambda rng: MEAN + 1.5 * rng.normal(size=(n, 4)),
    "signs differ": lambda n: lambda rng: MEAN * (1 + rng.normal(size=(n, 4))),
    "some are careless": lambda n: lambda rng: MEAN * np.exp(0.8 * rng.normal(size=(n, 1))),
    "a feature ignored": lambda n: lambda rng: MEAN * (rng.uniform(size=(n, 4)) > 0.25),
}


@pytest.mark.slow
@pytest.mark.parametrize("people", PEOPLE)
def test_people_who_differ_are_no_flips(people):
    evident = [estimate_flips(*labelled(3000, 0.0, PEOPLE[people](3000), s)).evident for s in range(5)]
    assert np.count_nonzero(evident) == 0


@pytest.mark.slow
def test_a_poor_reward_is_no_flips():
    """A reward that is right three times in five whatever its margin, as a fit to few pairs of many features is."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        margins = rng.lognormal(0.0, 0.7, 300) * np.where(rng.random(300) < 0.61, 1, -1)
        assert estimate_flips(margins, np.ones(300)).evident == 0


def test_chances_and_posteriors_stay_within_0_and_1():
    certain = Differences(scale=50.0, spread=0.25).agree(np.linspace(-60.0, 60.0, 1001), np.ones(1001))
    for chances in (certain, posterior(certain, 0.2)):
        assert chances.min() >= 0
        assert chances.max() <= 1


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_flips_are_found_and_in_the_interval(share):
    found = [estimate_flips(*labelled(10_000, share, PEOPLE["all alike"](10_000), s)) for s in range(4)]
    assert np.mean([f.evident for f in found]) == pytest.approx(share, abs=0.02)
    assert np.mean([f.honest.scale for f in found]) == pytest.approx(1.0, abs=0.15)
    assert np.mean([f.lower <= share <= f.upper for f in found]) >= 0.9


@pytest.mark.slow
def test_flips_are_found_among_people_who_differ():
    people = lambda rng: MEAN + 0.3 * rng.normal(size=(20_000, 4))  # noqa: E731
    found = [estimate_flips(*labelled(20_000, 0.15, people, s)) for s in range(2)]
    assert all(f.evident > 0 for f in found)
    assert np.mean([f.share for f in found]) == pytest.approx(0.15, abs=0.04)


def test_gradient_of_the_chance_of_agreement():
    rng = np.random.default_rng(0)
    m, v = rng.normal(size=5), rng.uniform(0, 4, size=5)
    at = np.array([0.4, 0.7, 0.5])
    numeric = approx_fprime(at, lambda p: _honest(p, m, v)[0])
    np.testing.assert_allclose(_honest(at, m, v)[1].T, numeric, atol=1e-6)


def test_without_differences_agreement_is_logistic():
    m = np.linspace(-5, 5, 11)
    np.testing.assert_allclose(Differences(1.5).agree(m, np.ones(11)), 1 / (1 + np.exp(-1.5 * m)), rtol=1e-12)


def test_agreement_is_the_mean_over_people():
    """Monte Carlo over tastes and over difficulty; the normal approximation of the logistic law is good to .01."""
    rng = np.random.default_rng(0)
    z, normal = np.array([0.6, -1.2, 0.9]), rng.normal(size=(200_000, 3))
    tastes = Differences(2.0, 0.0, 0.7).agree(np.array([0.8]), np.array([np.linalg.norm(z)]))
    assert tastes == pytest.approx(np.mean(1 / (1 + np.exp(-1.6 - 0.7 * normal @ z))), abs=0.01)
    difficulty = Differences(2.0, 0.5).agree(np.array([0.8]), np.zeros(1))
    assert difficulty == pytest.approx(
        np.mean(1 / (1 + np.exp(-1.6 * np.exp(0.5 * normal[:, 0])))), abs=0.003
    )


def test_posterior_is_calibrated():
    n, share = 200_000, 0.1
    m, length = labelled(n, share, PEOPLE["all alike"](n))
    flipped = np.arange(n) < share * n
    chance = posterior(Differences(1.0).agree(m, length), share)
    for low in (0.1, 0.3, 0.5, 0.7):
        cell = (chance >= low) & (chance < low + 0.2)
        assert flipped[cell].mean() == pytest.approx(chance[cell].mean(), abs=0.03)


def test_absurd_margins_and_lengths_give_numbers():
    m = np.array([1e300, -1e300, 0.0, 1e30, -3.0] * 4)
    found = estimate_flips(m, np.array([1e300, 0.0, 1.0, 1e30, 2.0] * 4))
    assert np.all(np.isfinite(found.honest.agree(m, np.full(20, 1e300))))
    assert 0 <= found.lower <= found.share <= found.upper <= BOUNDS[3][1] + 0.025


def test_without_its_upper_end_the_rest_is_the_same():
    given = labelled(500, 0.1, PEOPLE["all alike"](500))
    assert estimate_flips(*given, upper=False) == estimate_flips(*given)._replace(upper=0.5)
