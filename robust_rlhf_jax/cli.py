"""The command `robust-rlhf`: sweep, audit, describe, reproduce and report."""

import contextlib
import sys
from pathlib import Path
from typing import Literal, NoReturn

from robust_rlhf_jax.audit.fail_if import ThresholdCrossed
from robust_rlhf_jax.terminal import flush_or_drop, harmless, harmless_errors, print_anything

try:
    import tyro
except ImportError:  # the library works without the command's packages
    tyro = None

EXTRAS = "The command line needs extra packages: pip install 'robust-rlhf-jax[cli]'."

COMPLETIONS = ("--tyro-print-completion", "--tyro-write-completion")
SHELLS = ("bash", "zsh", "tcsh", "fish")


def _sweep(arguments) -> None:
    from robust_rlhf_jax.processor_devices import use_all_cores
    from robust_rlhf_jax.sweeps import config_toml, sweep_command
    from robust_rlhf_jax.sweeps.arguments import with_file

    arguments = with_file(arguments, sys.argv[2:])
    arguments.settings.check()
    if arguments.print_config:
        print(config_toml(arguments.settings), end="")
        return
    if arguments.engine == "local":
        use_all_cores()
    with _engine(arguments) as execute:
        sweep_command(arguments.settings, arguments.out, arguments.quiet, execute)


def _engine(arguments):
    """A block that gets who computes the sweep's batches; None for this process."""
    if arguments.engine == "local":
        if arguments.ray_address is not None:
            raise ValueError(f"--ray-address {arguments.ray_address} is for --engine ray: add that.")
        return contextlib.nullcontext()
    from robust_rlhf_jax.sweeps.ray_engine import ray_cluster

    return ray_cluster(arguments.ray_address)


def audit(
    source: str,
    /,
    epsilon: float | None = None,
    inject: float = 0.0,
    injection: Literal["flip_confident", "flip_random"] = "flip_confident",
    estimator: str = "fit_reward",
    folds: int = 5,
    repeats: int | None = None,
    seed: int = 0,
    top: int = 10,
    out: Path | None = None,
    chosen: str | None = None,
    rejected: str | None = None,
    prompt: str | None = None,
    label: str | None = None,
    first_is: str | None = None,
    rater: str | None = None,
    weight: str | None = None,
    tie: str | None = None,
    pair_id: str | None = None,
    features: Literal["auto", "numeric", "embeddings", "texts", "scores"] = "auto",
    featuriser: str = "hashed",
    embeddings: tuple[Path, Path] | None = None,
    skip_bad: float = 0,
    truncate: int = 512,
    export: Path | None = None,
    clean: Path | None = None,
    head: Path | None = None,
    fail_if: tuple[str, ...] = (),
    scale: tuple[float, float] | None = None,
    tie_is: str | None = None,
    ranking: Literal["ranks", "order"] | None = None,
    split: str | None = None,
    encoding: str | None = None,
    dry_run: bool = False,
) -> None:
    """Fit plain and robust reward models to a preference file, and say what is wrong with which pairs.

    Args:
        source: a file (CSV, JSON, Parquet, Arrow, arrays; texts also compressed), a folder, a pattern such as
            "data/*.parquet", or "rail", the bundled real choices.
        epsilon: largest fraction of pairs that may be corrupt; decided from the evidence if not given.
        inject: corrupt this known fraction of the labels first, and report precision and recall.
        injection: which labels to flip: the most confident ones or random ones.
        estimator: the robust fit; see docs/audit.md for the choices and what they measured.
        folds: parts of the cross-validation.
        repeats: times that the cross-validation is repeated with other parts; 5 for small files, else 1, if not given.
        seed: of parts and injection.
        top: suspicious pairs to print.
        out: folder for audit.html, suspects.csv, audit.json and suspicion.png.
        chosen: column of the preferred side, or of the first side where a label decides.
        rejected: column of the other side.
        prompt: column of the prompt.
        label: column that says which side won; "none" if the first side always won.
        first_is: the label that means the first side, where words do not tell.
        rater: column of who labelled each pair.
        weight: column of how much each pair counts.
        tie: column that says whether a pair is a tie.
        pair_id: column that names the pair; several rows of one are judgements of several raters.
        features: what features are made of.
        featuriser: how texts become features: hashed, format, or the folder of a local model.
        embeddings: two .npy files, chosen and rejected, to be used as features.
        skip_bad: unusable rows to go on without: a count, or below 1 a share.
        truncate: words of prompt and response that a trainer keeps.
        export: write the file back with suspicion, keep, suggested_label, weight and margin.
        clean: write the file back without the pairs to drop.
        head: write the reward as .safetensors.
        fail_if: shares that end the command with status 3, such as "corrupt>0.05" or "identical>1%".
        scale: the numbers of the label at which the first and the second side are surest; the middle is a tie.
        tie_is: the label that means a tie, where words do not tell.
        ranking: whether a list called ranking holds the rank of each answer or the answers in order.
        split: which split of a data set that has several.
        encoding: of a text file that is not in UTF-8.
        dry_run: print what would be read, with three pairs, and stop.
    """
    from robust_rlhf_jax.audit.command import Reading, Writing, run_audit
    from robust_rlhf_jax.io import Columns

    options = {"epsilon": epsilon, "inject": inject, "injection": injection, "estimator": estimator}
    columns = Columns(
        chosen, rejected, prompt, label, first_is, rater, weight, tie, pair_id, scale, tie_is, ranking
    )
    reading = Reading(columns, features, featuriser, embeddings, skip_bad, truncate, split, encoding)
    if dry_run:
        reading.describe(source)
        return
    writing = Writing(None, export, clean, head, fail_if)
    run_audit(
        source, folds=folds, repeats=repeats, seed=seed, top=top, out=out, **options, reading=reading, writing=writing
    )  # fmt: skip


