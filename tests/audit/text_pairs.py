"""Small preference sets over texts with known faults, from the generator of the benchmark."""

import json
import sys
from pathlib import Path

import numpy as np

from robust_rlhf_jax.io import Columns, load_pairs

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from text_faults import text_set


def faulty_file(folder, fault, share, n=300):
    """(path, mask of the faulty rows, twins)."""
    made = text_set(n, fault, share)
    path = folder / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, made.rows)) + "\n")
    return path, made.faulty, made.twin


def made_up_fit(pairs, wrong=(), seed=0):
    """A `HeldOut` as an audit would give it, without fitting: margins 3 for labels that are right, −3 for `wrong`."""
    from robust_rlhf_jax.audit import AuditResult
    from robust_rlhf_jax.audit.held_out import fitted_rows, held_out

    rows = fitted_rows(pairs)
    n, p = len(rows), len(pairs.names)
    margins = np.where(np.isin(rows, wrong), -3.0, 3.0)
    flagged = margins < 0
    share = float(flagged.mean())
    rng = np.random.default_rng(seed)
    two, fits = np.zeros(2), np.zeros((1, 5, 2))
    result = AuditResult(
        accuracy=two + 0.9, accuracy_error=two, log_loss=two + 0.3, log_loss_error=two, gain=0.0, gain_error=0.0,
        fold_accuracy=fits, theta=rng.normal(size=(2, p)), differences=pairs.preferred_differences()[rows],
        labels=np.ones(n),
        lengths=np.ones(n), margins=margins, plain_margins=margins, left_out=np.zeros(n),
        suspicion=np.logaddexp(0, -margins), epsilon=share, evidence=share,
        interval=np.array([0.0, 0.2]), flagged=flagged, injected=np.zeros(n, bool), precision=np.nan,
        recall=np.nan, average_precision=np.nan, rank=p, contention=None, status=fits.astype(int),
        at_radius=fits.astype(bool),
    )  # fmt: skip
    return held_out(pairs, rows, result)


def read(path, **columns):
    return load_pairs(path, columns=Columns(label="label", **columns))
