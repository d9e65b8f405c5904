"""`robust-rlhf benchmark`: progress, tables, a page and all cells; resumable."""

import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from robust_rlhf_jax.lab.sweeps.resumable import resumable
from robust_rlhf_jax.lab.sweeps.sealed import CELLS, sealed
from robust_rlhf_jax.lab.sweeps.sealed import Part as SealedPart
from robust_rlhf_jax.outputs import environment, whole_folder, write_json
from robust_rlhf_jax.preferences.bundled import BUNDLED, BUNDLED_FILES
from robust_rlhf_jax.terminal import marked

from .claims import Checked, check_before, check_claim, claim_of, counts_for, read_claims
from .config import QUICK, BenchmarkConfig
from .explain import explain, unanswered
from .page import render_page
from .plugins import Players, players
from .problems import Problem, read_problem
from .run import Row, cells_of, left_out, parts_of, run_benchmark
from .summary import Standing, cell_of, means, standings
from .tables import markdown, print_standing

FILES = ("benchmark.html", "benchmark.md", "benchmark.json", "results.parquet")


class NotReproduced(ValueError):
    """A claim that the same cells here do not give."""


def benchmark_command(
    sources: tuple[str, ...],
    config: BenchmarkConfig,
    out: Path,
    plugs: tuple[Path, ...] = (),
    claims: tuple[Path, ...] = (),
    quiet: bool = False,
) -> None:
    """Run `config` on the sources, write page, tables and cells to `out`, print the standings.

    Finished parts are kept in `out`/parts: the same command resumes where it stopped. `plugs`: Python files with
    further attacks and estimators, which are run; `claims`: JSON files of figures to compute again, which count in the
    worst cases where they are reproduced.

    **Raises:** ValueError in one sentence, before anything is computed, for a bad source or setting; `NotReproduced`,
    after all is written, for a claim that is not.
    """
    from rich.console import Console

    console, started = Console(), time.perf_counter()
    known = players(plugs)
    config = _with_plugged(config, known)
    config.check(known.attacks, known.estimators)
    claimed = [claim for path in claims for claim in read_claims(path)]
    if not claimed:  # they may be of what was plugged in
        _check_that_plugged_is_run(config, known)
    problems = [
        read_problem(source, config.pairs, config.seed) for source in sources or (*BUNDLED, *BUNDLED_FILES)
    ]
    _check_names(problems)
    check_before(claimed, known)
    parts = parts_of(problems, config, known.attacks, known.estimators)
    with whole_folder(out, FILES) as folder:
        with resumable("benchmark", cells_of(parts, config), out, console, quiet) as work:
            rows = run_benchmark(
                problems, config, known.attacks, known.estimators, work.on_batch, work.store, known.digest
            )
        checked = [check_claim(claim, known) for claim in claimed]
        seconds, shown = time.perf_counter() - started, _shown(console, quiet)
        said = _write(folder, problems, config, known, rows, checked, seconds, shown)
    for standing, reason in said:
        print_standing(console, standing, reason)
    print_checked(console, checked)
    console.print(
        f"{len(rows):,} cells in {time.perf_counter() - started:.0f} s of this run; "
        f"{', '.join(FILES)} in {marked(out)}"
    )
    _refuse(checked)


def _with_plugged(config: BenchmarkConfig, known: Players) -> BenchmarkConfig:
    """The quick settings name what they run, and whoever plugs something in wants it run beside that."""
    if config != QUICK:
        return config
    attacks, estimators = known.plugged
    return dataclasses.replace(
        config, attacks=(*config.attacks, *attacks), estimators=(*config.estimators, *estimators)
    )


def _check_that_plugged_is_run(config: BenchmarkConfig, known: Players) -> None:
    """**Raises:** ValueError where settings name attacks or estimators, and leave out all that was plugged in."""
    of_kinds = [
        *zip(("attacks", "estimators"), known.plugged, (config.attacks, config.estimators), strict=True)
    ]
    left_out = [(kind, mine) for kind, mine, given in of_kinds if mine and given and not {*mine} & {*given}]
    if left_out and len(left_out) == sum(bool(mine) for mine in known.plugged):
        kind, (name, *_) = left_out[0]
        raise ValueError(
            f"--plug brings {name}, which --{kind} leaves out: name {name} there, too, or leave --plug out."
        )


