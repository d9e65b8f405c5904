"""Every notebook runs from top to bottom in a kernel of its own, at smoke size: `docs/tools/notebook_pages.py`.

What they print is kept, so that a build of the site at smoke size after these tests runs none of them again.
"""

from pathlib import Path

import pytest

WHY = "the notebooks need jupytext, nbclient and ipykernel: pip install 'robust-rlhf-jax[test]'"

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))


@pytest.fixture
def pages(monkeypatch):
    # Here: to import them takes a second, in each worker that collects the tests.
    for package in ("jupytext", "nbclient", "ipykernel"):
        pytest.importorskip(package, reason=WHY)
    monkeypatch.setenv("NOTEBOOK_SMOKE", "1")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "tools"))
    import notebook_pages

    return notebook_pages


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path, pages):
    before = sorted(FOLDER.rglob("*"))
    text, pictures = pages.notebook_page(path.stem)
    assert pictures, "a notebook without a picture"
    assert all(picture.startswith(b"\x89PNG") for picture in pictures.values())
    assert "_refuse" not in text
    assert sorted(FOLDER.rglob("*")) == before


@pytest.mark.slow
def test_the_internet_is_out_of_reach(pages):
    with pytest.raises(ValueError, match=r"tried to reach .{0,3}192\.0\.2\.1"):
        pages.run(
            "# %%\nimport socket\nsocket.create_connection(('192.0.2.1', 80))  # beyond this machine\n",
            "reach",
        )
