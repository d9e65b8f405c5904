"""The tables that come of a benchmark's JSON."""

import json
import sys

import pytest

PAGE = "# Title\n<!-- performance:start -->\nold\n<!-- performance:end -->\nrest\n"


@pytest.fixture
def performance_table():
    import performance_table

    return performance_table


def benchmark(what="`robust_mean`", **facts):
    """A row of 0.2 s as pytest-benchmark stores it."""
    known = {
        "what": what,
        "size": "n = 10",
        "compile_s": 0.5,
        "throughput": 12_345_678.0,
        "throughput_unit": "rows/s",
        "peak_memory_bytes": 5_250_000,
    }
    return {"stats": {"median": 0.2, "min": 0.1}, "extra_info": known | facts}


RIVAL = {
    "beside": "NumPy",
    "ours_median_s": 0.3,
    "ours_min_s": 0.2,
    "beside_median_s": 0.6,
    "beside_min_s": 0.5,
    "ratio_median": 2.0,
    "ratio_min": 2.5,
}


def results(*benchmarks, platform="cpu"):
    return {
        "machine_info": {
            "cpu": {"count": 2, "brand_raw": "Chip"},
            "device": {"platform": platform, "kind": "Accelerator"},
            "packages": {"jax": "0.10.2"},
            "machine": "x86_64",
            "system": "Linux",
        },
        "datetime": "2026-11-21T00:00:00",
        "benchmarks": list(benchmarks),
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (12_345_678.0, "12.3 M rows/s"),
        (999.6, "1 k rows/s"),
        (999_900.0, "1 M rows/s"),
        (2.5e9, "2.5 G rows/s"),
        (0.0456, "0.0456 rows/s"),
    ],
)
def test_throughput_has_three_digits_and_a_prefix(performance_table, value, shown):
    assert performance_table.throughput({"throughput": value, "throughput_unit": "rows/s"}) == shown


@pytest.mark.parametrize(
    ("size", "shown"), [(None, ""), (5_250_000, "5.25"), (99_990_000, "100"), (1_234_567_890, "1,235")]
)
def test_memory_is_in_megabytes(performance_table, size, shown):
    assert performance_table.megabytes(size) == shown


def test_a_wide_row_adds_throughput_memory_and_fraction(performance_table):
    fraction = {"fraction": 0.859, "fraction_of": "of the copy's bytes per second", "target": 0.6}
    row = benchmark(**RIVAL, **fraction)
    short = "| `robust_mean` | n = 10 | 0.50 | 300 (200) | NumPy | 600 (500) | 2 (2.5) |"
    assert performance_table.row(row, wide=False) == short
    assert performance_table.row(row, wide=True) == (
        short + " 12.3 M rows/s | 5.25 | 0.86 of the copy's bytes per second, target 0.6 |"
    )


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("row", [benchmark(), benchmark(**RIVAL), benchmark(peak_memory_bytes=None)])
def test_every_line_of_a_table_has_as_many_cells(performance_table, row, wide):
    lines = performance_table.table([row], wide).splitlines()
    assert len({line.count("|") for line in lines}) == 1


def test_the_machines_rates_are_named_once(performance_table):
    rows = [benchmark(copy_gb_per_s=30.0), benchmark(product_gflops=123.4), benchmark(copy_gb_per_s=30.0)]
    sentence = performance_table.rates(rows)
    assert "30 GB/s" in sentence
    assert "123 Gflop/s" in sentence
    assert performance_table.rates([benchmark()]) == ""


def test_the_short_table_keeps_the_first_row_of_each_key(performance_table):
    rows = [benchmark("`robust_mean`"), benchmark("`robust_mean`"), benchmark("`weighted_sum`")]
    assert performance_table.key_rows(rows) == rows[:1]


def test_main_writes_a_section_per_device_and_the_short_table(performance_table, monkeypatch, tmp_path):
    short_page = tmp_path / "speed.md"
    short_page.write_text(PAGE, encoding="utf-8")
    for name, platform in {"results.json": "cpu", "results-gpu.json": "gpu"}.items():
        (tmp_path / name).write_text(json.dumps(results(benchmark(), platform=platform)), encoding="utf-8")
    words = ["performance_table.py", "--folder", str(tmp_path), "--page", str(short_page)]
    monkeypatch.setattr(sys, "argv", words)
    assert performance_table.main() == 0
    page = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert page.index("## CPU, 2 cores, Chip") < page.index("## Accelerator")
    assert page.count("12.3 M rows/s") == 2
    short = short_page.read_text(encoding="utf-8")
    assert "200 (100)" in short
    assert "rows/s" not in short
    assert short.endswith("<!-- performance:end -->\nrest\n")
