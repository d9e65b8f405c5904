"""The sweep as a command: progress, table, files."""

import dataclasses
import time
from pathlib import Path

from robust_rlhf_jax.outputs import environment, whole_folder, write_json

from .config import SweepConfig
from .engine import SweepResult, run_sweep
from .figures import gap_vs_epsilon
from .progress import progress_bar
from .summary import print_table


def sweep_command(config: SweepConfig, out: Path) -> None:
    """Run `config` with a progress bar, print its table, write `results.parquet`, the figure and the summary.

    **Raises:** ValueError for a wrong configuration, before anything is computed or written.
    """
    from rich.console import Console

    config.check()
    console = Console()
    started = time.perf_counter()
    with whole_folder(out) as folder:
        with progress_bar("sweep", config.n_cells, console) as advance:
            result = run_sweep(config, advance)
        seconds = time.perf_counter() - started
        print_table(result.rows, console)
        entropies = ", ".join(f"{name} {bits:.2f}" for name, bits in result.label_entropy.items())
        console.print(f"Label entropy in bits (1 = coin flips, 0 = deterministic raters): {entropies}")
        _write(folder, config, result, seconds)
    console.print(
        f"{config.n_cells} cells in {seconds:.0f} s; results.parquet, gap_vs_epsilon.png, summary.json in {out}"
    )


def _write(folder: Path, config: SweepConfig, result: SweepResult, seconds: float) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(result.rows), folder / "results.parquet")
    gap_vs_epsilon(result.rows, folder / "gap_vs_epsilon.png")
    summary = {
        "configuration": dataclasses.asdict(config) | {"n_pairs": config.pairs},
        "cells": config.n_cells,
        "wall_seconds": round(seconds, 2),
        "label_entropy_bits": {k: round(v, 4) for k, v in result.label_entropy.items()},
        **environment(),
    }
    write_json(folder / "summary.json", summary)
