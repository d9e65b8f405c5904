import numpy as np
import pytest

from robust_rlhf_jax.audit.flips import estimate_flips, posterior


def margins(n, share, scale=1.0, seed=0):
    """Of a calibrated model, with a share of the labels flipped."""
    rng = np.random.default_rng(seed)
    score = 3 * rng.normal(size=n)
    label = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-score)), 1, -1)
    label[: int(share * n)] *= -1
    return label * score / scale


def test_clean_labels_show_no_flips():
    evident = [estimate_flips(margins(2000, 0.0, seed=s)).evident for s in range(20)]
    assert np.count_nonzero(evident) == 0


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_flips_are_found_and_in_the_interval(share):
    found = [estimate_flips(margins(5000, share, scale=2.0, seed=s)) for s in range(20)]
    assert np.mean([f.share for f in found]) == pytest.approx(share, abs=0.02)
    assert np.mean([f.scale for f in found]) == pytest.approx(2.0, abs=0.25)
    assert np.mean([f.lower <= share <= f.upper for f in found]) >= 0.9


def test_posterior_is_calibrated():
    m, share = margins(200_000, 0.1), 0.1
    flipped = np.arange(len(m)) < share * len(m)
    chance = posterior(m, estimate_flips(m)._replace(scale=1.0), share)
    for low in (0.1, 0.3, 0.5, 0.7):
        cell = (chance >= low) & (chance < low + 0.2)
        assert flipped[cell].mean() == pytest.approx(chance[cell].mean(), abs=0.03)