def check_command(claims: tuple[Path, ...], plugs: tuple[Path, ...] = ()) -> None:
    """Compute the claimed figures again, and nothing else.

    **Raises:** `NotReproduced` for a claim that is not; ValueError for bad files.
    """
    from rich.console import Console

    if not claims:
        raise ValueError("--check computes the figures in --claims: give a JSON file.")
    console, known = Console(), players(plugs)
    checked = [check_claim(claim, known) for path in claims for claim in read_claims(path)]
    print_checked(console, checked)
    _refuse(checked)


def print_checked(console: Any, checked: list[Checked]) -> None:
    for claim in checked:
        console.print(claim.line, highlight=False, markup=False, soft_wrap=True)


def _refuse(checked: list[Checked]) -> None:
    wrong = sum(claim.problem is not None for claim in checked)
    if wrong:
        raise NotReproduced(f"{wrong} of {len(checked)} claimed figures are not reproduced.")


def _check_names(problems: list[Problem]) -> None:
    names = [problem.name for problem in problems]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two files are called {twice}: rename one, since tables tell them apart by name.")


def _write(
    folder: Path,
    problems: list[Problem],
    config: BenchmarkConfig,
    known: Players,
    rows: list[Row],
    checked: list[Checked],
    seconds: float,
    shown: Callable[[list[Standing]], Iterable[Standing]],
) -> list[tuple[Any, str]]:
    """The files of `FILES`; and every standing with its sentence, `shown` as they are explained."""
    # The same pairs may be in a claim's file of another name.
    more = [
        row | {"file": p.name}
        for c in checked
        for p in problems
        if counts_for(c, p, config)
        for row in c.rows
    ]
    found, together, own = standings(rows + more), means(rows + more), means(rows)
    by_name = {problem.name: problem for problem in problems}
    reasons = [
        f"{_reason(s, by_name[s.file], config, known)} {unanswered(rows + more, s.file)}".rstrip()
        for s in shown(found)
    ]
    lines = {name: who.line for name, who in known.estimators.items()}
    facts = _facts(problems, config, seconds)
    page = render_page(found, reasons, together, checked, lines, facts)
    (folder / FILES[0]).write_text(page, encoding="utf-8", errors="backslashreplace")
    (folder / FILES[1]).write_text(markdown(found, reasons) + "\n", encoding="utf-8")
    summary = {
        "configuration": dataclasses.asdict(config),
        "standings": [s._asdict() | {"lines": [line._asdict() for line in s.lines]} for s in found],
        "reasons": reasons,
        "claims": [
            claim_of(row, by_name[row["file"]], config, own[cell_of(row)]) for row in _first_of_each(rows)
        ],
        "checked": [claim.line for claim in checked],
        "wall_seconds": round(seconds, 1),
        **environment(),
    }
    write_json(folder / FILES[2], summary)
    (folder / FILES[3]).write_bytes(sealed(SealedPart(CELLS, "results", rows)))
    return list(zip(found, reasons, strict=True))


def _shown(console: Any, quiet: bool) -> Callable[[list[Standing]], Iterable[Standing]]:
    """The standings with a bar, or a line for each: to explain one may take a minute."""
    from rich.progress import track

    title = "whether anybody could tell"

    def by_lines(found: list[Standing]) -> Iterator[Standing]:
        for standing in found:
            console.print(marked(f"benchmark: {title}, {standing.file}"), highlight=False, soft_wrap=True)
            yield standing

    if quiet or not console.is_terminal:
        return by_lines
    return lambda found: track(found, title, console=console, transient=True)


def _reason(standing: Standing, problem: Problem, config: BenchmarkConfig, known: Players) -> str:
    """Who leads and why, and what was not run."""
    said = explain(standing, problem, config, known.attacks)
    return f"{said} {left_out(problem, config, known.attacks, known.estimators)}".rstrip()


def _first_of_each(rows: list[Row]) -> list[Row]:
    return list({cell_of(row): row for row in reversed(rows)}.values())[::-1]


def _facts(problems: list[Problem], config: BenchmarkConfig, seconds: float) -> dict[str, str]:
    around = environment()
    data = ", ".join(
        f"{p.name}: {len(p.pairs.labels):,} × {p.pairs.x.shape[1]}, {p.digest}" for p in problems
    )
    return {
        "data (pairs × features, digest)": data,
        "settings": json.dumps(dataclasses.asdict(config)),
        "versions": ", ".join(f"{name} {version}" for name, version in around["versions"].items()),
        "device": f"{around['device']}, {around['cores']} cores",
        "date": around["date"],
        "minutes": f"{seconds / 60:.1f}, of the last run",
    }
