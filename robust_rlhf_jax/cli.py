"""The command `robust-rlhf`: describe, audit, clean, embed, fit, best-of-n, leaderboard, benchmark, sweep, reproduce,
report.
"""

import contextlib
import sys
from pathlib import Path
from typing import Any, Literal, NoReturn

from robust_rlhf_jax import __version__
from robust_rlhf_jax.audit.fail_if import ThresholdCrossed
from robust_rlhf_jax.ray_connection import check_address
from robust_rlhf_jax.refused_words import one_sentence
from robust_rlhf_jax.terminal import flush_or_drop, harmless, harmless_errors, print_anything, wrapped_help
from robust_rlhf_jax.unfinished import FULL

try:
    import tyro
except ImportError:  # the library works without the command's packages
    tyro = None

EXTRAS = "The command line needs extra packages: pip install 'robust-rlhf-jax[cli]'."

DESCRIPTION = (
    "Rewards from human preferences, some of which may be corrupt. For a file of your own: robust-rlhf describe FILE, "
    "then robust-rlhf audit FILE --out audit."
)

COMPLETIONS = ("--tyro-print-completion", "--tyro-write-completion")
SHELLS = ("bash", "zsh", "tcsh", "fish")


def _sweep(arguments: Any) -> None:
    from robust_rlhf_jax.lab.sweeps import config_toml, sweep_command
    from robust_rlhf_jax.lab.sweeps.arguments import with_file

    arguments = with_file(arguments, sys.argv[2:])
    arguments.settings.check()
    if arguments.print_config:
        print(config_toml(arguments.settings), end="")
        return
    with _engine(arguments) as execute:
        sweep_command(arguments.settings, arguments.out, arguments.quiet, execute)


def _engine(arguments: Any):
    """A block that gets who computes the sweep's batches; None for this process."""
    engine = arguments.engine
    check_address(engine, arguments.ray_address)
    if engine == "ray":
        from robust_rlhf_jax.lab.sweeps.ray_engine import ray_cluster

        return ray_cluster(arguments.ray_address)
    if engine == "processes" or (engine == "auto" and _processes_pay()):
        from robust_rlhf_jax.lab.sweeps.process_engine import worker_processes

        return worker_processes(arguments.settings)
    from robust_rlhf_jax.lab.processor_devices import use_all_cores

    use_all_cores()
    return contextlib.nullcontext()


def _processes_pay() -> bool:
    """On a CPU of several cores, unless the environment says how many devices one process has."""
    import jax

    from robust_rlhf_jax.lab.processor_devices import cores, devices_are_chosen

    return not devices_are_chosen() and cores() > 1 and jax.default_backend() == "cpu"


def reproduce(
    what: Literal["table1", "robustness"],
    /,
    quick: bool = False,
    out: Path = Path("reproduction"),
    quiet: bool = False,
) -> None:
    """Measure what the paper claims. Stopped, the same command resumes where it stopped.

    Args:
        what: table1, how the gap grows with epsilon beside the paper; or robustness, the worst return over attacks.
        quick: run small worlds and few seeds, to see that it works; these figures are not worth quoting.
        out: folder for the table (.md), the figure (.png), all cells (.parquet), settings and versions (.json).
        quiet: print a plain line every half minute instead of a bar.
    """
    from robust_rlhf_jax.lab.processor_devices import use_all_cores
    from robust_rlhf_jax.lab.reproduce import reproduce_robustness, reproduce_table1

    use_all_cores()
    {"table1": reproduce_table1, "robustness": reproduce_robustness}[what](quick, out, quiet)


def report(folder: Path, /, out: Path | None = None) -> None:
    """Write one HTML page, figures and tables that need no network, of what a sweep or a reproduction left.

    Args:
        folder: what sweep or reproduce wrote, finished or not.
        out: the page; report.html in the folder if not given.
    """
    from robust_rlhf_jax.lab.report import write_report

    print(f"Wrote {harmless(write_report(folder, out))}")


def main() -> None:
    """Entry point: bad input ends in one sentence and exit status 2, Ctrl-C in one and 130."""
    if tyro is None:
        sys.exit(EXTRAS)
    print_anything(sys.stdout, sys.stderr)
    try:
        _run(tyro)
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a full disk or a reader that went is one sentence too
    except BrokenPipeError:
        _end(2, "nobody reads the output any more: the rest is not printed, and what was written stays.")
    except (ValueError, OSError) as error:
        _end(2, _sentence(error))
    except ImportError as error:
        _end(2, f"{error}. {EXTRAS}")
    except ThresholdCrossed as error:
        _end(3, str(error))
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in str(error):
            raise
        _end(2, "this needs more memory than there is: give fewer pairs, seeds or lanes.")
    except KeyboardInterrupt as stop:
        _end(130, str(stop) or "stopped.")


def _run(tyro: Any) -> None:
    from robust_rlhf_jax.audit.arguments import AuditArguments, CleanArguments, DescribeArguments
    from robust_rlhf_jax.compilation_cache import keep_compiled_programs
    from robust_rlhf_jax.heads.arguments import EmbedArguments, FitArguments
    from robust_rlhf_jax.lab.benchmark.arguments import BenchmarkArguments
    from robust_rlhf_jax.lab.sweeps.arguments import SweepArguments
    from robust_rlhf_jax.leaderboard.arguments import LeaderboardArguments
    from robust_rlhf_jax.reranking.arguments import BestOfNArguments

    if sys.argv[1:] == ["--version"]:
        print(f"robust-rlhf {__version__}")
        return
    _check_shell(sys.argv[1:])
    keep_compiled_programs()
    # A flag that is left out says None; of a sweep None takes back what its file says.
    without_none = tyro.conf.configure(tyro.conf.DisallowNone)
    commands = {
        "describe": DescribeArguments,
        "audit": AuditArguments,
        "clean": CleanArguments,
        "embed": EmbedArguments,
        "fit": FitArguments,
        "best-of-n": BestOfNArguments,
        "leaderboard": LeaderboardArguments,
        "benchmark": BenchmarkArguments,
        "sweep": SweepArguments,
        "reproduce": reproduce,
        "report": report,
    }
    commands = {name: one if name == "sweep" else without_none(one) for name, one in commands.items()}
    with harmless_errors(sys.argv), wrapped_help(sys.argv), one_sentence(sys.argv[1:]):
        chosen = tyro.extras.subcommand_cli_from_dict(commands, prog="robust-rlhf", description=DESCRIPTION)
    # The sweep's arguments are data first: its file is read before its flags are.
    if isinstance(chosen, SweepArguments):
        _sweep(chosen)
    elif chosen is not None:
        chosen.run()


def _check_shell(words: list[str]) -> None:
    """tyro takes the name of a shell for granted."""
    if len(words) > 1 and words[0].replace("_", "-") in COMPLETIONS and words[1] not in SHELLS:
        raise ValueError(f"{words[0]} {words[1]}: there are {', '.join(SHELLS)}.")


def _sentence(error: ValueError | OSError) -> str:
    """What is said of an error; of one that the system raised about a file, the file first."""
    if isinstance(error, OSError) and error.filename is not None and error.errno in FULL:
        return (
            f"{error.filename} cannot be written ({error.strerror}): make room there, or name another place."
        )
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename} cannot be opened ({error.strerror}): check the path and its permissions."
    return str(error)


def _end(status: int, sentence: str) -> NoReturn:
    flush_or_drop(sys.stdout)
    with contextlib.suppress(OSError):
        print(f"robust-rlhf: {harmless(sentence)}", file=sys.stderr, flush=True)
    sys.exit(status)
