"""The oracle that knows the law of labels: its ratio against a grid, and what is said of thresholds and answers."""

from functools import partial

import numpy as np
import pytest

from robust_rlhf_jax.lab.attacks.rater_bots import BOTS, replace_raters

MEAN, SPREAD = np.array([1.5, -1.0]), np.array([[1.0, 0.4], [0.4, 0.5]])
OF = np.repeat(np.arange(6), [1, 3, 6, 9, 12, 4])


@pytest.fixture
def limit():
    import raters_limit

    return raters_limit


def labelled(of, seed=0):
    """Preferred less other, of raters with tastes of N(MEAN, SPREAD)."""
    rng = np.random.default_rng(seed)
    tastes = MEAN + rng.normal(size=(of.max() + 1, 2)) @ np.linalg.cholesky(SPREAD).T
    x = rng.normal(size=(len(of), 2))
    return x * np.where(rng.logistic(size=len(x)) < np.sum(x * tastes[of], axis=1), 1, -1)[:, None]


def on_grid(z, of):
    """log ∫ Π σ(tᵀz) N(t; MEAN, SPREAD) dt of each rater, by sums over a square of 401 × 401 tastes."""
    line = np.linspace(-7, 7, 401)
    t = MEAN + np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    prior = np.exp(-0.5 * np.einsum("gi,ij,gj->g", t - MEAN, np.linalg.inv(SPREAD), t - MEAN))
    prior *= (line[1] - line[0]) ** 2 / (2 * np.pi * np.sqrt(np.linalg.det(SPREAD)))
    found = []
    for k in range(of.max() + 1):
        chance = np.ones(len(t))
        for row in z[of == k]:
            chance /= 1 + np.exp(-t @ row)
        found.append(np.log(np.sum(chance * prior)))
    return np.array(found)


def by_points(limit, z, of):
    law = limit.Law(MEAN, np.linalg.cholesky(SPREAD))
    return limit.look(*limit.by_rater(z, of), law, limit.POINTS).evidence


@pytest.mark.parametrize("kind", BOTS)
def test_the_ratio_is_that_of_sums_over_a_grid(limit, kind):
    clean = labelled(OF)
    rated = replace_raters(np.random.default_rng(1), clean, OF, kind, 0.5)
    z = clean * limit.turns_of(clean, rated)[:, None]
    np.testing.assert_array_equal(z, rated.z[:, :2])
    honest = on_grid(z, OF)
    follows = {"always first": rated.chose_first, "always longer": rated.chose_longer}.get(
        kind, np.zeros(len(OF))
    )
    for k in range(6):
        mine = np.flatnonzero(k == OF)
        if kind == "random":
            bot = len(mine) * np.log(0.5)
        elif kind == "contrary":
            bot = on_grid(-z, OF)[k]
        else:
            bot = 0.0 if (follows[mine] > 0).all() else -np.inf
        found = limit.ratios(kind, partial(by_points, limit), z, OF, rated)[k]
        assert found == pytest.approx(bot - honest[k], abs=0.05)
        assert not (rated.bad[k] and np.isinf(found))


def test_moments_are_those_of_the_grid(limit):
    z = labelled(OF)
    law = limit.Law(MEAN, np.linalg.cholesky(SPREAD))
    found = limit.look(*limit.by_rater(z, OF), law, 20_000, moments=True)
    other = np.random.default_rng(0).normal(size=(20_000, 2)) @ law.root.T + MEAN
    for k in range(6):
        weight = np.prod(1 / (1 + np.exp(-other @ z[k == OF].T)), axis=1)
        mean = weight @ other / weight.sum()
        centred = other - MEAN
        square = (centred * weight[:, None]).T @ centred / weight.sum()
        np.testing.assert_allclose(MEAN + law.root @ found.first[k], mean, atol=0.08)
        np.testing.assert_allclose(law.root @ found.second[k] @ law.root.T, square, atol=0.12)


@pytest.mark.slow
def test_the_law_is_found_from_clean_labels(limit):
    of = np.repeat(np.arange(150), 20)
    law = limit.fit_law(*limit.by_rater(labelled(of), of), 0.7 * MEAN)
    np.testing.assert_allclose(law.mean, MEAN, atol=0.3)
    np.testing.assert_allclose(law.root @ law.root.T, SPREAD, atol=0.35)


def test_the_best_threshold_is_the_best_of_all(limit):
    rng = np.random.default_rng(0)
    honest, bots = np.round(rng.normal(size=60), 1), np.round(rng.normal(size=40) + 1, 1)
    honest[:3], bots[:2] = -np.inf, -np.inf
    best = 0.0
    for least in (*honest, *bots):
        right, wrong = 0.2 * np.mean(bots >= least), 0.8 * np.mean(honest >= least)
        best = max(best, 2 * right / (right + wrong + 0.2))
    assert limit.best_f1(bots, honest, 0.2) == pytest.approx(best)


def test_a_threshold_reaches_both_or_none_does(limit):
    honest = np.arange(1000.0)
    assert limit.reached(np.full(1000, 990.0), honest)  # 10 of 900 honest raters beside 100 bots
    assert not limit.reached(np.full(1000, 985.0), honest)
    assert not limit.reached(np.r_[np.full(850, 1e6), np.zeros(150)], honest)


def test_the_least_number_is_found_to_within_a_twentieth(limit):
    assert limit.least(lambda n: n >= 7) == "7"
    assert 150 <= int(limit.least(lambda n: n >= 150)) <= 158
    assert limit.least(lambda n: False) == f"> {limit.MOST}"


@pytest.mark.slow
def test_the_command_prints_both_tables_and_says_what_is_missing(limit, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(
        "sys.argv", ["", "--sets", "one taste", "taxes", "--quick", "--shared", str(tmp_path)]
    )
    monkeypatch.setattr(limit, "LONG", 200)
    limit.main()
    printed = capsys.readouterr().out
    assert printed.count("\n| one taste | ") == 4
    assert f"taxes is skipped: {tmp_path / 'taxes'}.csv.gz does not exist." in printed
