"""The front page, the pages of the site and the API reference, without building the site."""

import contextlib
import io
import re
import sys
from pathlib import Path

import pytest

import robust_rlhf_jax

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
# Pages that docs/tools/hooks.py makes.
MADE = ("notebooks/", "timings.md", "benchmarks.md", "contributing.md", "changelog.md", "reference/")


@pytest.fixture(scope="module")
def names():
    sys.path.insert(0, str(ROOT / "docs" / "tools"))
    import public_names

    yield public_names
    sys.path.remove(str(ROOT / "docs" / "tools"))


def test_the_front_page_is_short_and_has_both_commands():
    assert len(README.splitlines()) <= 120
    commands = re.findall(r"^python3 -m venv .*", README, flags=re.MULTILINE)
    assert any("robust-rlhf sweep --out results" in line for line in commands)
    assert any("-m pytest" in line for line in commands)


@pytest.mark.slow
def test_the_front_page_prints_what_its_example_prints():
    code, output = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    numbers = r"\d+\.\d+"
    assert re.sub(numbers, "#", printed.getvalue()) == re.sub(numbers, "#", output)
    found, told = (re.findall(numbers, text) for text in (printed.getvalue(), output))
    # Other platforms round the last digit in another way.
    assert [float(n) for n in found] == pytest.approx([float(n) for n in told], abs=0.25)


def test_the_advice_on_the_front_page_is_that_of_the_page_on_texts():
    """Which `test_texts_page.py` compares with what the command prints."""
    said = re.search(r"```text\n(Advice: .*?)```", README, re.DOTALL)[1]
    assert said in (ROOT / "docs" / "texts.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:", target) and not target.startswith(MADE):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_into_a_page_lead_to_a_heading(page):
    """As on a code host, which builds no site that would complain."""
    for target, heading in re.findall(r"\]\(([^)#:\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith(MADE):
            text = (page.parent / target if target else page).read_text(encoding="utf-8")
            titles = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
            anchors = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
            assert heading in anchors, f"{target}#{heading}"


def test_tests_and_benchmarks_that_pages_name_exist():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    named = {
        (page.name, path)
        for page in pages
        for path in re.findall(
            r"(?:tests|benchmarks)/[\w/]+\.py|`tests/[\w/]+/`", page.read_text(encoding="utf-8")
        )
    }
    assert len(named) > 50
    missing = {(page, path) for page, path in named if not (ROOT / path.strip("`")).exists()}
    assert missing <= {("CONTRIBUTING.md", "tests/rewards/rivals/test_name.py")}


def where_to_look():
    """(file or folder, names in it) of the table "Where is …?"."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text[text.index("### Where is") : text.index("### Recipes")]
    answers = [line.split("|")[2] for line in table.splitlines() if line.startswith("| ")][1:]
    found = [re.findall(r"`([a-z_/]+(?:\.py|/))`(?: \(([^)]*)\))?", answer) for answer in answers]
    return [(path, re.findall(r"`(\w+)`", names)) for places in found for path, names in places]


def test_what_contributors_look_for_is_where_the_table_says():
    package = ROOT / "robust_rlhf_jax"
    places = where_to_look()
    assert len(places) >= 25
    folder = package
    for path, names in places:
        # "`oracle.py` there": beside the file before it.
        place = package / path if (package / path).exists() else folder / path
        assert place.exists(), path
        folder = place.parent
        for name in names:
            assert name in place.read_text(encoding="utf-8"), (path, name)


@pytest.mark.slow
def test_the_reference_has_every_public_name(names):
    listed = {found.name for found in names.public_names()}
    modules = {name for name in robust_rlhf_jax.__all__ if name not in listed}
    assert modules <= {package.removeprefix("lab.") for package in names.packages()}
    for package in names.packages():
        assert all(found.line for found in names.public_names(package))


def test_a_public_name_without_documentation_is_refused(names, tmp_path, monkeypatch):
    package = tmp_path / "robust_rlhf_jax"
    package.mkdir()
    (package / "__init__.py").write_text('from .bare import bare\n__all__ = ["bare"]\n', encoding="utf-8")
    (package / "bare.py").write_text("def bare(x, *, y=1): ...\n", encoding="utf-8")
    monkeypatch.setattr(names, "ROOT", tmp_path)
    names.tree.cache_clear()
    with pytest.raises(ValueError, match="has no docstring"):
        names.public_names()
    names.tree.cache_clear()


def test_a_signature_shows_keywords_and_defaults(names):
    found = next(found for found in names.public_names() if found.name == "fit_reward")
    assert "    *,\n    groups:" in names.signature(found)
    assert "= None" in names.signature(found)
    source = next(found for found in names.public_names("sources") if found.name == "GeneratedSource")
    assert names.signature(source).startswith("```python\nGeneratedSource(\n    make: Callable")


def test_lists_and_doctests_are_written_as_the_site_needs_them(names):
    import commonmark

    assert commonmark.spaced("Two:\n- a\n  b\n- c") == "Two:\n\n- a\n  b\n- c"
    assert commonmark.spaced("```\nx\n- y\n```") == "```\nx\n- y\n```"
    fenced = commonmark.fenced("Text.\n\n>>> f(\n...     x)\n'y'\n\nMore.")
    assert fenced == "Text.\n\n```pycon\n>>> f(\n...     x)\n'y'\n```\n\nMore."
    assert commonmark.spaced("#(a)\n# b") == "\\#(a)\n# b"


def test_no_formula_of_the_notebooks_is_left_in_latex(names):
    import commonmark

    assert commonmark.unicode_formulas(r"$(V^\star - V_{\min})$, $2\varepsilon n$") == "`(V★ - V_min)`, `2εn`"
    for notebook in (ROOT / "notebooks").glob("*.py"):
        text = "\n".join(
            line[2:] for line in notebook.read_text(encoding="utf-8").splitlines() if line.startswith("# ")
        )
        assert not re.search(r"[$\\]", commonmark.unicode_formulas(text)), notebook.name
