"""What `robust-rlhf benchmark` takes: sources, the settings as flags (`config.py`), and where results go."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from .config import QUICK, BenchmarkConfig


@dataclasses.dataclass(frozen=True)
class BenchmarkArguments:
    """Attack preference files in every known way, and compare reward estimates on honest pairs. Stopped, the same
    command resumes.

    Args:
        sources: preference files, "rail" (choices of journeys), "arguments" (votes on texts), or generated worlds such
            as "world:chain"; rail and arguments if none is given.
        settings: attacks, shares, estimators.
        quick: run three attacks, five estimators and what you plug in on 1,500 pairs of rail, to see that it works.
        plug: Python files with attacks or estimators of your own; the command runs this code.
        claims: JSON files with figures that others report, which are computed again.
        check: compute only the claims.
        out: folder for benchmark.html, benchmark.md, benchmark.json, results.parquet and parts, the finished batches.
        quiet: print a plain line every half minute instead of a bar.
    """

    sources: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    settings: Annotated[BenchmarkConfig, tyro.conf.arg(name="")] = dataclasses.field(
        default_factory=BenchmarkConfig
    )
    quick: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    plug: tuple[Path, ...] = ()
    claims: tuple[Path, ...] = ()
    check: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    out: Path = Path("benchmark")
    quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False

    def run(self) -> None:
        from .command import benchmark_command, check_command

        if self.check:
            check_command(self.claims, self.plug)
            return
        if self.quick and self.settings != BenchmarkConfig():
            raise ValueError("--quick has its own settings: leave the others out.")
        settings, sources = (
            (QUICK, self.sources or ("rail",)) if self.quick else (self.settings, self.sources)
        )
        benchmark_command(sources, settings, self.out, self.plug, self.claims, self.quiet)
