from functools import partial

import pytest
from report_cells import make_cells, put


@pytest.fixture
def report(robust_rlhf):
    """report(*arguments) → (exit status, stdout, stderr)."""
    return partial(robust_rlhf, "report")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_page_goes_to_the_folder(report, finished):
    status, printed, errors = report(finished)
    assert (status, errors) == (0, "")
    assert printed == f"Wrote {finished / 'report.html'}\n"
    assert names(finished) == ["report.html", "results.parquet", "summary.json"]
    assert "<title>Report on results</title>" in (finished / "report.html").read_text(encoding="utf-8")


def test_the_page_goes_where_it_is_told(report, unfinished, tmp_path):
    out = tmp_path / "new" / "page.html"
    assert report(unfinished, "--out", out)[0] == 0
    assert names(out.parent) == ["page.html"]
    assert names(unfinished) == ["parts"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("missing", "is not a folder: give one that a sweep or a reproduction has written."),
        ("empty", "holds no results: none of results.parquet, robustness.parquet, table1.parquet and no "),
        (
            "empty",
            "parts/*.parquet: give the folder of a sweep or a reproduction (an audit has written its own page",
        ),
        ("words", "is not a parquet file: write it again."),
        ("lacking", "lacks the column family: it needs family, attack, epsilon, seed, algorithm, "),
        ("no_rows", "holds no cells with a normalised gap: run the command that wrote it again."),
    ],
)
def test_bad_input_ends_in_one_sentence(report, tmp_path, given, sentence):
    (tmp_path / "empty").mkdir()
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "results.parquet").write_text("mine")
    put(tmp_path / "lacking" / "results.parquet", [{"epsilon": 0.1}])
    put(tmp_path / "no_rows" / "results.parquet", make_cells()[:1])
    put(tmp_path / "no_rows" / "results.parquet", [], schema_of(tmp_path / "no_rows" / "results.parquet"))
    before = sorted(tmp_path.rglob("*"))
    status, printed, errors = report(tmp_path / given)
    assert (status, printed) == (2, "")
    assert errors.startswith(f"robust-rlhf: {tmp_path / given}")
    assert sentence in errors
    assert errors.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def schema_of(path):
    import pyarrow.parquet as pq

    return pq.read_schema(path)


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        ("taken", "--out taken is a folder: name a file."),
        ("results/results.parquet/x.html", "--out results/results.parquet is a file: give a folder."),
        (
            "results/results.parquet/x/y.html",
            "--out results/results.parquet/x cannot be written (Not a directory)",
        ),
    ],
)
def test_a_page_that_cannot_be_written(report, finished, monkeypatch, out, sentence):
    monkeypatch.chdir(finished.parent)
    (finished.parent / "taken").mkdir()
    before = sorted(finished.parent.rglob("*"))
    status, _, errors = report("results", "--out", out)
    assert status == 2
    assert errors.startswith(f"robust-rlhf: {sentence}")
    assert errors.count("\n") == 1
    assert sorted(finished.parent.rglob("*")) == before


def test_results_are_not_written_over(report, finished):
    """--out results.parquet would cost the measurements."""
    status, _, errors = report(finished, "--out", finished / "results.parquet")
    assert status == 2
    assert "give a name that ends in .html" in errors
    assert (finished / "results.parquet").read_bytes().startswith(b"PAR1")


def test_help(report):
    status, printed, _ = report("--help")
    assert status == 0
    for word in ("--out", "report.html", "sweep"):
        assert word in printed
