"""Several raters of one pair: they may disagree, no fold splits them, and exports count their votes."""

import json

import numpy as np
import pytest
from text_pairs import made_up_fit

from robust_rlhf_jax.audit.config import Writing
from robust_rlhf_jax.audit.delivery import deliver
from robust_rlhf_jax.audit.findings import find
from robust_rlhf_jax.io import load_pairs

N, RATERS = 30, ("ann", "bob", "cy")
VOTES = [[("a", "b", "tie")[(i + 2 * r) % 3 if i % 3 == 0 else i % 2] for r in range(3)] for i in range(N)]
SIDES = [
    {
        "id": i,
        "prompt": f"Question {i}?",
        "response_a": f"One answer of {i} words",
        "response_b": f"Another {i * i}, longer",
    }
    for i in range(N)
]


def written(folder, form):
    path = folder / "pairs.jsonl"
    rows = []
    for side, votes in zip(SIDES, VOTES, strict=True):
        if form == "columns":
            rows.append(side | {f"label_{who}": vote for who, vote in zip(RATERS, votes, strict=True)})
        else:
            rows += [
                side | {"annotator": who, "label": vote} for who, vote in zip(RATERS, votes, strict=True)
            ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture(params=["columns", "rows"])
def path(request, tmp_path):
    return written(tmp_path, request.param)


def test_raters_of_a_pair_are_no_duplicates_and_stay_in_one_fold(path):
    pairs = load_pairs(path, featuriser="format")
    assert pairs.n_pairs == 3 * N
    assert set(pairs.raters) == set(RATERS)
    issues = find(pairs, made_up_fit(pairs)).issues
    assert not issues["both_orders"].flag.any()
    assert not issues["near_duplicates"].flag.any()
    assert len(np.unique(pairs.clusters)) == N


def test_exports_count_the_votes_of_every_pair(path, tmp_path):
    pairs = load_pairs(path, featuriser="format")
    out = tmp_path / "out.jsonl"
    deliver(find(pairs, made_up_fit(pairs)), Writing(export=out))
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == pairs.n_rows
    for row in rows:
        votes = VOTES[row["id"]]
        assert [row["votes_first"], row["votes_second"], row["votes_tie"]] == [
            votes.count(v) for v in ("a", "b", "tie")
        ]
