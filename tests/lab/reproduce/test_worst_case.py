"""The worst attack is chosen per seed; areas against closed forms."""

import numpy as np
import pytest

from robust_rlhf_jax.lab.reproduce import area, worst_cases
from robust_rlhf_jax.lab.reproduce.robustness import areas, best_of, robustness_table
from robust_rlhf_jax.lab.reproduce.worst_case import NO_CULPRIT


def row(gap, attack="a", seed=0, epsilon=0.1, algorithm="standard", family="f"):
    return {
        "family": family,
        "attack": attack,
        "epsilon": epsilon,
        "seed": seed,
        "algorithm": algorithm,
        "normalised_gap": gap,
    }


def test_every_seed_meets_its_own_worst_attack():
    rows = [row(0.1, "a", 0), row(0.3, "b", 0), row(0.5, "a", 1), row(0.2, "b", 1), row(0.4, "b", 2)]
    case = worst_cases(rows)["f", "standard", 0.1]
    np.testing.assert_allclose(np.sort(case.returns), [0.5, 0.6, 0.7])
    np.testing.assert_allclose(case.quartiles, [0.55, 0.6, 0.65])
    np.testing.assert_allclose(case.spread, 0.1)


def test_the_culprit_is_the_attack_that_costs_most_not_the_first_by_name():
    """In the median seed both attacks tie, and `a` comes first; `b` costs more in another seed."""
    rows = [
        row(0.1, "a", 0),
        row(0.1, "b", 0),
        row(0.2, "a", 1),
        row(0.2, "b", 1),
        row(0.2, "a", 2),
        row(0.6, "b", 2),
    ]
    assert worst_cases(rows)["f", "standard", 0.1].attack == "b"


def test_where_no_attack_costs_more_than_another_none_is_named():
    rows = [row(gap, attack, seed) for seed, gap in enumerate((0.1, 0.2)) for attack in ("a", "b")]
    assert worst_cases(rows)["f", "standard", 0.1].attack == NO_CULPRIT
    two = rows + [r | {"epsilon": 0.2} for r in rows]
    assert robustness_table(two).splitlines()[-1].endswith("| 0.850 (0.83–0.88) | 0.850 (0.83–0.88) |")
    assert worst_cases([row(0.1, "a")])["f", "standard", 0.1].attack == "a"


def test_more_attacks_never_help():
    rng = np.random.default_rng(0)
    rows = [row(g, a, s) for (a, s), g in zip(np.ndindex(4, 5), rng.uniform(size=20), strict=True)]
    few = worst_cases([r for r in rows if r["attack"] < 2])["f", "standard", 0.1]
    everything = worst_cases(rows)["f", "standard", 0.1]
    assert (np.sort(everything.returns) <= np.sort(few.returns)).all()
    left_out = worst_cases(rows, without=(2, 3))["f", "standard", 0.1]
    np.testing.assert_array_equal(left_out.returns, few.returns)


def test_nan_counts_as_the_worst():
    assert worst_cases([row(np.nan)])["f", "standard", 0.1].returns == [0.0]


def test_area_of_a_line_and_of_no_loss():
    epsilons = np.array([0.0, 0.05, 0.2])
    np.testing.assert_allclose(area(epsilons, np.ones(3)), 1.0)
    np.testing.assert_allclose(area(epsilons, 1 - 2 * epsilons), 1 - 0.2)


@pytest.fixture
def table_rows():
    """Two algorithms, two ε; the second is better."""
    rows = []
    for algorithm, slope in (("standard", 3.0), ("uniform_coverage", 1.0)):
        for epsilon in (0.0, 0.1, 0.2):
            rows += [
                row(slope * epsilon + 0.02 * s, "none" if epsilon == 0 else "push", s, epsilon, algorithm)
                for s in range(3)
            ]
    return rows


def test_areas_rank_and_the_table_shows_it(table_rows):
    sizes = areas(table_rows)
    np.testing.assert_allclose(sizes["f", "uniform_coverage"], 1 - 0.1 - 0.02)
    np.testing.assert_allclose(sizes["f", "standard"], 1 - 0.3 - 0.02)
    lines = robustness_table(table_rows).splitlines()
    assert lines[0] == "**f**"
    assert lines[4].startswith("| **`uniform_coverage`** | 0.880 | 0.980 (")
    assert lines[5].startswith("| `standard` | 0.680 |")
    assert lines[5].endswith("0.380 (0.37–0.39) push |")


def test_best_of_names(table_rows):
    best = best_of(table_rows, ("standard", "uniform_coverage"))
    assert {key: name for key, (name, _) in best.items() if key[1] > 0} == {
        ("f", 0.1): "uniform_coverage",
        ("f", 0.2): "uniform_coverage",
    }
    assert best_of(table_rows, ("standard",))["f", 0.2][0] == "standard"
