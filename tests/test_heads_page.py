"""The page on deep models prints what it says: `docs/heads.md`."""

import importlib.util

import pytest
from page_steps import ROOT, run, same, steps

STEPS = steps(ROOT / "docs" / "heads.md")


@pytest.fixture
def folder(tmp_path):
    """A folder in which the examples lie as in a checkout."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


def test_it_has_a_recipe_for_each_kind_of_loop():
    assert [step.language for step in STEPS] == ["python", "python"]


@pytest.mark.slow
def test_the_loop_in_jax_prints_what_the_page_says(folder):
    same(run(STEPS[0], folder), STEPS[0].told, points=1.5)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("trl") is None, reason="needs the extra trl")
def test_the_training_by_trl_prints_what_the_page_says(folder):
    printed = run(STEPS[1], folder, quiet=False)
    shown = "\n".join(line for line in printed.splitlines() if not line.startswith("{"))
    same(shown, STEPS[1].told, points=1.5)
