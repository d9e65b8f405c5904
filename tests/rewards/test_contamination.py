"""The contaminated likelihood against SciPy's maximum cell by cell; crowds of lies against scattered ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special

from robust_rlhf_jax.rewards import contamination
from robust_rlhf_jax.rewards.contamination import (
    Cells,
    cells_of_lengths,
    contaminated_at_best_length,
    quantile_bins,
)

contaminated = jax.jit(contamination.contaminated, static_argnums=2)


def drawn(n=2000, seed=0):
    """(margins, cells): honest labels, four cells."""
    rng = np.random.default_rng(seed)
    m = np.abs(rng.normal(size=n)) * 2
    m *= np.where(rng.uniform(size=n) < scipy.special.expit(m), 1.0, -1.0)
    return m, (np.arange(n) * 4 // n).astype(np.int32)


def bins_of(values, bins):
    """`quantile_bins` of pairs that are all informative."""
    return quantile_bins(jnp.asarray(values), jnp.ones(len(values)), jnp.asarray(bins), bins)


def cells_in(of_length, bins):
    """`Cells` of pairs that are all informative."""
    return Cells(jnp.asarray(of_length, jnp.int32), jnp.ones(len(of_length)), jnp.asarray(bins), bins)


def cost(rate, m):
    """−log-likelihood of the margins of one cell."""
    honest = scipy.special.expit(m)
    return -np.sum(np.where(m < 0, np.log((1 - rate) * honest + rate), np.log((1 - rate) * honest)))


def test_every_rate_is_the_most_likely_one_or_0(x64, monkeypatch):
    monkeypatch.setattr(contamination, "STEPS", 400)
    m, cell = drawn()
    m[:80] = -np.abs(m[:80]) - 1.0
    m[1600:1800] = -3.0
    found = jax.jit(lambda *given: contamination.contaminated(*given, 4, jnp.ones(len(given[0]))))(
        jnp.asarray(m), jnp.asarray(cell)
    )
    price, total = 0.5 * np.log(len(m)), 0.0
    for c in range(4):
        part = m[cell == c]
        best = scipy.optimize.minimize_scalar(cost, bounds=(0, 1 - 1e-6), args=(part,), method="bounded")
        opened = cost(0.0, part) - best.fun > price
        np.testing.assert_allclose(np.asarray(found.rates)[cell == c], best.x if opened else 0.0, atol=1e-4)
        total -= best.fun + price if opened else cost(0.0, part)
    assert 0 < (np.asarray(found.rates) > 0).mean() < 1
    np.testing.assert_allclose(np.sum(found.log_likelihoods), total, rtol=1e-8)
    rate = np.asarray(found.rates)
    lies = np.where(m < 0, rate / np.maximum(rate + (1 - rate) * scipy.special.expit(m), 1e-30), 0.0)
    np.testing.assert_allclose(found.lies, lies, atol=1e-8)
    np.testing.assert_allclose(found.needed, rate.mean(), rtol=1e-8)
    np.testing.assert_allclose(found.convicted, np.where(rate > 0.5, rate, 0).mean(), rtol=1e-8)


@pytest.mark.slow
def test_overdispersed_labels_pay_as_much_more_for_a_rate(x64):
    m, cell = jnp.asarray(drawn()[0]), jnp.asarray(drawn()[1])
    m = m.at[:100].set(-3.0)
    free = contaminated(m, cell, 4, jnp.ones(2000))
    gain = float(jnp.sum(free.log_likelihoods - jax.nn.log_sigmoid(m))) + 0.5 * np.log(2000)
    once = gain / (0.5 * np.log(2000))
    for times, opened in ((0.99 * once, True), (1.01 * once, False)):
        found = contaminated(m, cell, 4, jnp.ones(2000), times)
        assert bool(jnp.any(found.rates > 0)) is opened
        left = gain - 0.5 * np.log(2000) * times if opened else 0.0
        np.testing.assert_allclose(
            jnp.sum(found.log_likelihoods - jax.nn.log_sigmoid(m)), left, rtol=1e-9, atol=1e-9
        )


def test_few_steps_are_near_enough():
    m, cell = drawn()
    m[1600:1800] = -3.0
    few, many = (
        jax.jit(lambda *given: contamination.contaminated(*given, 4, jnp.ones(len(given[0]))))(
            jnp.asarray(m), jnp.asarray(cell)
        )
        for contamination.STEPS in (3, 400)
    )
    contamination.STEPS = 3
    assert abs(float(jnp.sum(few.log_likelihoods - many.log_likelihoods))) < 2.0
    assert abs(float(few.needed - many.needed)) < 0.01


def test_honest_labels_need_no_corruption():
    needed = [
        float(contaminated(*map(jnp.asarray, drawn(seed=seed)), 4, jnp.ones(2000)).needed)
        for seed in range(20)
    ]
    assert np.mean(np.asarray(needed) > 0) < 0.1
    assert max(needed) < 0.03


@pytest.mark.slow
def test_a_crowd_is_a_cheaper_accusation_than_scattered_pairs():
    m, _ = drawn()
    surest = np.argsort(-np.abs(m))
    scattered, crowded = m.copy(), m.copy()
    scattered[surest[:400:4]] = -np.abs(scattered[surest[:400:4]])
    crowded[surest[:100]] = -np.abs(crowded[surest[:100]])
    by_margin = np.asarray(bins_of(np.abs(m), 20))
    values = [
        float(
            jnp.sum(
                contaminated(
                    jnp.asarray(margins), jnp.asarray(by_margin), 20, jnp.ones(len(m))
                ).log_likelihoods
            )
        )
        for margins in (scattered, crowded)
    ]
    assert values[1] > values[0] + 50


@pytest.mark.slow
def test_the_length_of_margins_that_are_too_sure_is_mended():
    m, _ = drawn()
    cells = cells_in(np.zeros(len(m)), 6)
    for times in (1.0, 2.0, 4.0):
        judged = contaminated_at_best_length(jnp.asarray(times * m, jnp.float32), cells)
        np.testing.assert_allclose(judged.scale * times, 1.0, rtol=0.01)
        assert judged.found.needed < 0.01
        np.testing.assert_allclose(judged.honest, scipy.special.log_expit(m).sum(), rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("bins", [2, 5])
def test_equal_values_fall_in_one_bin(bins):
    values = np.random.default_rng(0).integers(0, 4, 103).astype(float)
    found = np.asarray(bins_of(values, bins))
    assert all(len(set(found[values == v])) == 1 for v in range(4))
    distinct = np.asarray(bins_of(np.random.default_rng(1).normal(size=100), bins))
    np.testing.assert_array_equal(np.bincount(distinct), 100 // bins)


@pytest.mark.slow
def test_margins_that_are_not_finite_explain_nothing():
    """No likelihood of theirs may look better than an honest one."""
    found = contaminated_at_best_length(jnp.full(50, jnp.nan), cells_in(np.zeros(50), 2))
    assert np.all(np.asarray(found.found.log_likelihoods) == -np.inf)
    assert found.value == -jnp.inf


@pytest.mark.slow
def test_noise_by_margin_is_the_mean_rate_of_like_pairs():
    rng = np.random.default_rng(0)
    margins, rates = rng.normal(size=900) * 3, rng.uniform(size=900)
    found = contamination.noise_by_margin(
        jnp.asarray(margins), jnp.asarray(rates), bins_of(np.abs(margins), 3), cells_in(np.zeros(900), 3)
    )
    parts = np.array_split(np.argsort(np.abs(margins)), 3)
    np.testing.assert_allclose(found.margins, [np.abs(margins[part]).mean() for part in parts], rtol=1e-5)
    np.testing.assert_allclose(found.rates, [rates[part].mean() for part in parts], rtol=1e-5)
    # Between two middles it is between their rates, beyond them theirs, whatever the sign.
    middle = float(found.margins[:2].mean())
    np.testing.assert_allclose(found.at(jnp.asarray([-middle, middle])), found.rates[:2].mean(), rtol=1e-5)
    np.testing.assert_allclose(
        found.at(jnp.asarray([0.0, 99.0])), found.rates[jnp.asarray([0, 2])], rtol=1e-5
    )


@pytest.mark.slow
def test_noise_by_margin_of_margins_that_are_all_the_same():
    found = contamination.noise_by_margin(
        jnp.ones(50), jnp.full(50, 0.3), bins_of(np.ones(50), 4), cells_in(np.zeros(50), 4)
    )
    np.testing.assert_allclose(found.at(jnp.asarray([1.0])), 0.3, rtol=1e-6)


def test_bins_are_the_fourth_root_of_the_informative_pairs():
    """However many others there are: of 10,000 pairs the last n are informative."""
    cells = jax.jit(cells_of_lengths)
    counts = [1, 2, 38, 39, 40, 150, 151, 410, 411, 1000, 4100, 4101, 9999, 10000]
    found = [
        int(cells(jnp.ones(10000), jnp.where(jnp.arange(10000) < 10000 - n, 0.0, 1.0)).bins) for n in counts
    ]
    assert found == [max(2, round(n**0.25)) for n in counts]


@pytest.mark.slow
def test_pairs_that_are_not_informative_are_as_good_as_absent():
    rng = np.random.default_rng(0)
    m, lengths = rng.normal(size=900) * 2, rng.uniform(1, 2, size=900)
    m[:60], lengths[:60] = -3.0, 1.9
    place = np.sort(rng.choice(1500, 900, replace=False))
    more, long, informative = np.zeros(1500), np.zeros(1500), np.zeros(1500)
    more[place], long[place], informative[place] = m, lengths, 1.0
    alone = contaminated_at_best_length(jnp.asarray(m), cells_of_lengths(jnp.asarray(lengths), jnp.ones(900)))
    among = contaminated_at_best_length(
        jnp.asarray(more), cells_of_lengths(jnp.asarray(long), jnp.asarray(informative))
    )
    assert alone.found.needed > 0.05
    for name in ("scale", "value", "honest"):
        np.testing.assert_allclose(getattr(among, name), getattr(alone, name), rtol=1e-5)
    for name in ("needed", "convicted"):
        np.testing.assert_allclose(getattr(among.found, name), getattr(alone.found, name), rtol=1e-5)
    for name in ("rates", "lies", "log_likelihoods"):
        here = np.asarray(getattr(among.found, name))[place]
        np.testing.assert_allclose(here, getattr(alone.found, name), rtol=1e-4, atol=1e-6)
    assert float(jnp.max(among.found.lies * (1 - informative))) == 0
    at = jnp.linspace(-6, 6, 41)
    np.testing.assert_allclose(among.noise.at(at), alone.noise.at(at), atol=1e-5)
