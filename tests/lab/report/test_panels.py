import re

import numpy as np
import pytest
from report_cells import make_cells

from robust_rlhf_jax.lab.methods import free_colour
from robust_rlhf_jax.lab.report.numbers import gap_lines, worst_lines
from robust_rlhf_jax.lab.report.panels import gap_panels, worst_panels
from robust_rlhf_jax.lab.report.styles import on_dark, styles
from robust_rlhf_jax.lab.sweeps.curves import COLOURS
from robust_rlhf_jax.lab.sweeps.programs import REFERENCE


def coordinates(path):
    return np.array([[float(x) for x in pair.split(",")] for pair in re.findall(r"[\d.]+,[\d.]+", path)])


def drawn(rows):
    return gap_panels(gap_lines(rows), styles(list(dict.fromkeys(row["algorithm"] for row in rows))))


def value_of(panel, y):
    """The share that stands at height `y`, from the panel's own ticks."""
    ticks = {label: place for place, label in panel.ticks_y}
    return (y - ticks["0"]) / (ticks["1"] - ticks["0"])


def test_a_panel_per_family_and_attack_with_a_line_per_algorithm(cells):
    panels = drawn(cells)
    names = [(f, a) for f in ("uniform", "chain") for a in ("flip confident", "push features")]
    assert [(p.family, p.title) for p in panels] == names
    assert {len(p.lines) for p in panels} == {3}
    assert [p.family for p in worst_panels(worst_lines(cells), styles(list(COLOURS)))] == ["uniform", "chain"]


def test_lines_and_bands_stand_where_the_quartiles_are(cells):
    lines, panel = gap_lines(cells), drawn(cells)[1]
    for line in panel.lines:
        where = ("uniform", "push_features", line.style.name)
        found = [q for q in lines if q[:3] == where]
        path, band = coordinates(line.path), coordinates(line.band)
        expected = [q.median for q in found], [q.high for q in found] + [q.low for q in reversed(found)]
        np.testing.assert_allclose(value_of(panel, path[:, 1]), expected[0], atol=1e-3)
        np.testing.assert_allclose(value_of(panel, band[:, 1]), expected[1], atol=1e-3)
        ticks = [place for place, _ in panel.ticks_x]
        np.testing.assert_allclose(path[:, 0], ticks)
        assert ticks[1] - ticks[0] == pytest.approx(ticks[2] - ticks[1], abs=0.2)


def test_clean_data_measured_once_start_every_line():
    clean = make_cells(attacks=("none",), epsilons=(0.0,), families=("uniform",))
    panels = drawn(clean + make_cells(epsilons=(0.1, 0.2), families=("uniform",)))
    assert [p.title for p in panels] == ["flip confident", "push features"]
    starts = [[line.points[0].y for line in panel.lines] for panel in panels]
    assert starts[0] == starts[1]
    assert {len(line.points) for panel in panels for line in panel.lines} == {3}


def test_clean_data_alone_are_a_panel():
    (panel,) = drawn(make_cells(attacks=("none",), epsilons=(0.0,), families=("uniform",)))
    assert [line.band for line in panel.lines] == [""] * 3


def test_values_outside_stay_in_the_panel():
    rows = make_cells(families=("uniform",))
    for row in rows:
        row["normalised_gap"] = 40 * row["normalised_gap"] - 20
    for panel in drawn(rows):
        for line in panel.lines:
            shares = value_of(panel, coordinates(line.band)[:, 1])
            assert ((shares >= 0) & (shares <= 1)).all()


def test_labels_of_ticks_do_not_touch():
    (panel, *_) = drawn(make_cells(epsilons=(0.0, 0.001, 0.002, 0.1, 0.3)))
    assert [label for _, label in panel.ticks_x] == ["0", "", "", "0.1", "0.3"]


def test_no_two_algorithms_look_the_same():
    """A newcomer and the reference are both grey."""
    found = styles([*COLOURS, "new"]).values()
    for look in (lambda s: s.light, lambda s: s.dark, lambda s: (s.dash, s.marker, s.ours)):
        names = {}
        for style in found:
            names.setdefault(look(style), []).append(style.name)
        alike = [group for group in names.values() if len(group) > 1]
        assert [group for group in alike if group != [REFERENCE, "new"]] == []
    assert len({(style.dash, style.marker, style.ours) for style in found}) == len(found)


def test_free_colours_differ_from_all_and_from_each_other():
    taken = list(COLOURS.values())
    for _ in range(4):
        taken.append(free_colour(taken))
    assert len({on_dark(colour) for colour in taken}) == len(set(taken)) == len(taken)


@pytest.mark.parametrize("colour", COLOURS.values())
def test_colours_stand_out_from_a_dark_ground(colour):
    """Contrast of at least 3:1 with #161618 (WCAG 1.4.11)."""

    def luminance(code):
        parts = np.array([int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ (0.2126, 0.7152, 0.0722)

    assert (luminance(on_dark(colour)) + 0.05) / (luminance("#161618") + 0.05) > 3


def test_points_that_did_not_converge_are_marked(cells):
    lines = {(q.family, q.attack, q.algorithm, q.epsilon): q for q in gap_lines(cells)}
    marked = 0
    for panel in drawn(cells):
        for line in panel.lines:
            for point, epsilon in zip(line.points, (0.0, 0.1, 0.2), strict=True):
                bad = lines[panel.family, panel.title.replace(" ", "_"), line.style.name, epsilon].bad
                assert point.bad == (bad > 0)
                assert (f"{bad} of 5 cells did not converge" in point.text) == (bad > 0)
                marked += point.bad
    assert marked
