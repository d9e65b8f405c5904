"""The claims of the page on the benchmark are reproduced by its command: `docs/benchmark.md`."""

import pytest
from page_steps import ROOT, run, same, steps


@pytest.mark.slow
def test_the_row_of_an_outsider_is_checked_as_the_page_says(tmp_path):
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    (step,) = steps(ROOT / "docs" / "benchmark.md")
    same(run(step, tmp_path), step.told)
