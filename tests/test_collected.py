"""Modules of a folder are found by themselves, in the order that they say."""

import sys

import pytest

from robust_rlhf_jax.collected import by_name, functions_of, in_order, modules_of, modules_with, told_in_help


@pytest.fixture
def package(tmp_path, monkeypatch):
    """write(**files) → the name of a new package, which is forgotten after the test."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    name = f"package_of_{tmp_path.name}"

    def write(own="", **files):
        (tmp_path / name).mkdir()
        for file, text in {"__init__": own, **files}.items():
            (tmp_path / name / f"{file}.py").write_text(text)
        return name

    yield write
    for module in set(sys.modules) - before:
        if module.startswith(name):
            del sys.modules[module]


def stems(modules):
    return [module.__name__.rpartition(".")[2] for module in modules]


def test_those_without_a_place_come_last_by_name(package):
    name = package(b="", a="", second="ORDER = 2", first="ORDER = 1.5")
    assert stems(modules_of(name)) == ["first", "second", "a", "b"]


def test_only_modules_that_have_all_names(package):
    name = package(whole="NAME, SIZE = 'w', 1", half="NAME = 'h'", helper="")
    assert stems(modules_with(name, "NAME", "SIZE")) == ["whole"]
    assert stems(modules_with(name, "NAME")) == ["half", "whole"]


def test_functions_are_those_that_name_their_file(package):
    function = "def {0}():\n    return '{0}'\n"
    name = package(
        _late=function.format("late"),
        _early="ORDER = 1\n" + function.format("early"),
        base=function.format("base"),
    )
    found = functions_of(name)
    assert {name: made() for name, made in found.items()} == {"early": "early", "late": "late"}
    assert list(found) == ["early", "late"]


def test_a_file_without_its_function_is_an_error(package):
    with pytest.raises(AttributeError, match="has no attribute 'misspelt'"):
        functions_of(package(_misspelt="def mispelt(): ..."))


def test_a_package_may_collect_itself_while_it_is_imported(package):
    name = package(
        own="from robust_rlhf_jax.collected import functions_of\nALL = functions_of(__name__)\n",
        _one="from .base import VALUE\ndef one():\n    return VALUE\n",
        base="VALUE = 1\n",
    )
    assert {name: made() for name, made in __import__(name).ALL.items()} == {"one": 1}


def test_an_error_within_a_module_is_not_hidden(package):
    with pytest.raises(ZeroDivisionError):
        modules_of(package(broken="1 / 0"))


def test_modules_come_by_name_and_not_from_deeper_down(package):
    name = package(b="", a="", _c="")
    assert stems(modules_of(name)) == ["_c", "a", "b"]
    assert modules_of(sys.modules[name]) == modules_of(name)


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


def test_names_of_today_take_the_place_of_their_tables():
    @told_in_help({"names in `ATTACKS`": {"near": 1, "far": 2}, "a name in `PRESETS`": ("tiny",)})
    class Config:
        """attacks: of these: names in `ATTACKS`. preset: a name in `PRESETS`. seed: of everything."""

    assert Config.__doc__ == "attacks: of these: near, far. preset: tiny. seed: of everything."
