"""`audit` for a terminal and a folder: tables, suspects.csv, audit.json, suspicion.png."""

import contextlib
import csv
import math
import time
from pathlib import Path

import jax
import numpy as np

from robust_rlhf_jax.checks import check_seed
from robust_rlhf_jax.iterate import Status
from robust_rlhf_jax.outputs import environment, whole_folder, write_json
from robust_rlhf_jax.terminal import harmless, marked

from .cross_fit import DEFAULT_ESTIMATOR, AuditResult, FitOverflow, audit
from .source import AuditSource, read_source

DEFAULT_EPSILON = 0.1
FILES = ("suspects.csv", "audit.json", "suspicion.png")


def run_audit(
    source: str,
    *,
    epsilon: float | None = None,
    inject: float = 0.0,
    injection: str = "flip_confident",
    estimator: str = DEFAULT_ESTIMATOR,
    folds: int = 5,
    repeats: int = 5,
    seed: int = 0,
    top: int = 10,
    out: Path | None = None,
) -> None:
    """Audit `source` ("rail" or a file), print what was found, and write it to the folder `out`.

    Without `epsilon` "fit_reward" decides it from the evidence; other estimators are told `inject` where that is
    positive, else 0.1. `top`: how many suspicious pairs to print.
    The three files appear in `out` together or not at all: they are written apart and moved at the end.

    **Raises:** FileNotFoundError, or ValueError in one sentence, for a bad file or a bad option; ImportError
    without the extra `cli`.
    """
    if top < 0:
        raise ValueError(f"top={top} is negative: give the number of suspicious pairs to print.")
    check_seed(seed)
    if epsilon is None and estimator != DEFAULT_ESTIMATOR:
        epsilon = inject or DEFAULT_EPSILON
    read = read_source(source)
    _check_pairs(source, read)
    config = {
        "source": source, "epsilon": epsilon, "inject": inject, "injection": injection,
        "estimator": estimator, "folds": folds, "repeats": repeats, "seed": seed,
    }  # fmt: skip
    # Opened first: that a folder cannot be written is said now, not after a minute of work.
    with contextlib.nullcontext() if out is None else whole_folder(out, FILES) as folder:
        began = time.perf_counter()
        try:
            result = _run_with_progress(read, config)
        except FitOverflow as error:
            raise ValueError(f"{source}: {error}") from None
        seconds = time.perf_counter() - began
        if folder is not None:
            _write(folder, result, read.names, config, seconds)
    _print_report(result, read.names, config, top, seconds)


def _check_pairs(source: str, read: AuditSource) -> None:
    groups = read.data.n_pairs if read.groups is None else len(np.unique(read.groups))
    if groups < 2:
        raise ValueError(
            f"{source} has {groups} pair: fits are scored on pairs that they did not see, so give more."
        )


def audit_warnings(result: AuditResult) -> list[str]:
    """One sentence for each thing that makes the figures doubtful."""
    n, k = result.differences.shape
    failed = np.unique(result.status[result.status != Status.CONVERGED])
    bound = int(result.at_radius.sum())
    found = []
    if n < k:
        found.append(f"There are fewer pairs ({n}) than features ({k}): held-out figures mean little.")
    if result.rank < k:
        found.append(
            f"The differences span {result.rank} of {k} dimensions: along {k - result.rank} the data say nothing."
        )
    if bound:
        found.append(
            f"{bound} of {result.at_radius.size} fits reached the bound on |theta|: labels are (nearly) separable."
        )
    if failed.size:
        names = ", ".join(Status(int(code)).name.lower() for code in failed)
        share = int((result.status != Status.CONVERGED).sum())
        found.append(f"{share} of {result.status.size} fits did not end well ({names}).")
    return found


def _run_with_progress(read: AuditSource, config: dict) -> AuditResult:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # A bar in a file is nothing but a line's end, and one on a pipe that nobody reads would end the work.
    with Progress(*columns, transient=True, disable=not Console().is_terminal) as bar:
        task = bar.add_task("folds")
        return audit(
            jax.random.key(config["seed"]),
            read.data,
            config["epsilon"],
            folds=config["folds"],
            repeats=config["repeats"],
            groups=read.groups,
            inject=config["inject"],
            injection=config["injection"],
            estimator=config["estimator"],
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )


def _print_report(result: AuditResult, names, config, top, seconds):
    from rich.console import Console

    console = Console()
    n, k = result.differences.shape
    flipped = f", {int(result.injected.sum())} labels flipped" if config["inject"] else ""
    console.print(
        f"{marked(config['source'])}: {n} pairs{flipped}; rank {result.rank} of {k}; {seconds:.1f} s"
    )
    for sentence in audit_warnings(result):
        console.print(f"[yellow]Warning:[/] {sentence}")
    console.print(_accuracy_table(result, config))
    console.print(f"robust − plain accuracy: {result.gain:+.3f} ± {result.gain_error:.3f}")
    if config["epsilon"] is None:
        console.print(_evidence(result))
    if config["inject"]:
        console.print(
            f"flagged {int(result.flagged.sum())}: precision {result.precision:.3f}, "
            f"recall {result.recall:.3f}, average precision {result.average_precision:.3f}"
        )
    if top:
        console.print(_suspects_table(result, names, top))


