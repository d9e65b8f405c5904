"""Code that somebody edits is told from what it was."""

import pytest

from robust_rlhf_jax.lab.sweeps.source_digest import PACKAGE, source_digest


@pytest.mark.parametrize("change", ["content", "name", "one more"])
def test_other_modules_have_another_digest(tmp_path, change):
    folders = [tmp_path / "before", tmp_path / "after"]
    for folder in folders:
        (folder / "attacks").mkdir(parents=True)
        (folder / "attacks" / "mine.py").write_text("STEP = 1\n", encoding="utf-8")
        (folder / "attacks" / "notes.txt").write_text(folder.name, encoding="utf-8")
    before, after = map(source_digest, folders)
    assert before == after

    source_digest.cache_clear()
    module = folders[1] / "attacks" / "mine.py"
    if change == "content":
        module.write_text("STEP = 2\n", encoding="utf-8")
    elif change == "name":
        module.rename(module.with_name("other.py"))
    else:
        (folders[1] / "more.py").touch()
    assert source_digest(folders[1]) != before


def test_the_digest_is_of_the_package():
    assert (PACKAGE / "__init__.py").is_file()
    assert PACKAGE.name == "robust_rlhf_jax"
