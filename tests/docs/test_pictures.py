"""No picture or marked table of the docs is older than what it shows, unless its page says so."""

import datetime

import pytest


@pytest.fixture
def figures():
    import figures

    return figures


def test_every_figure_of_the_docs_is_listed_shown_and_of_todays_code(figures):
    assert figures.complaints(figures.read()) == []


def test_every_witness_has_numbers_and_watches_a_figure(figures):
    from witnesses import WITNESSES

    manifest = figures.read()
    assert set(manifest["witness"]) == set(WITNESSES)
    assert set(WITNESSES) == {name for entry in manifest["figure"].values() for name in entry["shows"]}


@pytest.fixture
def little_docs(tmp_path, figures):
    """A page with a picture and a marked table, and their manifest."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.png").write_bytes(b"picture")
    (docs / "page.md").write_text("Of 2026-11-24.\n![It](a.png)\n<!-- t:start -->\n| 1 |\n<!-- t:end -->\n")
    manifest = {"witness": {"fit": {"numbers": [0.5]}}, "figure": {}}
    then = {"fit": figures.digest_of_witness(manifest, "fit")}
    for name in ("a.png", "page.md#t"):
        manifest["figure"][name] = {
            "command": "draw it", "drawn": datetime.date(2026, 11, 24), "shows": dict(then),
            "digest": figures.digest(figures.content(name, docs)),
        }  # fmt: skip
    return docs, manifest


def test_good_figures_have_no_complaints(figures, little_docs):
    docs, manifest = little_docs
    assert figures.complaints(manifest, docs) == []


def spoil_page(docs, old, new):
    page = docs / "page.md"
    page.write_text(page.read_text().replace(old, new))


SPOILT = {
    "is listed in figures.toml and is not there": lambda docs, m: (docs / "a.png").unlink(),
    "page.md#t is listed in figures.toml and is not there": lambda docs, m: spoil_page(docs, "t:start", "s"),
    "b.png is in no entry of figures.toml": lambda docs, m: (docs / "b.png").write_bytes(b"new"),
    "page.md#u is in no entry": lambda docs, m: spoil_page(docs, "Of", "<!-- u:start -->x<!-- u:end --> Of"),
    "No page shows a.png": lambda docs, m: spoil_page(docs, "a.png", "c.png"),
    "a.png is not the one that was stamped": lambda docs, m: (docs / "a.png").write_bytes(b"other"),
    "page.md#t is not the one that was stamped": lambda docs, m: spoil_page(docs, "| 1 |", "| 2 |"),
    "says that it is of 2026-11-24": lambda docs, m: spoil_page(docs, "2026-11-24", "yesterday"),
    "and fit gives other numbers since then: draw it with draw it": lambda docs, m: m["witness"].update(
        fit={"numbers": [0.6]}
    ),
    "is up to date, and its entry has `says`": lambda docs, m: m["figure"]["a.png"].update(says="Of old."),
}


@pytest.mark.parametrize("sentence", SPOILT)
def test_what_is_wrong_with_a_figure_is_said(figures, little_docs, sentence):
    docs, manifest = little_docs
    SPOILT[sentence](docs, manifest)
    assert any(sentence in found for found in figures.complaints(manifest, docs))


def test_an_old_figure_may_stay_where_its_page_says_that_it_is_old(figures, little_docs):
    docs, manifest = little_docs
    manifest["witness"]["fit"]["numbers"] = [0.6]
    for entry in manifest["figure"].values():
        entry["says"] = "Drawn before the new rule."
    assert all("does not say so" in found for found in figures.complaints(manifest, docs))
    spoil_page(docs, "Of 2026", "Drawn before\nthe new rule. Of 2026")
    assert figures.complaints(manifest, docs) == []


def test_a_stamp_makes_a_figure_one_of_today(figures, little_docs, monkeypatch):
    docs, manifest = little_docs
    (docs / "a.png").write_bytes(b"drawn anew")
    manifest["witness"]["fit"]["numbers"] = [0.6]
    monkeypatch.setattr(figures, "content", lambda name, docs=docs, real=figures.content: real(name, docs))
    for name in manifest["figure"]:
        figures.stamp(name, manifest, datetime.date(2026, 11, 24))
    assert figures.complaints(manifest, docs) == []


def test_the_first_picture_of_a_notebook_is_taken(figures):
    nbformat = pytest.importorskip("nbformat")
    from notebook_picture import first_picture

    outputs = [
        nbformat.v4.new_output("display_data", data=data)
        for data in ({"text/plain": "1"}, {"image/png": "cG5n"}, {"image/png": "b3RoZXI="})
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", outputs=outputs)])
    assert first_picture(notebook) == b"png"


def test_commands_of_figures_name_files_that_are_there(figures):
    import re

    entries = figures.read()["figure"]
    named = {
        path for entry in entries.values() for path in re.findall(r"python ([\w/]+\.py)", entry["command"])
    }
    assert len(named) >= 8
    assert [path for path in sorted(named) if not (figures.ROOT / path).is_file()] == []
