"""The sweep as a command: progress, table, files."""

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

from robust_rlhf_jax.outputs import environment, whole_folder, write_json
from robust_rlhf_jax.terminal import marked

from .config import SweepConfig
from .engine import Execute, SweepResult, run_sweep
from .figures import gap_vs_epsilon
from .resumable import resumable
from .sealed import CELLS, KEY, Part, is_cut_short, sealed
from .store import settings_of_cells
from .summary import print_table

FILES = ("results.parquet", "gap_vs_epsilon.png", "summary.json")


def sweep_command(
    config: SweepConfig, out: Path, quiet: bool = False, execute: Execute | None = None
) -> None:
    """Run `config` with a progress bar, write `results.parquet`, the figure and the summary, print its table.

    Finished batches are kept in `out`/parts: the same command resumes where it stopped. `quiet`: plain lines
    instead of the bar. `execute`: see `run_sweep`.

    **Raises:** ValueError for a wrong configuration, or an `out` whose results no sweep has written, before anything is
    computed or written; KeyboardInterrupt after Ctrl-C, with one sentence on what is saved.

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
    replaced = _replaced(Path(out), config)
    if replaced:
        console.print(replaced)
    started = time.perf_counter()
    with whole_folder(out, FILES) as folder:
        with resumable("sweep", config.n_cells, out, console, quiet) as work:
            work.store.settings = settings_of_cells(config)
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
        f"{config.n_cells} cells in {times['wall_seconds']:.0f} s of this run; "
        f"{', '.join(FILES)} in {marked(out)}"
    )


def _replaced(out: Path, config: SweepConfig) -> str:
    """What is said of an earlier sweep of other settings in `out`; "" where there is none.

    **Raises:** ValueError for a `results.parquet` that no sweep has written.
    """
    results, summary = out / FILES[0], out / FILES[2]
    if results.is_file() and KEY not in (content := results.read_bytes()):
        if is_cut_short(content) and (out / "parts").is_dir():
            return f"{marked(results)} is cut short: it is written anew when the sweep ends."
        raise ValueError(f"{results} was not written by a sweep and would be replaced: give another --out.")
    try:
        before = json.loads(summary.read_text(encoding="utf-8"))["configuration"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    now = json.loads(json.dumps(_settings(config)))
    others = [
        name for name in now if isinstance(before, dict) and name in before and before[name] != now[name]
    ]
    if not others:
        return ""
    return (
        f"{marked(out)} holds the results of a sweep with other {', '.join(others)}: they are replaced when this one "
        "ends; its finished batches stay in parts."
    )


def _settings(config: SweepConfig) -> dict[str, Any]:
    return dataclasses.asdict(config) | {"n_pairs": config.pairs}


def _write(folder: Path, config: SweepConfig, result: SweepResult, times: dict[str, Any]) -> None:
    (folder / FILES[0]).write_bytes(sealed(Part(CELLS, "results", result.rows)))
    gap_vs_epsilon(result.rows, folder / FILES[1])
    summary = {
        "configuration": _settings(config),
        "cells": config.n_cells,
        **times,
        "label_entropy_bits": {k: round(v, 4) for k, v in result.label_entropy.items()},
        **environment(),
    }
    write_json(folder / FILES[2], summary)
