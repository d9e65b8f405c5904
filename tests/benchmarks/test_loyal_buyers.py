"""Panels of buyers are what their description says: offers, habits, files."""

import numpy as np
import pytest

from robust_rlhf_jax import load

BRANDS = [f"chosen_brand{i}" for i in (1, 2, 3)]


@pytest.fixture
def study(benchmarks_on_the_path):
    import loyal_buyers

    return loyal_buyers


def repeats(study, panel):
    """How often a person buys the brand of the last trip again."""
    bought = study.purchases(panel, 0)[BRANDS].to_numpy().reshape(panel.people, panel.trips, 3)
    return (bought[:, 1:] == bought[:, :-1]).all(axis=2).mean()


@pytest.mark.slow
def test_loyal_people_buy_the_same_brand_again(study):
    order = [repeats(study, study.PANELS[name]) for name in ("habits", "loyal", "hardly ever change")]
    assert order == sorted(order)
    assert order[0] < 0.7 < 0.85 < order[-1]


@pytest.mark.parametrize("name", ["habits", "all rivals"])
def test_a_file_of_them_is_read_with_its_raters(name, tmp_path, study):
    panel = study.PANELS[name]._replace(people=12, trips=5)
    table = study.purchases(panel, 1)
    assert table.equals(study.purchases(panel, 1))
    table.to_csv(tmp_path / "panel.csv", index=False)
    pairs = load(tmp_path / "panel.csv")
    assert pairs.n_pairs == 12 * 5 * panel.rivals
    assert len(np.unique(pairs.raters)) == 12
    assert pairs.names == ("price", "advertised", "displayed", "brand1", "brand2", "brand3")
    # Of two brands in a pair one at least is not the fourth, and no pair is of one brand.
    brands = np.stack([pairs.chosen[:, 3:], pairs.rejected[:, 3:]])
    assert (brands[0] != brands[1]).any(axis=1).all()
    assert (brands.sum(axis=2) <= 1).all()
