"""What `robust-rlhf sweep` takes: a file, the settings as flags (`config.py` describes them), and how to run them."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import tyro

from .config import SweepConfig
from .config_file import read_config

DEFAULT = SweepConfig()


@dataclasses.dataclass(frozen=True)
class SweepArguments:
    """Measure how far corrupt preferences push each algorithm from the best policy. Stopped, the same command resumes.

    Args:
        file: a sweep as TOML, such as --print-config prints; flags given beside it win.
        settings: the sweep itself.
        out: folder for results.parquet, gap_vs_epsilon.png, summary.json and parts, the finished batches.
        print_config: print the sweep as TOML and end.
        quiet: print a plain line every half minute instead of a bar.
        engine: local, this process; processes, one per core of the processor; ray, tasks of a Ray cluster (needs the
            extra ray); auto, processes where JAX runs on a CPU of several cores, else local.
        ray_address: HOST:PORT of a Ray cluster, or auto; one of its own on this machine if not given.
    """

    file: Annotated[
        Path | None, tyro.conf.Positional, tyro.conf.DisallowNone, tyro.conf.arg(metavar="[FILE]")
    ] = None
    settings: Annotated[SweepConfig, tyro.conf.arg(name="")] = DEFAULT
    out: Path = Path("results")
    print_config: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    # The engine is not a setting of the sweep: neither the file nor the name of a part depends on it.
    engine: Literal["auto", "local", "processes", "ray"] = "auto"
    ray_address: Annotated[str | None, tyro.conf.DisallowNone] = None


def with_file(arguments: SweepArguments, words: Sequence[str]) -> SweepArguments:
    """`words` read once more with the file's settings as the defaults, so that flags win and the file does else.

    **Raises:** ValueError for a bad file.
    """
    if arguments.file is None:
        return arguments
    default = dataclasses.replace(SweepArguments(), settings=read_config(arguments.file))
    return tyro.cli(SweepArguments, args=words, default=default, prog="robust-rlhf sweep")
