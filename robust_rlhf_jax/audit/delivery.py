"""What an audit hands on: the file with verdicts or without dropped pairs, the reward head, the thresholds crossed."""

import contextlib

import numpy as np
from jaxtyping import Bool

from robust_rlhf_jax.io import RewardHead
from robust_rlhf_jax.io.exports import of_whole_rows, own_names, whole_export, write_rows
from robust_rlhf_jax.terminal import counted
from robust_rlhf_jax.unfinished import whole_path

from .advice import Advice
from .config import Writing
from .fail_if import ThresholdCrossed, check_thresholds
from .files import files_of
from .findings import Findings
from .raters_of_file import RatersOfFile
from .terminal_tables import print_written
from .verdicts import judge_pairs


def warn_of_clean(advice: Advice | None, writing: Writing) -> None:
    """Say so where the file is written without pairs that the advice leaves in."""
    if advice is not None and advice.action != "drop" and advice.flagged and writing.clean is not None:
        print(
            f"Warning: --clean leaves out {counted(advice.flagged, 'flagged pair')}, and the advice is to leave "
            f"{'it' if advice.flagged == 1 else 'them'} in."
        )


def deliver(findings: Findings | None, writing: Writing, raters: RatersOfFile | None = None) -> None:
    """Exports and the reward head, all of them or none; the names of all files; then the thresholds.

    **Raises:** ThresholdCrossed, after all is written, where `fail_if` says so.
    """
    if findings is not None:
        _write(findings, writing, raters)
    print_written(writing.files(files_of(raters)))
    crossed = [] if findings is None else check_thresholds(writing.fail_if, findings.summary.shares)
    if crossed:
        raise ThresholdCrossed("; ".join(crossed) + ".")


def _write(findings: Findings, writing: Writing, raters: RatersOfFile | None) -> None:
    pairs = findings.pairs
    with contextlib.ExitStack() as whole:
        if writing.export is not None:
            columns = exported_columns(findings, writing, raters)
            write_rows(pairs, whole.enter_context(whole_export(pairs, writing.export)), columns)
            renamed = {old: new for old, new in own_names(pairs, columns).items() if old != new}
            if renamed:
                print(
                    f"--export: the file has columns {', '.join(renamed)} of its own, so the audit's are called "
                    f"{', '.join(renamed.values())}."
                )
        if writing.clean is not None:
            kept = _kept(findings, writing, raters)
            write_rows(pairs, whole.enter_context(whole_export(pairs, writing.clean)), {}, keep=kept)
            ties = int(np.sum(pairs.ties & ~kept))
            left_out = f", and left out {counted(ties, 'tie')}" if ties else ""
            print(f"--clean: kept {int(kept.sum()):,} of {counted(pairs.n_pairs, 'pair')}{left_out}.")
            if writing.drop_raters and raters is not None:
                print(raters.dropped(pairs))
            beside = of_whole_rows(pairs, kept)
            if beside:
                print(f"--clean: {beside[0].lower()}{beside[1:]}")
        if writing.head is not None:
            reward_head(findings).write(whole.enter_context(whole_path(writing.head)))


def exported_columns(findings: Findings, writing: Writing, raters: RatersOfFile | None) -> dict[str, list]:
    """`Verdicts.columns`, where raters are rated with the weights that `raters.csv` has; kept is what
    `--clean` keeps.
    """
    verdicts = findings.verdicts
    if raters is not None and raters.table is not None:
        verdicts = judge_pairs(findings.batch, findings.issues, raters.weights_of(findings.pairs))
    kept = _kept(findings, writing, raters)
    return verdicts._replace(keep=kept, weight=verdicts.weight * kept).columns()


def _kept(findings: Findings, writing: Writing, raters: RatersOfFile | None) -> Bool[np.ndarray, " N"]:
    kept = findings.verdicts.keep
    if writing.drop_raters and raters is not None:
        kept = kept & ~raters.of_bad_raters(findings.pairs)
    return kept


def reward_head(findings: Findings) -> RewardHead:
    """The robust reward, mean over the fits, with what it needs to score new texts."""
    pairs, robust = findings.pairs, findings.held_out.audit.robust
    facts = {
        "source": pairs.path.name, "pairs": pairs.n_pairs, "kept": int(np.sum(findings.verdicts.keep)),
        "epsilon": findings.summary.epsilon, "accuracy": robust.accuracy,
        "log_loss": robust.log_loss, "kind": pairs.kind,
    }  # fmt: skip
    return RewardHead(pairs.names, robust.theta, pairs.featuriser, facts)
