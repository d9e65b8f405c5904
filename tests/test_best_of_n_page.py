"""The page on the choice among answers prints what it says: `docs/best_of_n.md`."""

import pytest
from page_steps import ROOT, run, same, steps


@pytest.mark.slow
def test_the_page_prints_what_it_says(tmp_path):
    found = steps(ROOT / "docs" / "best_of_n.md")
    assert [step.language for step in found] == ["python", "bash", "python", "python"]
    for step in found:
        same(run(step, tmp_path), step.told, points=0.011)
