"""The tutorial on the bundled votes prints what it says: `docs/texts.md`."""

import pytest
from page_steps import ROOT, run, same, steps

PAGE = ROOT / "docs" / "texts.md"
STEPS = steps(PAGE)


def test_the_page_has_three_steps():
    assert [step.language for step in STEPS] == ["bash", "bash", "python"]


@pytest.mark.slow
def test_the_file_is_described_as_the_page_says(tmp_path):
    same(run(STEPS[0], tmp_path), STEPS[0].told)


@pytest.mark.slow
def test_the_whole_way_prints_what_the_page_says(tmp_path):
    for step in STEPS[1:]:
        same(run(step, tmp_path), step.told)
    assert (tmp_path / "cleaned.jsonl.xz").exists()


def test_the_authors_and_the_licence_of_the_votes_are_named():
    for said in ("Habernal and Gurevych", "UKPConvArg1", "CC-BY-4.0"):
        assert said in PAGE.read_text(encoding="utf-8")
