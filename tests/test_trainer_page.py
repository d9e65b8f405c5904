"""From a preference file to a trainer: the commands of `docs/from_file_to_trainer.md` print what it says."""

import json

import numpy as np
import pytest
from page_steps import ROOT, run, same, steps

from robust_rlhf_jax.preferences import argument_pairs

PAGE = ROOT / "docs" / "from_file_to_trainer.md"
STEPS = steps(PAGE)


@pytest.fixture
def folder(tmp_path):
    """A folder in which the generator of the page lies as in a checkout."""
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    return tmp_path


@pytest.mark.slow
def test_the_file_is_generated_and_described_as_the_page_says(folder):
    for step in STEPS[:2]:
        same(run(step, folder), step.told)


@pytest.mark.slow
def test_votes_become_pairs_that_a_trainer_takes(folder):
    """The last step needs none of those before it."""
    same(run(STEPS[-1], folder), STEPS[-1].told)
    rows = [
        json.loads(line) for line in (folder / "for_trainer.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    votes = argument_pairs()
    assert votes.texts is not None
    won = votes.texts.take(np.flatnonzero(~votes.ties))
    assert [tuple(row) for row in rows[:1]] == [("prompt", "chosen", "rejected")]
    assert [[row[side] for row in rows] for side in rows[0]] == [won.prompt, won.chosen, won.rejected]


@pytest.mark.slow
def test_the_whole_way_prints_what_the_page_says(folder):
    for step in STEPS:
        same(run(step, folder), step.told, points=0.5)  # the SVD of texts depends on the threads of BLAS
    assert [step.language for step in STEPS] == ["bash", "bash", "bash", "python", "bash", "python", "python"]
