"""The sweep as a command: progress, table, files."""

import dataclasses
import time
from pathlib import Path
from typing import Any

from robust_rlhf_jax.outputs import environment, whole_folder, write_json
from robust_rlhf_jax.terminal import marked

from .config import SweepConfig
from .engine import Execute, SweepResult, run_sweep
from .figures import gap_vs_epsilon
from .resumable import resumable
from .sealed import CELLS, Part, sealed
from .summary import print_table

FILES = ("results.parquet", "gap_vs_epsilon.png", "summary.json")


def sweep_command(
    config: SweepConfig, out: Path, quiet: bool = False, execute: Execute | None = None
) -> None:
    """Run `config` with a progress bar, write `results.parquet`, the figure and the summary, print its table.

    Finished batches are kept in `out`/parts: the same command resumes where it stopped. `quiet`: plain lines
    instead of the bar. `execute`: see `run_sweep`.

    **Raises:** ValueError for a wrong configuration, before anything is computed or written; KeyboardInterrupt after
    Ctrl-C, with one sentence on what is saved.

    **Example:**

    >>> import contextlib, io, pathlib, tempfile
    >>> from robust_rlhf_jax.lab.sweeps import SweepConfig, sweep_command
    >>> config = SweepConfig("tiny", ("chain",), ("flip_random",), (0.1,), seeds=1, algorithms=("standard",))
    >>> out = pathlib.Path(tempfile.mkdtemp())
    >>> with contextlib.redirect_stdout(io.StringIO()):  # the table
    ...     sweep_command(config, out, quiet=True)
    >>> sorted(path.name for path in out.iterdir())
    ['gap_vs_epsilon.png', 'parts', 'results.parquet', 'summary.json']
    """
    from rich.console import Console

    config.check()
    console = Console()
    started = time.perf_counter()
    with whole_folder(out, FILES) as folder:
        with resumable("sweep", config.n_cells, out, console, quiet) as work:
            result = run_sweep(config, work.on_batch, work.store, execute)
        times = {
            "wall_seconds": round(time.perf_counter() - started, 2),
            "seconds_to_first_batch": work.first_batch(),
        }
        _write(folder, config, result, times)
    # Now that the results are in their place: a terminal may be unable to print.
    print_table(result.rows, console)
    entropies = ", ".join(f"{name} {bits:.2f}" for name, bits in result.label_entropy.items())
    console.print(f"Label entropy in bits (1 = coin flips, 0 = deterministic raters): {entropies}")
    console.print(
        f"{config.n_cells} cells in {times['wall_seconds']:.0f} s, less what earlier runs had done; "
        f"{', '.join(FILES)} in {marked(out)}"
    )


def _write(folder: Path, config: SweepConfig, result: SweepResult, times: dict[str, Any]) -> None:
    (folder / FILES[0]).write_bytes(sealed(Part(CELLS, "results", result.rows)))
    gap_vs_epsilon(result.rows, folder / FILES[1])
    summary = {
        "configuration": dataclasses.asdict(config) | {"n_pairs": config.pairs},
        "cells": config.n_cells,
        **times,
        "label_entropy_bits": {k: round(v, 4) for k, v in result.label_entropy.items()},
        **environment(),
    }
    write_json(folder / FILES[2], summary)
