import io
import math

import pytest
from rich.console import Console

from robust_rlhf_jax.lab.sweeps.summary import did_not_converge, print_table, quartiles, unconverged


def make_rows(gaps, family="random", attack="push_features", algorithm="standard", epsilon=0.1):
    cell = {"family": family, "attack": attack, "algorithm": algorithm, "epsilon": epsilon}
    return [cell | {"seed": i, "normalised_gap": gap} for i, gap in enumerate(gaps)]


def by_hand(values, share):
    """Linear interpolation between order statistics."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def printed(rows, width=80):
    file = io.StringIO()
    print_table(rows, Console(file=file, width=width))
    return file.getvalue()


@pytest.mark.parametrize("gaps", [[0.3], [0.9, 0.1], [0.5, 0.2, 0.4], [0.7, 0.1, 0.05, 0.9, 0.33, 0.6]])
def test_quartiles_by_hand(gaps):
    (found,) = quartiles(make_rows(gaps)).values()
    assert found == pytest.approx([by_hand(gaps, share) for share in (0.25, 0.5, 0.75)])


def test_groups_are_kept_apart():
    rows = make_rows([0.1]) + make_rows([0.2], family="chain") + make_rows([0.3], attack="praise_rare")
    rows += make_rows([0.4], algorithm="uniform_coverage") + make_rows([0.5], epsilon=0.2)
    found = quartiles(rows)
    assert {key: middle for key, (_, middle, _) in found.items()} == {
        ("random", "push_features", "standard", 0.1): 0.1,
        ("chain", "push_features", "standard", 0.1): 0.2,
        ("random", "praise_rare", "standard", 0.1): 0.3,
        ("random", "push_features", "uniform_coverage", 0.1): 0.4,
        ("random", "push_features", "standard", 0.2): 0.5,
    }


def test_a_breakdown_counts_as_the_worst():
    (found,) = quartiles(make_rows([0.0, 0.0, math.nan, math.nan, math.nan])).values()
    assert found == (0.0, 1.0, 1.0)


@pytest.mark.slow
def test_quartiles_of_a_sweep(small_sweep):
    rows = small_sweep[0].rows
    found = quartiles(rows)
    assert len(found) == 2 * 2 * 2 * 3
    key = ("chain", "flip_confident", "low_leverage", 0.2)
    gaps = [
        row["normalised_gap"]
        for row in rows
        if (row["family"], row["attack"], row["algorithm"], row["epsilon"]) == key
    ]
    assert len(gaps) == 2
    assert found[key] == pytest.approx([by_hand(gaps, share) for share in (0.25, 0.5, 0.75)])


def test_table_shows_median_and_quartiles_in_percent():
    text = printed(make_rows([0.1, 0.2, 0.4]) + make_rows([-1e-7], family="chain"))
    assert "20 (15–30)" in text
    assert "0 (0–0)" in text
    for word in ("random: normalised gap in %", "chain: normalised gap in %", "push_features", "ε = 0.1"):
        assert word in text


def test_table_marks_cells_that_were_not_run():
    text = printed(
        make_rows([0.1], epsilon=0.0) + make_rows([0.2], epsilon=0.3, algorithm="uniform_coverage")
    )
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if "(" in line and "–" in line}
    assert rows["standard"] == ["10", "(10–10)", "–"]
    assert rows["uniform_coverage"] == ["–", "20", "(20–20)"]


def test_no_number_is_cut_off_at_80_columns():
    """Five ε with the widest cells there are need more than a line: they wrap."""
    rows = []
    for epsilon in (0.0, 0.05, 0.1, 0.2, 0.3):
        rows += make_rows([0.105, 0.995, 1.0], epsilon=epsilon, algorithm="condition_number_autodiff")
    text = printed(rows)
    assert "…" not in text
    assert text.count("(55–100)") == 5
    assert "condition_number_autodiff" in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80


def test_cells_that_did_not_converge_have_a_star_and_a_line_counts_them():
    rows = [row | {"status": "converged"} for row in make_rows([0.1, 0.2])]
    assert "*" not in printed(rows)
    rows += [row | {"status": "max_steps"} for row in make_rows([0.3, 0.3], epsilon=0.2)]
    assert unconverged(rows) == {("random", "push_features", "standard", 0.2): 2}
    text = printed(rows)
    assert "30* (30–30)" in text
    assert "15 (12–18)" in text
    assert "2 of 4 cells did not converge" in text


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (1, "1 of 4 cells did not converge; its gap counts as it is."),
        (2, "2 of 4 cells did not converge; their gaps count as they are."),
    ],
)
def test_one_cell_is_spoken_of_as_one(bad, said):
    assert did_not_converge(bad, 4) == said
