"""The report as a command."""

from pathlib import Path

from robust_rlhf_jax.outputs import whole_folder

from .load import load_results
from .page import render_page


def write_report(folder: Path, out: Path | None = None) -> Path:
    """Write the page of what `folder` holds to `out` (default: `folder`/report.html), whole or not at all.

    **Raises:** ValueError in one sentence for a folder without results or a bad file, and if `out` cannot be
    written; ImportError without the extra `cli`.

    **Example:**

    >>> import pathlib, tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from robust_rlhf_jax.lab.report import write_report
    >>> cell = {"family": "chain", "attack": "flip_random", "epsilon": 0.1, "seed": 0, "algorithm": "standard"}
    >>> table = pa.Table.from_pylist([{**cell, "normalised_gap": 0.03, "status": "converged", "oracle_calls": 1}])
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> pq.write_table(table, folder / "results.parquet")
    >>> write_report(folder).name
    'report.html'
    """
    folder = Path(folder)
    out = folder / "report.html" if out is None else Path(out)
    if out.is_dir():
        raise ValueError(f"--out {out} is a folder: name a file.")
    if out.suffix.lower() not in (".html", ".htm"):  # or a slip would overwrite the measurements
        raise ValueError(f"--out {out} is no page: give a name that ends in .html.")
    page = render_page(load_results(folder), title=folder.resolve().name)
    with whole_folder(out.parent) as scratch:
        (scratch / out.name).write_text(page, encoding="utf-8", errors="backslashreplace")
    return out
