"""The built site can be read by everybody: texts for pictures, headings in order, contrast, a search that finds.

`BUILT_SITE=site python -m pytest tests/test_site.py -m ""` looks at a site that is there; without it one is built, with
the notebooks at smoke size.
"""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
STYLE = (ROOT / "docs" / "style.css").read_text(encoding="utf-8")
# Words that people search for, and a page that each should lead to.
SOUGHT = {
    "ε": "unknown_epsilon.html",
    "DPO": "data.html",
    "Hugging Face": "data.html",
    "TRL": "data.html",
    "cleanlab": "detection.html",
    "bot": "texts.html",
}
# What lies behind text in the theme's two schemes: the page, and code on it.
BACKGROUNDS = {"default": ("#ffffff", "#f5f5f5"), "slate": ("#1e2129", "#272a35")}
LEAST_CONTRAST = 4.5


class Page(HTMLParser):
    """`headings`: their levels in order; `pictures`: the attributes of each."""

    def __init__(self, text: str):
        super().__init__()
        self.headings: list[int] = []
        self.pictures: list[dict[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "img":
            self.pictures.append(dict(attrs))


def without_text(page: Page) -> list[str]:
    """Sources of the pictures that say nothing to those who do not see them."""
    return [str(found.get("src")) for found in page.pictures if not (found.get("alt") or "").strip()]


def skips(levels: list[int]) -> list[tuple[int, int]]:
    """Headings that are more than one level below the heading before them."""
    return [(above, below) for above, below in pairwise(levels) if below > above + 1]


def luminance(colour: str) -> float:
    """Of "#rrggbb", as WCAG 2 has it."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def words(text: str, separator: str) -> set[str]:
    """As the search splits a text: the separator, and small letters; nothing is trimmed."""
    return {word.lower() for word in re.split(separator, re.sub(r"<[^>]+>", " ", text)) if word}


def pages_with(query: str, index: dict) -> set[str]:
    """Pages one of whose sections has every word of the query."""
    separator = index["config"]["separator"]
    asked = words(query, separator)
    found = [
        doc for doc in index["docs"] if asked and asked <= words(f"{doc['title']} {doc['text']}", separator)
    ]
    return {doc["location"].partition("#")[0] for doc in found}


def test_the_checks_find_what_they_look_for():
    page = Page('<h1>a</h1><h3>b</h3><img src="x.png"><img src="y.png" alt="a map"><img src="z.png" alt=" ">')
    assert without_text(page) == ["x.png", "z.png"]
    assert skips(page.headings) == [(1, 3)]
    assert skips([1, 2, 3, 2, 3]) == []
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    docs = [{"location": "a.html#b", "title": "The share (ε)", "text": "<p>of rows</p>"}]
    assert pages_with("ε", {"config": {"separator": r"[\s()]+"}, "docs": docs}) == {"a.html"}
    assert pages_with("ε", {"config": {"separator": r"[\s\-]+"}, "docs": docs}) == set()


@pytest.mark.parametrize("scheme", BACKGROUNDS)
def test_our_colours_can_be_read(scheme):
    block = re.search(rf'\[data-md-color-scheme="{scheme}"\][^{{]*{{([^}}]*)}}', STYLE)
    assert block, "no colours of this scheme"
    colours = re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block[1])
    assert len(colours) >= 5
    for name, colour in colours:
        for behind in BACKGROUNDS[scheme]:
            assert contrast(colour, behind) >= LEAST_CONTRAST, (name, colour, behind)


def test_no_other_colour_is_ours():
    blocks = re.findall(r"\[data-md-color-scheme[^{]*{[^}]*}", STYLE)
    assert len(blocks) == len(BACKGROUNDS)
    assert len(re.findall("#[0-9a-fA-F]{3,8}\\b", STYLE)) == sum(block.count("#") for block in blocks)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="the site needs mkdocs: pip install 'robust-rlhf-jax[docs]'")
    pytest.importorskip(
        "material", reason="the site needs mkdocs-material: pip install 'robust-rlhf-jax[docs]'"
    )
    if "BUILT_SITE" in os.environ:
        return ROOT / os.environ["BUILT_SITE"]
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NOTEBOOK_SMOKE": "1"},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    found = {
        str(path.relative_to(site)): path for path in sorted(site.rglob("*.html")) if path.name != "404.html"
    }
    assert len(found) > 40
    return {name: Page(path.read_text(encoding="utf-8")) for name, path in found.items()}


@pytest.mark.slow
def test_every_picture_has_a_text(pages):
    assert sum(len(page.pictures) for page in pages.values()) > 20
    assert {name: found for name, page in pages.items() if (found := without_text(page))} == {}


@pytest.mark.slow
def test_every_page_has_one_title_and_no_level_is_skipped(pages):
    assert {name: n for name, page in pages.items() if (n := page.headings.count(1)) != 1} == {}
    assert {name: found for name, page in pages.items() if (found := skips(page.headings))} == {}


@pytest.mark.slow
def test_the_search_finds_what_people_look_for(site):
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    # lunr's trimmer takes every letter but a to z from the ends of words, and ε with it.
    assert "trimmer" not in index["config"]["pipeline"]
    missed = {word: page for word, page in SOUGHT.items() if page not in pages_with(word, index)}
    assert missed == {}
    assert not pages_with("zyzzogeton", index)


@pytest.mark.slow
def test_every_notebook_shows_what_it_prints_and_draws(site):
    notebooks = sorted((ROOT / "notebooks").glob("*.py"))
    assert len(notebooks) >= 10
    for notebook in notebooks:
        text = (site / "notebooks" / f"{notebook.stem}.html").read_text(encoding="utf-8")
        assert 'class="filename">Output<' in text, notebook.stem
        assert f'src="{notebook.stem}_1.png"' in text, notebook.stem
        assert (site / "notebooks" / f"{notebook.stem}_1.png").stat().st_size > 5_000
