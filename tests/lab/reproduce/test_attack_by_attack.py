"""Who is ahead under each attack, by hand."""

import numpy as np
import pytest

from robust_rlhf_jax.lab.reproduce.attack_by_attack import duel_table, duels

# (algorithm, attack) → returns of two data sets; "mine" and "also_mine" are ours.
RETURNS = {
    ("mine", "a"): (0.90, 0.92),
    ("also_mine", "a"): (0.5, 0.5),
    ("rival", "a"): (0.95, 0.95),
    ("other", "a"): (0.1, 0.2),
    ("clean_reference", "a"): (1.0, 1.0),
    ("mine", "b"): (0.80, 0.80),
    ("also_mine", "b"): (0.9, 0.9),
    ("rival", "b"): (0.40, 0.40),
    ("other", "b"): (0.905, 0.905),
    ("clean_reference", "b"): (1.0, 1.0),
}
OURS = ("mine", "also_mine", "not_run")


@pytest.fixture
def rows():
    return [
        {"family": "f", "attack": attack, "epsilon": 0.1, "seed": seed, "algorithm": name, "normalised_gap": 1 - value}
        for (name, attack), values in RETURNS.items()
        for seed, value in enumerate(values)
    ]  # fmt: skip


def test_each_attack_has_its_own_best_and_the_reference_takes_no_part(rows):
    a, b = duels(rows, OURS)["f", 0.1]
    assert (a.attack, a.rival, a.ours) == ("a", "rival", "mine")
    assert (b.attack, b.rival, b.ours) == ("b", "other", "also_mine")
    np.testing.assert_allclose([a.rival_return, a.our_return, a.lead], [0.95, 0.91, 0.04])
    np.testing.assert_allclose([b.rival_return, b.our_return, b.lead], [0.905, 0.9, 0.005])


def test_the_table_has_worst_cases_and_leads(rows):
    """Under their worst attacks: mine .8, also_mine .5, rival .4, other .15."""
    clean = [{**row, "epsilon": 0.0, "attack": "none"} for row in rows if row["attack"] == "a"]
    _, _, line = duel_table(rows + clean, OURS).splitlines()
    assert line == (
        "| f | 0.1 | 0.800 (0.80–0.80) `mine` | 0.400 (0.40–0.40) `rival` | 2 of 2 | 1 |"
        " 0.040 by `rival` (a, 0.950 to 0.910) |"
    )


def test_where_ours_is_ahead_no_lead_is_shown(rows):
    under_b = [row for row in rows if row["algorithm"] != "other" and row["attack"] == "b"]
    assert duel_table(under_b, OURS).splitlines()[-1].endswith("| 0 of 1 | 0 | none |")
