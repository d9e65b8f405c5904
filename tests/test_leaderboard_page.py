"""The page on leaderboards prints what it says: `docs/leaderboard.md`."""

import pytest
from page_steps import ROOT, run, same, steps


@pytest.mark.slow
def test_the_page_prints_what_it_says(tmp_path):
    found = steps(ROOT / "docs" / "leaderboard.md")
    assert [step.language for step in found] == ["python", "bash"]
    for step in found:
        same(run(step, tmp_path), step.told)
