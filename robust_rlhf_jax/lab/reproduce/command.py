"""The reproductions as commands: progress, a Markdown table, a figure, a parquet, resumable."""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from robust_rlhf_jax.lab.sweeps.resumable import resumable
from robust_rlhf_jax.lab.sweeps.sealed import CELLS, Part, sealed
from robust_rlhf_jax.lab.sweeps.store import REPRODUCES, Store
from robust_rlhf_jax.outputs import environment, whole_folder, write_json
from robust_rlhf_jax.terminal import marked

from . import robustness, table1
from .attack_by_attack import duel_table
from .figures import exponent_figure, worst_case_figure

SUFFIXES = (".md", ".png", ".parquet", ".json")


def reproduce_table1(quick: bool, out: Path, quiet: bool = False) -> None:
    """Run Table 1 and write table1.md, table1.png, table1.parquet and table1.json to `out`.

    Finished batches are kept in `out`/parts: the same command resumes where it stopped.

    **Raises:** ValueError if `out` cannot be written.

    **Example:** minutes of work, after which out/table1 holds the table.

    >>> from pathlib import Path
    >>> from robust_rlhf_jax.lab.reproduce import reproduce_table1
    >>> reproduce_table1(quick=True, out=Path("out/table1"))  # doctest: +SKIP
    """
    config = table1.QUICK if quick else table1.FULL

    def work(on_batch: Callable[[int, int], None], store: Store, folder: Path):
        rows = table1.run_table1(config, on_batch, store)
        found = table1.curves(config, rows)
        exponent_figure(found, folder / "table1.png")
        return rows, table1.table1_markdown(config, found, table1.constants(config))

    _reproduce("table1", quick, config, config.n_cells, out, quiet, work)


def reproduce_robustness(quick: bool, out: Path, quiet: bool = False) -> None:
    """Run every algorithm under the attacks; write robustness.md, .png, .parquet and .json to `out`. Resumable.

    **Raises:** ValueError if `out` cannot be written.

    **Example:** minutes of work, after which out/robustness holds the table.

    >>> from pathlib import Path
    >>> from robust_rlhf_jax.lab.reproduce import reproduce_robustness
    >>> reproduce_robustness(quick=True, out=Path("out/robustness"))  # doctest: +SKIP
    """
    config = robustness.QUICK if quick else robustness.FULL

    def work(on_batch: Callable[[int, int], None], store: Store, folder: Path):
        rows = robustness.run_robustness(config, on_batch, store)
        worst_case_figure(rows, robustness.OURS, folder / "robustness.png")
        worst = robustness.robustness_table(rows, robustness.limits(config))
        return rows, f"{worst}\n{duel_table(rows, robustness.OURS)}"

    _reproduce("robustness", quick, config, robustness.robustness_cells(config), out, quiet, work)


def _reproduce(
    name: str,
    quick: bool,
    config: Any,
    cells: int,
    out: Path,
    quiet: bool,
    work: Callable[..., tuple[list[dict[str, Any]], str]],
) -> None:
    from rich.console import Console

    console = Console()
    started = time.perf_counter()
    with whole_folder(out, [name + suffix for suffix in SUFFIXES]) as folder:
        with resumable(name, cells, out, console, quiet) as way:
            way.store.settings = {REPRODUCES: name, "quick": quick}
            rows, table = work(way.on_batch, way.store, folder)
        seconds = time.perf_counter() - started
        _write(folder, name, rows, table, config, seconds)
    console.print(table, soft_wrap=True, highlight=False)
    console.print(
        f"{cells} cells in {seconds:.0f} s of this run; {name}.md, .png, .parquet and .json in {marked(out)}"
    )


def _write(
    folder: Path, name: str, rows: list[dict[str, Any]], table: str, config: Any, seconds: float
) -> None:
    (folder / f"{name}.parquet").write_bytes(sealed(Part(CELLS, name, rows)))
    (folder / f"{name}.md").write_text(table + "\n", encoding="utf-8")
    facts = {"configuration": dataclasses.asdict(config), "wall_seconds": round(seconds, 2), **environment()}
    write_json(folder / f"{name}.json", facts)
