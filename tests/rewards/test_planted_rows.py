"""What a filter removed: honest rows that lie far out, or rows that somebody planted?"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.rewards.planted_rows import CERTAIN, ENOUGH, excess_surprise, removal_is_telling

N, FAR = 4000, 400
THETA = jnp.array([1.0, -2.0, 0.5])


@pytest.fixture(scope="module")
def rows():
    """(x, labels of the model, the far tenth of the rows)."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 3))
    x[:FAR] *= 4
    labels = np.where(rng.uniform(size=N) < 1 / (1 + np.exp(-x @ np.asarray(THETA))), 1.0, -1.0)
    return jnp.asarray(x, jnp.float32), jnp.asarray(labels, jnp.float32), np.arange(N) < FAR


def test_excess_is_zero_on_average_whatever_the_margins(rows):
    x, labels, far = rows
    excess = np.asarray(excess_surprise(THETA, x, labels))
    for part in (excess[far], excess[~far]):
        assert abs(part.mean()) < 5 * part.std() / np.sqrt(len(part))


def test_excess_is_the_surprise_less_the_entropy(rows):
    x, labels, _ = rows
    sure = 1 / (1 + np.exp(-np.asarray(x, float) @ np.asarray(THETA, float)))
    entropy = -(sure * np.log(sure) + (1 - sure) * np.log1p(-sure))
    surprise = -np.log(np.where(np.asarray(labels) > 0, sure, 1 - sure))
    fine = (sure > 1e-6) & (sure < 1 - 1e-6)
    found = np.asarray(excess_surprise(THETA, x, labels))
    np.testing.assert_allclose(found[fine], (surprise - entropy)[fine], atol=1e-4)


def test_rows_that_no_label_could_surprise_stay_finite():
    x = jnp.asarray([[400.0, 0.0, 0.0], [-400.0, 0.0, 0.0]])
    np.testing.assert_allclose(excess_surprise(THETA, x, jnp.asarray([1.0, 1.0])), [0.0, 400.0], atol=1e-3)


def planted(labels, x, far):
    """What each case does to the far rows' labels."""
    right = jnp.sign(x @ THETA)
    return {
        "honest": labels,
        "lies": jnp.where(far, -right, labels),
        "too sure": jnp.where(far, right, labels),
    }


@pytest.mark.parametrize(("case", "telling"), [("honest", False), ("lies", True), ("too sure", True)])
def test_only_planted_rows_tell(case, telling, rows):
    x, labels, far = rows
    x = x.at[:FAR].multiply(0.25) if case == "too sure" else x  # far in a direction of no consequence
    survivors = jnp.where(far, 0.0, 1.0)
    excess = excess_surprise(THETA, x, planted(labels, x, far)[case])
    assert bool(jax.jit(removal_is_telling)(excess, survivors)) == telling


def test_random_flips_everywhere_do_not_tell(rows):
    x, _, far = rows
    small = x.at[:FAR].multiply(0.25)
    rng = np.random.default_rng(1)
    sure = 1 / (1 + np.exp(-np.asarray(small) @ np.asarray(THETA)))
    labels = np.where(rng.uniform(size=N) < sure, 1.0, -1.0) * np.where(rng.uniform(size=N) < 0.1, -1, 1)
    excess = excess_surprise(THETA, small, jnp.asarray(labels, jnp.float32))
    assert not removal_is_telling(excess, jnp.where(far, 0.0, 1.0))


@pytest.mark.parametrize(("share", "telling"), [(0.98, False), (1.02, True), (-0.98, False), (-1.02, True)])
def test_means_are_apart_by_standard_errors(share, telling):
    """A hundred removed rows of deviation 2 beside a thousand of deviation 1."""
    removed = np.arange(1100) < 100
    signs = np.where(np.arange(1100) % 2, 1.0, -1.0)
    apart = share * CERTAIN * np.sqrt(4.0 / 100 + 1.0 / 1000)
    excess = jnp.asarray(np.where(removed, 2.0 * signs + apart, signs))
    assert removal_is_telling(excess, jnp.asarray(1.0 - removed)) == telling


@pytest.mark.parametrize(("count", "telling"), [(ENOUGH, False), (ENOUGH - 0.5, True)])
def test_fewer_removed_than_enough_are_believed(count, telling):
    """Nothing tells them apart; of one row half may be removed."""
    removed = np.clip(count - np.arange(200), 0.0, 1.0)
    excess = np.where(np.arange(200) % 2, 1.0, -1.0)
    assert removal_is_telling(jnp.asarray(excess), jnp.asarray(1.0 - removed)) == telling


def test_a_handful_of_removed_rows_is_believed(rows):
    x, labels, _ = rows
    survivors = jnp.ones(N).at[:5].set(0.0)
    assert removal_is_telling(excess_surprise(THETA, x, labels), survivors)
