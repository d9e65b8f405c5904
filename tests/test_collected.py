"""Registries that fill themselves."""

import sys

import pytest

from robust_rlhf_jax.collected import by_name, in_order, modules_of


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package whose first lines ask for its own modules."""
    home = tmp_path / "own_modules"
    (home / "inner").mkdir(parents=True)
    lines = "from robust_rlhf_jax.collected import modules_of\nNAMES = [m.__name__ for m in modules_of(__name__)]\n"
    (home / "__init__.py").write_text(lines, encoding="utf-8")
    (home / "inner" / "__init__.py").write_text("", encoding="utf-8")
    (home / "inner" / "deep.py").write_text("", encoding="utf-8")
    for name in ("b", "a", "_c"):
        (home / f"{name}.py").write_text(f"NAME = {name!r}\n", encoding="utf-8")
    (home / "notes.txt").write_text("no module", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_modules"
    for name in [name for name in sys.modules if name.split(".")[0] == "own_modules"]:
        del sys.modules[name]


def test_modules_come_by_name_and_not_from_deeper_down(package):
    found = modules_of(package)
    assert [module.__name__ for module in found] == [
        f"{package}.{name}" for name in ("_c", "a", "b", "inner")
    ]
    assert modules_of(sys.modules[package]) == found
    assert found[1].NAME == "a"


def test_a_package_may_ask_while_it_is_imported(package):
    modules_of(package)
    assert [module.__name__ for module in modules_of(package)] == sys.modules[package].NAMES


def test_two_things_with_one_name_are_refused():
    one, other = [1], [1]
    assert by_name([("a", one), ("b", other), ("a", one)]) == {"a": one, "b": other}
    with pytest.raises(ValueError, match="Two entries of a registry have the name 'a'"):
        by_name([("a", one), ("a", other)])


def test_settled_names_come_first_and_new_ones_by_name():
    found = dict.fromkeys("dbca")
    assert list(in_order(found, ("c", "d"))) == ["c", "d", "a", "b"]
    assert list(in_order(found, ())) == ["a", "b", "c", "d"]
    with pytest.raises(KeyError, match="e"):
        in_order(found, ("e",))
