import re
from html.parser import HTMLParser

import pytest
from report_cells import FACTS, make_cells, put, put_part

from robust_rlhf_jax.lab.report import load_results, render_page
from robust_rlhf_jax.lab.report.numbers import gap_lines, glances, worst_lines
from robust_rlhf_jax.lab.report.page import bar, duration, flat, share

VOID = {"meta", "link", "input", "br"}
HOSTILE = "\"><script>alert('x')</script>&amp;{{ 7 * 7 }}"


class Page(HTMLParser):
    """Text, attributes by tag, and whether every tag is closed where it should be."""

    def __init__(self, html):
        super().__init__()
        self.open, self.texts, self.tags = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data.strip())

    def count(self, tag, **where):
        return sum(name == tag and where.items() <= attrs.items() for name, attrs in self.tags)


def render(folder):
    return render_page(load_results(folder), "measured")


@pytest.fixture
def html(finished):
    return render(finished)


def test_well_formed_with_one_id_each(html):
    page = Page(html)
    assert html.startswith("<!doctype html>")
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs["href"][1:] for _, attrs in page.tags if attrs.get("href", "").startswith("#")]
    assert set(links) <= set(ids)


def test_nothing_is_fetched(html):
    for _, attrs in Page(html).tags:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            assert attrs.get(name, "#").startswith(("#", "data:,"))
    assert not re.search(r"url\(|@import|https?://|fetch\(|import\(", html)


def test_all_names_stand_in_it(html, cells):
    texts = set(Page(html).texts)
    for column in ("family", "attack", "algorithm"):
        assert {row[column] for row in cells} <= texts
    for label in ("plain RLHF", "Algorithm 1", "plain RLHF, clean data", "flip confident"):
        assert label in texts


def test_the_numbers_stand_in_it(html, cells):
    text = "\n".join(Page(html).texts)
    for line in gap_lines(cells):
        row = "\n".join([line.family, line.attack, line.algorithm, f"{line.epsilon:g}"])
        assert f"{row}\n{line.low:.3f}\n{line.median:.3f}\n{line.high:.3f}\n5\n{line.bad}\n" in text.replace(
            "\n\n", "\n"
        )
    for glance in glances(worst_lines(cells)).values():
        assert f"{glance.best.median:.3f}\n" in text
    bad = sum(row["status"] != "converged" for row in cells)
    assert f"Cells that did not converge: {bad} of {len(cells)}" in text


def test_settings_and_versions(html):
    texts = Page(html).texts
    for name, value in (
        ("configuration: preset", "tiny"),
        ("configuration: families", "uniform, chain"),
        ("versions: jax", "0.10.2"),
        ("date", "2026-11-21"),
    ):
        assert texts[texts.index(name) + 1 :][:3].count(value) == 1
    assert any("the last run took 75 s" in text for text in texts)
    assert "unfinished" not in " ".join(texts)


def test_how_many_cells_there_are(finished, unfinished):
    assert "180 cells: 2 families × 2 attacks × 3 ε × 5 seeds × 3 algorithms" in " ".join(
        Page(render(finished)).texts
    )
    assert "150 cells of 2 families, 2 attacks, 3 ε, 5 seeds, 3 algorithms" in " ".join(
        Page(render(unfinished)).texts
    )


def test_an_unfinished_sweep_says_so(unfinished):
    text = " ".join(Page(render(unfinished)).texts)
    assert "This sweep is unfinished. " in text
    assert "shows the 150 cells of 3 finished parts" in text
    assert "leave out 60 cells that not all algorithms of their family have yet" in text
    assert "a sweep writes them when it is finished" in text


def test_without_any_attack_that_all_met_there_are_no_worst_cases(tmp_path):
    put_part(tmp_path, "a", make_cells(attacks=("flip_random",), algorithms=("standard",)))
    put_part(tmp_path, "b", make_cells(attacks=("joint",), algorithms=("sever",)))
    html = render(tmp_path)
    text = " ".join(Page(html).texts)
    assert "No attack has been run against all algorithms yet" in text
    assert "Best under its worst attack" not in text
    assert "joint" in text


