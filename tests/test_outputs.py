import json
from pathlib import Path

import pytest

from robust_rlhf_jax.outputs import page_templates, whole_folder, write_json


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write_half(out):
    with whole_folder(out) as folder:
        (folder / "a").write_text("half")
        raise RuntimeError("broken")


def test_files_appear_together_at_the_end(tmp_path):
    out = tmp_path / "deep" / "out"
    with whole_folder(out) as folder:
        (folder / "a").write_text("1")
        (folder / "b").write_text("2")
        assert not (out / "a").exists()
    assert names(out) == ["a", "b"]
    assert names(out.parent) == ["out"]


def test_a_failure_leaves_old_files_and_no_new_folder(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    (old / "a").write_text("mine")
    for out in (old, new):
        with pytest.raises(RuntimeError, match="broken"):
            write_half(out)
    assert names(tmp_path) == ["old"]
    assert [(p.name, p.read_text()) for p in old.iterdir()] == [("a", "mine")]


def test_a_failure_leaves_no_new_folder_above_either(tmp_path):
    with pytest.raises(RuntimeError, match="broken"):
        write_half(tmp_path / "deep" / "er" / "out")
    assert names(tmp_path) == []


def test_json_has_no_nan(tmp_path):
    write_json(tmp_path / "a.json", {"a": [1.0, float("nan")], "b": {"c": float("-inf")}, "d": "\udcff ε"})
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert json.loads(text, parse_constant=pytest.fail) == {
        "a": [1.0, None],
        "b": {"c": None},
        "d": "\udcff ε",
    }


def test_other_files_of_the_folder_stay(tmp_path):
    (tmp_path / "notes").write_text("mine")
    with whole_folder(tmp_path) as folder:
        (folder / "a").write_text("1")
    assert names(tmp_path) == ["a", "notes"]


def test_nothing_is_written_outside_the_folder(tmp_path):
    """A mount point's parent may be another disk, to which files cannot be renamed."""
    with whole_folder(tmp_path / "out") as folder:
        assert folder.parent == tmp_path / "out"


@pytest.mark.parametrize("place", ["taken", "taken/below", "taken/far/below", "/proc/robust", "dangling"])
def test_what_cannot_be_a_folder_is_refused_before_the_work(tmp_path, place):
    if place.startswith("/proc") and not Path("/proc").is_dir():
        pytest.skip("no /proc here")
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with (
        pytest.raises(ValueError, match=r"^--out .*: give a(nother)? folder\.$"),
        whole_folder(tmp_path / place),
    ):
        pytest.fail("the work was begun")
    assert (tmp_path / "taken").read_text() == "mine"
    assert names(tmp_path) == ["dangling", "taken"]


def test_pages_of_a_package_share_their_templates():
    """Each is compiled once, since the environment keeps it."""
    pytest.importorskip("jinja2")
    audit, again, report = map(
        page_templates,
        ("robust_rlhf_jax.audit.page", "robust_rlhf_jax.audit.page", "robust_rlhf_jax.lab.report"),
    )
    assert audit is again
    assert audit is not report
