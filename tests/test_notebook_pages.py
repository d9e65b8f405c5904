"""Pages of notebooks: what their cells print and draw, and what is refused."""

import base64
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def pages():
    sys.path.insert(0, str(ROOT / "docs" / "tools"))
    import notebook_pages

    yield notebook_pages
    sys.path.remove(str(ROOT / "docs" / "tools"))


class Cell(SimpleNamespace):
    def get(self, name, default):
        return getattr(self, name, default)


def code(*outputs, alt=None):
    return Cell(cell_type="code", source="f()", outputs=outputs, metadata={"alt": alt} if alt else {})


PICTURE = {"data": {"image/png": base64.b64encode(b"dots").decode(), "text/plain": "<Figure>"}}


def test_what_a_cell_prints_stands_below_it_in_one_fence(pages):
    cell = code({"text": "one\n"}, {"text": "\x1b[31mtwo\x1b[0m\n"}, {"data": {"text/plain": "3"}})
    assert pages.cell_text(cell, "name", {}).endswith('title="Output"}\none\ntwo\n3\n```')


def test_a_picture_stands_below_its_cell_with_its_text(pages):
    pictures = {}
    text = pages.cell_text(code({"text": "one\n"}, PICTURE, alt="A map"), "name", pictures)
    assert text.index("one") < text.index("![A map](name_1.png)")
    assert "<Figure>" not in text
    assert pictures == {"name_1.png": b"dots"}


def test_a_picture_without_a_text_is_refused(pages):
    with pytest.raises(ValueError, match=r"notebooks/name\.py has no text"):
        pages.cell_text(code(PICTURE), "name", {})


def test_a_folder_of_this_machine_is_refused(pages, monkeypatch):
    cells = [Cell(cell_type="markdown", source="# Title"), code({"text": f"{ROOT}/secret\n"})]
    monkeypatch.setattr(pages, "executed", lambda name: SimpleNamespace(cells=cells))
    with pytest.raises(ValueError, match="a folder of this machine"):
        pages.notebook_page("name")


def test_one_sentence_says_what_is_missing(pages, monkeypatch):
    found = pages.importlib.util.find_spec
    monkeypatch.setattr(
        pages.importlib.util,
        "find_spec",
        lambda name: None if name in ("jupytext", "nbclient") else found(name),
    )
    with pytest.raises(ValueError, match=r"need jupytext, nbclient, which are not installed: pip install"):
        pages.executed("own_file")


def test_another_source_or_size_is_run_again(pages, monkeypatch):
    monkeypatch.delenv("NOTEBOOK_SMOKE", raising=False)
    full = pages.digest("print(1)")
    assert full == pages.digest("print(1)") != pages.digest("print(2)")
    monkeypatch.setenv("NOTEBOOK_SMOKE", "1")
    assert pages.digest("print(1)") != full
