"""What `robust-rlhf audit`, `describe` and `clean` take: flags are the fields of `config.py`."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from .config import AuditConfig, Reading, Writing

Flat = tyro.conf.arg(name="")


@dataclasses.dataclass(frozen=True)
class AuditArguments:
    """Fit plain and robust reward models to a preference file, and list the faulty pairs with their faults.

    Args:
        source: a file (CSV, JSON, Parquet, Arrow, arrays; texts also compressed), a folder, a pattern
            such as "data/*.parquet", or a bundled set: "rail" (choices of journeys), "arguments" (votes on texts).
        config: what is fitted.
        reading: how the file is read.
        writing: where results go.
        top: number of suspicious pairs to print.
        dry_run: print what would be read, with three pairs, and stop.
        memory: audit embeddings, as fit takes them, by passes that use no more memory than this, such as 2GB.
    """

    source: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FILE")]
    config: Annotated[AuditConfig, Flat] = dataclasses.field(default_factory=AuditConfig)
    reading: Annotated[Reading, Flat] = dataclasses.field(default_factory=Reading)
    writing: Annotated[Writing, Flat] = dataclasses.field(default_factory=Writing)
    top: int = 10
    dry_run: bool = False
    memory: str | None = None

    def run(self) -> None:
        from .by_passes.source_command import audit_source_command
        from .command import audit_file, print_description

        self.writing.check_conditions()
        if self.dry_run:
            print_description(self.source, self.reading)
        elif self.memory is not None:
            audit_source_command(self.source, self.memory, self.config, self.reading, self.writing, self.top)
        else:
            audit_file(self.source, self.config, self.reading, self.writing, self.top)


@dataclasses.dataclass(frozen=True)
class DescribeArguments:
    """Say what an audit would read of a preference file, with three pairs side by side.

    Args:
        source: a file, a folder, a pattern such as "data/*.parquet", or "arguments", the bundled votes on texts.
        reading: how the file is read.
    """

    source: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FILE")]
    reading: Annotated[Reading, Flat] = dataclasses.field(default_factory=Reading)

    def run(self) -> None:
        from .command import print_description

        print_description(self.source, self.reading)


@dataclasses.dataclass(frozen=True)
class CleanArguments:
    """Write a preference file without the pairs that you dropped on the page of its audit.

    Args:
        source: the file that was audited.
        decisions: what the page saved (decisions.json or decisions.csv), suspects.csv with decisions changed by hand,
            or ask.csv with the answers of raters.
        out: the file to write, in the format of the source.
        reading: how the file is read, as the audit had it.
    """

    source: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FILE")]
    decisions: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DECISIONS")]
    out: Path
    reading: Annotated[Reading, Flat] = dataclasses.field(default_factory=Reading)

    def run(self) -> None:
        from robust_rlhf_jax.terminal import harmless

        from .page_decisions import clean_file

        kept, of, beside = clean_file(self.source, self.decisions, self.out, self.reading)
        print(f"Kept {kept:,} of {of:,} pairs.{'' if kept else ' The file that is written has none.'}")
        if beside:
            print(beside)
        print(f"Wrote {harmless(self.out)}.")