def test_cells_that_did_not_converge_are_marked_where_they_are_drawn(tmp_path, cells):
    put(tmp_path / "some" / "results.parquet", cells)
    put(tmp_path / "none" / "results.parquet", [row | {"status": "converged"} for row in cells])
    some, none = (Page(render(tmp_path / name)) for name in ("some", "none"))
    assert some.count("circle", **{"class": "bad"}) > 0 == none.count("circle", **{"class": "bad"})
    assert "A dashed ring marks" in " ".join(some.texts)
    assert "A dashed ring marks" not in " ".join(none.texts)
    card = next(g.best for g in glances(worst_lines(cells)).values() if g.best.bad)
    assert f"{card.bad} of 10 cells did not converge" in some.texts


def test_no_attack_is_blamed_where_all_cost_the_same(tmp_path):
    rows = make_cells(attacks=("flip_random", "joint"), epsilons=(0.1,), seeds=1, algorithms=("standard",))
    put(tmp_path / "results.parquet", [row | {"normalised_gap": 0.3} for row in rows])
    text = " ".join(Page(render(tmp_path)).texts)
    assert "hurt alike by all 2 attacks" in text
    assert "hurt most by" not in text


def test_hostile_names_are_text(tmp_path):
    rows = make_cells((HOSTILE, "chain"), (HOSTILE, "joint"), (0.1,), 2, (HOSTILE, "standard"))
    for row in rows:
        row["status"] = HOSTILE
    put(tmp_path / "results.parquet", rows)
    (tmp_path / "summary.json").write_text('{"</style><script>": "<b onload=alert(1)>"}')
    page = Page(render_page(load_results(tmp_path), HOSTILE))
    assert page.count("script") == 1
    assert page.count("b", onload="alert(1)") == 0
    assert HOSTILE in page.texts
    assert page.count("figure", **{"data-family": HOSTILE}) == 3


def test_two_results_are_two_sections(finished, cells):
    put(finished / "robustness.parquet", cells)
    page = Page(render(finished))
    assert [t for t in page.texts if t in ("Sweep", "Robustness")] == ["Sweep", "Robustness"]
    assert page.count("table") == 2 * 4 + 2 - 1


@pytest.mark.slow
def test_a_large_sweep_stays_small_enough_to_mail(tmp_path):
    """The attacks, three families and algorithms of `reproduce robustness`, four ε."""
    from robust_rlhf_jax.lab.reproduce import robustness

    config = robustness.FULL
    rows = make_cells(config.families, config.attacks, (0.0, 0.05, 0.1, 0.2), 2, config.algorithms)
    put(tmp_path / "robustness.parquet", rows)
    html = render(tmp_path)
    assert len(html.encode()) < 3e6
    assert Page(html).count("figure") == 3 * len(config.attacks) + 3


def test_small_helpers():
    assert [share(x) for x in (0.12345, -1e-9, 1.0, float("nan"))] == ["0.123", "0.000", "1.000", "–"]
    assert [duration(x) for x in (7.2, 600, 9000, None, "1", True)] == [
        "7 s",
        "10 min",
        "2.5 h",
        None,
        None,
        None,
    ]
    assert (bar(0, 100), bar(100, 100)) == (0, 100)
    assert bar(9, 99) == 50
    assert bar(0, 0) == 0
    nested = {"a_b": {"c": [1, 2], "d": {"e": None}}, "f": [["x", 4]], "g": 1.5}
    assert flat(nested) == [
        ("a b: c", "1, 2"),
        ("a b: d: e", "none"),
        ("f", '[["x", 4]]'),
        ("g", "1.5"),
    ]
    assert dict(flat(FACTS))["configuration: n pairs"] == "600"
