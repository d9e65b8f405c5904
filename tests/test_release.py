"""What a release relies on: pinned actions, one version, a refusal of wrong tags, a paper without loose ends."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PAPER = ROOT / "docs" / "paper"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_to_a_commit(path):
    used = re.findall(r"uses: (\S+)(.*)", path.read_text(encoding="utf-8"))
    assert used or path.stem == "release"
    for action, comment in used:
        assert action.startswith("./") or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action
        assert action.startswith("./") or re.search(r"# v\d", comment), action


def test_an_action_has_one_commit_in_all_workflows():
    used = {
        found for path in WORKFLOWS for found in re.findall(r"uses: (\S+)@(\S+)", path.read_text("utf-8"))
    }
    assert len({name for name, _ in used}) == len(used) >= 4


def checkout(tmp_path, changelog: str) -> Path:
    """The files that name the version, with another changelog."""
    (tmp_path / ".ci").mkdir()
    for name in (".ci/tag_is_version", "pyproject.toml", "CITATION.cff"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(changelog, encoding="utf-8")
    return tmp_path


def told(folder: Path, tag: str) -> subprocess.CompletedProcess:
    return subprocess.run(["bash", ".ci/tag_is_version", tag], cwd=folder, capture_output=True, text=True)


def test_the_tag_of_the_version_is_accepted_once_the_changelog_has_its_date(tmp_path):
    folder = checkout(tmp_path, "# Changelog\n\n## 0.1.0, 2026-11-24\n")
    assert told(folder, "v0.1.0").returncode == 0
    assert told(folder, "v0.1.1").returncode == 1


def test_an_unreleased_changelog_is_no_release(tmp_path):
    done = told(checkout(tmp_path, "# Changelog\n\n## 0.1.0, unreleased\n"), "v0.1.0")
    assert done.returncode == 1
    assert "newest dated version is none" in done.stderr


def test_the_paper_cites_what_it_lists_and_nothing_else():
    text, entries = ((PAPER / name).read_text(encoding="utf-8") for name in ("paper.md", "paper.bib"))
    cited = set(re.findall(r"@(\w+)", text.split("---", 2)[2]))
    assert cited == set(re.findall(r"^@\w+\{(\w+),", entries, re.MULTILINE))
    for part in ("# Summary", "# Statement of need", "# References"):
        assert part in text