def _evidence(result) -> str:
    if not result.epsilon > 0:
        return "No evidence of corruption: no pair is flagged."
    return f"Contradicted by the rest: {result.epsilon:.1%} of the pairs; as many are flagged."


def _accuracy_table(result, config):
    from rich.table import Table

    title = f"Held out, clean labels ({config['folds']} folds × {config['repeats']}; ± one standard error)"
    table = Table("fit", "accuracy", "log-loss", title=title, title_justify="left")
    told = "ε from evidence" if config["epsilon"] is None else f"ε = {config['epsilon']:g}"
    for i, name in enumerate(("plain", f"robust ({config['estimator']}, {told})")):
        table.add_row(
            name,
            f"{result.accuracy[i]:.3f} ± {result.accuracy_error[i]:.3f}",
            f"{result.log_loss[i]:.3f} ± {result.log_loss_error[i]:.3f}",
        )
    return table


def _suspects_table(result, names, top):
    from rich.table import Table

    shown = [marked(name) for name in names[:8]]
    table = Table(title="Pairs that look corrupt, worst first (preferred − other)", title_justify="left")
    for column in ("row", "suspicion", *shown, *(["injected"] if result.injected.any() else [])):
        table.add_column(column, justify="right")
    for i in worst_first(result)[:top]:
        x = result.labels[i] * result.differences[i] + 0.0  # no −0
        mark = ["yes" if result.injected[i] else "no"] if result.injected.any() else []
        table.add_row(
            str(i + 1), f"{result.suspicion[i]:.2f}", *(f"{v:+.3g}" for v in x[: len(shown)]), *mark
        )
    return table


def worst_first(result: AuditResult) -> np.ndarray:
    """Row indices [N] in the order of falling suspicion; ties in the order of the data."""
    return np.argsort(-result.suspicion, kind="stable")


def _write(folder: Path, result, names, config, seconds):
    from .plot import plot_suspicion

    spoilt = f", {config['inject']:.0%} of labels flipped" if config["inject"] else ""
    _write_suspects(folder / FILES[0], result, names)
    _write_json(folder / FILES[1], result, names, config, seconds)
    plot_suspicion(
        result, folder / FILES[2], f"Suspicion of each pair: {harmless(Path(config['source']).name)}{spoilt}"
    )


def _write_suspects(path, result, names):
    """All pairs, worst first; rows count from 1, and the differences are preferred − other as labelled."""
    header = ["row", "suspicion", "margin", "label", "flagged", "injected", *(f"preferred_minus_other_{n}" for n in names)]  # fmt: skip  # noqa: E501
    with open(path, "w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for i in worst_first(result):
            writer.writerow(
                [
                    i + 1,
                    f"{result.suspicion[i]:.6g}",
                    f"{result.margins[i]:.6g}",
                    int(result.labels[i]),
                    int(result.flagged[i]),
                    int(result.injected[i]),
                    *(f"{v:.6g}" for v in result.labels[i] * result.differences[i] + 0.0),
                ]
            )


def _write_json(path, result, names, config, seconds):
    record = {
        "config": config,
        "environment": environment(),
        "seconds": round(seconds, 3),
        "n_pairs": len(result.labels),
        "features": list(names),
        "rank": result.rank,
        "warnings": audit_warnings(result),
        "plain": _one_fit(result, 0),
        "robust": _one_fit(result, 1),
        "gain": result.gain,
        "gain_error": result.gain_error,
        "epsilon": result.epsilon,
        "n_flagged": int(result.flagged.sum()),
        "n_injected": int(result.injected.sum()),
        "precision": _number(result.precision),
        "recall": _number(result.recall),
        "average_precision": _number(result.average_precision),
    }
    write_json(path, record)


def _one_fit(result, i):
    return {
        "accuracy": float(result.accuracy[i]),
        "accuracy_error": float(result.accuracy_error[i]),
        "log_loss": float(result.log_loss[i]),
        "log_loss_error": float(result.log_loss_error[i]),
        "fold_accuracy": result.fold_accuracy[..., i].tolist(),
        "theta": result.theta[i].tolist(),
        "fits_at_radius": int(result.at_radius[..., i].sum()),
    }


def _number(value):
    """JSON has no NaN: a figure that does not exist is null."""
    return None if math.isnan(value) else value