def describe(
    source: str,
    /,
    chosen: str | None = None,
    rejected: str | None = None,
    prompt: str | None = None,
    label: str | None = None,
    first_is: str | None = None,
    rater: str | None = None,
    weight: str | None = None,
    tie: str | None = None,
    pair_id: str | None = None,
    features: Literal["auto", "numeric", "embeddings", "texts", "scores"] = "auto",
    embeddings: tuple[Path, Path] | None = None,
    skip_bad: float = 0,
    scale: tuple[float, float] | None = None,
    tie_is: str | None = None,
    ranking: Literal["ranks", "order"] | None = None,
    split: str | None = None,
    encoding: str | None = None,
) -> None:
    """Say what an audit would read of a preference file, with three pairs side by side.

    Args:
        source: a file, a folder, or a pattern such as "data/*.parquet".
        chosen: column of the preferred side, or of the first side where a label decides.
        rejected: column of the other side.
        prompt: column of the prompt.
        label: column that says which side won; "none" if the first side always won.
        first_is: the label that means the first side, where words do not tell.
        rater: column of who labelled each pair.
        weight: column of how much each pair counts.
        tie: column that says whether a pair is a tie.
        pair_id: column that names the pair; several rows of one are judgements of several raters.
        features: what features are made of.
        embeddings: two .npy files, chosen and rejected, to be used as features.
        skip_bad: unusable rows to go on without: a count, or below 1 a share.
        scale: the numbers of the label at which the first and the second side are surest; the middle is a tie.
        tie_is: the label that means a tie, where words do not tell.
        ranking: whether a list called ranking holds the rank of each answer or the answers in order.
        split: which split of a data set that has several.
        encoding: of a text file that is not in UTF-8.
    """
    from robust_rlhf_jax.audit.command import Reading
    from robust_rlhf_jax.io import Columns

    columns = Columns(
        chosen, rejected, prompt, label, first_is, rater, weight, tie, pair_id, scale, tie_is, ranking
    )
    Reading(columns, features, "format", embeddings, skip_bad, split=split, encoding=encoding).describe(
        source
    )


def reproduce(
    what: Literal["table1", "robustness"],
    /,
    quick: bool = False,
    out: Path = Path("reproduction"),
    quiet: bool = False,
) -> None:
    """Measure what the paper claims. Stopped, the same command resumes where it stopped.

    Args:
        what: table1, the gap's exponent in epsilon under each coverage assumption beside the paper's; or robustness,
            the worst return of every algorithm and rival over all attacks.
        quick: small worlds and few seeds, to see that it runs; no figures to quote.
        out: folder for the table (.md), the figure (.png), all cells (.parquet), settings and versions (.json).
        quiet: a plain line every half minute instead of a bar.
    """
    from robust_rlhf_jax.processor_devices import use_all_cores
    from robust_rlhf_jax.reproduce import reproduce_robustness, reproduce_table1

    use_all_cores()
    {"table1": reproduce_table1, "robustness": reproduce_robustness}[what](quick, out, quiet)


def report(folder: Path, /, out: Path | None = None) -> None:
    """Write one HTML page, figures and tables that need no network, of what a sweep or a reproduction left.

    Args:
        folder: what sweep or reproduce wrote, finished or not.
        out: the page; report.html in the folder if not given.
    """
    from robust_rlhf_jax.report import write_report

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
        _end(2, str(error))
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


def _run(tyro) -> None:
    from robust_rlhf_jax.compilation_cache import keep_compiled_programs
    from robust_rlhf_jax.sweeps.arguments import SweepArguments

    _check_shell(sys.argv[1:])
    keep_compiled_programs()
    # The sweep's arguments are data first: its file is read before its flags are.
    commands = {
        "sweep": SweepArguments,
        "audit": audit,
        "describe": describe,
        "reproduce": reproduce,
        "report": report,
    }
    with harmless_errors(sys.argv):
        chosen = tyro.extras.subcommand_cli_from_dict(commands, prog="robust-rlhf")
    if isinstance(chosen, SweepArguments):
        _sweep(chosen)


def _check_shell(words: list[str]) -> None:
    """tyro takes the name of a shell for granted."""
    if len(words) > 1 and words[0].replace("_", "-") in COMPLETIONS and words[1] not in SHELLS:
        raise ValueError(f"{words[0]} {words[1]}: there are {', '.join(SHELLS)}.")


def _end(status: int, sentence: str) -> NoReturn:
    flush_or_drop(sys.stdout)
    with contextlib.suppress(OSError):
        print(f"robust-rlhf: {harmless(sentence)}", file=sys.stderr, flush=True)
    sys.exit(status)
