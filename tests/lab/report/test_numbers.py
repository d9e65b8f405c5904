import numpy as np
import pytest
from report_cells import make_cells

from robust_rlhf_jax.lab.report import numbers


def gaps_of(rows, **where):
    return np.array([r["normalised_gap"] for r in rows if all(r[k] == v for k, v in where.items())])


def test_quartiles_of_every_line(cells):
    lines = numbers.gap_lines(cells)
    assert len(lines) == 2 * 2 * 3 * 3
    for line in lines:
        where = {name: getattr(line, name) for name in ("family", "attack", "algorithm", "epsilon")}
        expected = np.quantile(gaps_of(cells, **where), (0.25, 0.5, 0.75))
        np.testing.assert_allclose([line.low, line.median, line.high], expected)
        assert line.n == 5


def test_worst_case_of_every_line(cells):
    lines = numbers.worst_lines(cells)
    assert len(lines) == 2 * 3 * 3
    for line in lines:
        where = {name: getattr(line, name) for name in ("family", "algorithm", "epsilon")}
        gaps = np.stack([gaps_of(cells, attack=a, **where) for a in ("flip_confident", "push_features")])
        expected = np.quantile(1 - gaps.max(axis=0), (0.25, 0.5, 0.75))
        np.testing.assert_allclose([line.low, line.median, line.high], expected)
        attack = ("flip_confident", "push_features")[gaps.mean(axis=1).argmax()]
        assert (line.attack, line.attacks) == (attack if line.epsilon else "none", 2)


def test_a_breakdown_counts_as_the_worst():
    (row,) = make_cells(("chain",), ("flip_random",), (0.1,), 1, ("standard",))
    row["normalised_gap"] = float("nan")
    assert numbers.gap_lines([row])[0].median == 1
    assert numbers.worst_lines([row])[0].median == 0


def test_the_best_is_the_highest_median_and_no_reference(cells):
    lines = numbers.worst_lines(cells)
    found = numbers.glances(lines)
    assert set(found) == {(f, e) for f in ("uniform", "chain") for e in (0.0, 0.1, 0.2)}
    for (family, epsilon), glance in found.items():
        medians = {x.algorithm: x.median for x in lines if (x.family, x.epsilon) == (family, epsilon)}
        assert glance.plain == medians["standard"]
        del medians["clean_reference"]
        assert glance.best.algorithm == max(medians, key=lambda name: medians[name])


def test_only_what_all_algorithms_have_is_compared(cells):
    assert numbers.comparable(cells) == cells
    missing = {"family": "chain", "attack": "push_features", "epsilon": 0.2, "seed": 3}
    lacks = lambda row: all(row[k] == v for k, v in missing.items())  # noqa: E731
    fewer = [row for row in cells if not (lacks(row) and row["algorithm"] == "standard")]
    assert numbers.comparable(fewer) == [row for row in cells if not lacks(row)]


def test_statuses_add_up(cells):
    lines = numbers.status_lines(cells)
    bad = [row for row in cells if row["status"] != "converged"]
    assert sum(line.n for line in lines) == len(bad) > 0
    assert {line.status for line in lines} == {"max_steps"}
    assert all(line.n <= line.of == 5 for line in lines)
    assert [line.n for line in lines] == sorted((line.n for line in lines), reverse=True)


def test_oracle_calls(cells):
    for line in numbers.calls_lines(cells):
        calls = [row["oracle_calls"] for row in cells if row["algorithm"] == line.algorithm]
        assert (line.low, line.median, line.high) == (min(calls), np.median(calls), max(calls))


def test_suboptimality_without_a_normalised_gap():
    rows = [
        {"family": "f", "attack": "a", "algorithm": "x", "epsilon": e, "seed": s, "suboptimality": e * s}
        for e in (0.1, 0.2)
        for s in range(4)
    ]
    lines = numbers.unscaled_lines(rows)
    assert [line.epsilon for line in lines] == [0.1, 0.2]
    for line in lines:
        losses = line.epsilon * np.arange(4)
        assert line.mean == pytest.approx(losses.mean())
        expected = np.quantile(losses, (0.25, 0.5, 0.75))
        np.testing.assert_allclose([line.low, line.median, line.high], expected)


def test_order_of_the_page():
    rows = make_cells(
        families=("z", "b"), attacks=("strange", "adaptive", "none"), algorithms=("new", "sever", "standard")
    )
    axes = numbers.axes_of(rows)
    assert axes.families == ["z", "b"]
    assert axes.attacks == ["none", "adaptive", "strange"]
    assert axes.algorithms == ["standard", "sever", "new"]
    assert (axes.epsilons, axes.seeds) == ([0.0, 0.1, 0.2], [0, 1, 2, 3, 4])
