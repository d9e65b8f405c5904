"""The page on raters prints what it says: `docs/raters.md`."""

import pytest
from page_steps import ROOT, run, same, steps


@pytest.mark.slow
def test_the_page_prints_what_it_says(tmp_path):
    (step,) = steps(ROOT / "docs" / "raters.md")
    same(run(step, tmp_path), step.told)
    assert (tmp_path / "raters.csv").read_text(encoding="utf-8").startswith("name,pairs,agreement")
