"""Small preference sets over texts with known faults, from the generator of the benchmark."""

import functools
import json
import sys
from pathlib import Path

import numpy as np

from robust_rlhf_jax.io import Columns, load_pairs
from robust_rlhf_jax.io.featurisers.hashed import HashedNgrams

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from text_faults import text_set


def faulty_file(folder, fault, share, n=300):
    """(path, mask of the faulty rows, twins)."""
    lines, faulty, twin = _faulty_lines(fault, share, n)
    path = folder / "pairs.jsonl"
    path.write_text(lines)
    return path, faulty.copy(), twin.copy()


@functools.cache
def _faulty_lines(fault, share, n):
    made = text_set(n, fault, share)
    return "\n".join(map(json.dumps, made.rows)) + "\n", made.faulty, made.twin


def made_up_fit(pairs, wrong=(), seed=0):
    """A `HeldOut` as an audit would give it, without fitting: margins 3 for labels that are right, −3 for `wrong`."""
    from robust_rlhf_jax.audit import AuditResult, FitScores
    from robust_rlhf_jax.audit.held_out import held_out_pairs

    decided = pairs.decided()
    n, p = decided.n_pairs, len(pairs.names)
    margins = np.where(np.isin(np.flatnonzero(pairs.fitted), wrong), -3.0, 3.0)
    flagged = margins < 0
    share = float(flagged.mean())
    plain, robust = (
        FitScores(
            accuracy=0.9, accuracy_error=0.0, log_loss=0.3, log_loss_error=0.0, fold_accuracy=np.zeros((1, 5)),
            theta=theta, margins=margins, status=np.zeros((1, 5), int), at_radius=np.zeros((1, 5), bool),
        )
        for theta in np.random.default_rng(seed).normal(size=(2, p))
    )  # fmt: skip
    result = AuditResult(
        plain=plain, robust=robust, gain=0.0, gain_error=0.0, differences=decided.preferred_differences(),
        labels=np.ones(n), lengths=np.ones(n), left_out=np.zeros(n), suspicion=np.logaddexp(0, -margins),
        epsilon=share, evidence=share, interval=np.array([0.0, 0.2]), flagged=flagged, injected=np.zeros(n, bool),
        precision=np.nan, recall=np.nan, average_precision=np.nan, rank=p, contention=None,
    )  # fmt: skip
    return held_out_pairs(pairs, result)


def few_buckets():
    """Features of texts for what does not depend on them: the default decomposes 32,768 rows, however few texts."""
    return HashedNgrams(buckets=1 << 13)


def read(path, featuriser="hashed", **columns):
    return load_pairs(path, featuriser=featuriser, columns=Columns(label="label", **columns))
