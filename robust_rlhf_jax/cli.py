"""The command `robust-rlhf`: sweep, audit, reproduce and report."""

import dataclasses
import sys
from pathlib import Path
from typing import Literal

try:
    import tyro
except ImportError:  # the library works without the command's packages
    tyro = None

EXTRAS = "The command line needs extra packages: pip install 'robust-rlhf-jax[cli]'."


def sweep(
    preset: str = "quick",
    families: tuple[str, ...] = ("random", "chain", "gridworld"),
    attacks: tuple[str, ...] = ("push_features", "flip_confident", "spoil_transitions"),
    epsilons: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2, 0.3),
    seeds: int = 8,
    algorithms: tuple[str, ...] = ("standard", "uniform_coverage", "clean_reference"),
    n_pairs: int | None = None,
    temperature: float = 1.0,
    seed: int = 0,
    lanes: int = 24,
    out: Path = Path("results"),
) -> None:
    """Measure how far corrupt preferences push each algorithm from the best policy.

    Args:
        preset: sizes of the worlds: quick, full (with the 50x50 grid) or tiny; coverage or coverage_tiny.
        families: random, chain, gridworld, partial_coverage; of the coverage presets: uniform, condition_number,
            coverage_ratio.
        attacks: flip_random, flip_confident, teacher_stochastic, teacher_myopic, teacher_mistake, teacher_skip,
            least_covered, impersonate, praise_rare, push_features, scale_features, leverage_points, mimicry,
            spoil_transitions, joint, adaptive, adaptive_filtered.
        epsilons: fractions of corrupt pairs, each in [0, 0.5).
        seeds: data sets per family.
        algorithms: standard, uniform_coverage, uniform_coverage_reuse, condition_number,
            condition_number_autodiff, first_order, pessimistic_mle, pessimistic_mle_linear, r3m, cdpo, rdpo,
            sever, redescending, confident_learning, clean_reference.
        n_pairs: pairs per data set; the preset's if not given.
        temperature: of the Bradley-Terry labels.
        seed: of everything.
        lanes: cells per compiled batch; less memory if lower.
        out: folder for results.parquet, gap_vs_epsilon.png and summary.json.
    """
    from robust_rlhf_jax.sweeps import SweepConfig, sweep_command

    given = locals()
    names = [field.name for field in dataclasses.fields(SweepConfig)]
    sweep_command(SweepConfig(**{name: given[name] for name in names}), out)


def audit(
    source: str,
    /,
    epsilon: float | None = None,
    inject: float = 0.0,
    injection: Literal["flip_confident", "flip_random"] = "flip_confident",
    estimator: str = "filtered",
    folds: int = 5,
    repeats: int = 5,
    seed: int = 0,
    top: int = 10,
    out: Path | None = None,
) -> None:
    """Fit plain and robust reward models to a preference file and list the pairs that look corrupt.

    Args:
        source: a file (.parquet, .csv, .jsonl, .npz) or "rail", the bundled real choices.
        epsilon: fraction of pairs that may be corrupt; that of --inject, else 0.1, if not given.
        inject: corrupt this known fraction of the labels first, and report precision and recall.
        injection: which labels to flip: the most confident ones or random ones.
        estimator: the robust fit; see docs/audit.md for the choices and what they measured.
        folds: parts of the cross-validation.
        repeats: times that the cross-validation is repeated with other parts.
        seed: of parts and injection.
        top: suspicious pairs to print.
        out: folder for suspects.csv, audit.json and suspicion.png.
    """
    from robust_rlhf_jax.diagnostics.audit_report import run_audit

    options = {"epsilon": epsilon, "inject": inject, "injection": injection, "estimator": estimator}
    run_audit(source, folds=folds, repeats=repeats, seed=seed, top=top, out=out, **options)


def reproduce(
    what: Literal["table1", "robustness"], /, quick: bool = False, out: Path = Path("reproduction")
) -> None:
    """Measure what the paper claims. Stopped, the same command goes on where it was.

    Args:
        what: table1, the gap's exponent in epsilon under each coverage assumption beside the paper's; or robustness,
            the worst return of every algorithm and rival over all attacks.
        quick: small worlds and few seeds, to see that it runs; no figures to quote.
        out: folder for the table (.md), the figure (.png), all cells (.parquet), settings and versions (.json).
    """
    from robust_rlhf_jax.reproduce import reproduce_robustness, reproduce_table1

    {"table1": reproduce_table1, "robustness": reproduce_robustness}[what](quick, out)


def report(folder: Path, /, out: Path | None = None) -> None:
    """Write one HTML page, figures and tables that need no network, of what a sweep or a reproduction left.

    Args:
        folder: what sweep or reproduce wrote, finished or not.
        out: the page; report.html in the folder if not given.
    """
    from robust_rlhf_jax.report import write_report

    print(f"Wrote {write_report(folder, out)}")


def main() -> None:
    """Entry point: bad input ends in one sentence and exit status 2."""
    if tyro is None:
        sys.exit(EXTRAS)
    try:
        tyro.extras.subcommand_cli_from_dict(
            {"sweep": sweep, "audit": audit, "reproduce": reproduce, "report": report}, prog="robust-rlhf"
        )
    except (ValueError, OSError) as error:
        print(f"robust-rlhf: {error}", file=sys.stderr)
        sys.exit(2)
    except ImportError as error:
        print(f"robust-rlhf: {error}. {EXTRAS}", file=sys.stderr)
        sys.exit(2)
