"""The page on pairs that memory does not hold prints what it says: `docs/large.md`."""

import pytest
from page_steps import ROOT, run, same, steps


@pytest.mark.slow
def test_the_page_prints_what_it_says(tmp_path):
    found = steps(ROOT / "docs" / "large.md")
    assert [step.language for step in found] == ["python", "bash", "python"]
    for step in found:
        same(run(step, tmp_path), step.told)
