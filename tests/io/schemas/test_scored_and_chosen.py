"""Scores of answers a row beside the chosen one; `test_wild.py` and its neighbours read these files, too."""

import pytest
from wild import stores, worlds
from wild.case import Case
from wild.truths import every_pair_of_rows

from robust_rlhf_jax.io import Columns, load_pairs


def scored_and_best(items):
    return [
        {"prompt": item.prompt, "response": text, "score": score, "is_best": score == max(item.scores)}
        for item in items for text, score in zip(item.answers, item.scores, strict=True)
    ]  # fmt: skip


CASES = (
    Case("scored_and_best_rows", scored_and_best, stores.table(), world=worlds.rankings, truth=every_pair_of_rows,
         facts=("prompt",)),
)  # fmt: skip


@pytest.mark.parametrize(
    "flag", [("label", "chosen", "rejected"), ("is_best", 1, 0), ("preferred", "yes", "no")]
)
@pytest.mark.parametrize("score", ["score", "rank"])
def test_scores_that_contradict_the_chosen_answer_are_asked_about(flag, score):
    name, won, lost = flag
    rows = [
        {"prompt": f"p{i}", "response": f"x {i} {j}", score: 1 + (j + (i == 4)) % 2, name: won if j else lost}
        for i in range(6) for j in ((1, 0) if score == "score" else (0, 1))
    ]  # fmt: skip
    rows = rows if score == "score" else [row | {score: 3 - row[score]} for row in rows]
    with pytest.raises(
        ValueError, match=f"{name} and {score} both .* row 9: choose by --label {name} or --label {score}"
    ):
        load_pairs(rows, featuriser="format")
    found = {by: load_pairs(rows, columns=Columns(label=by), featuriser="format") for by in (name, score)}
    assert found[name].texts.chosen == [f"x {i} 1" for i in range(6)]
    assert found[score].texts.chosen == [f"x {i} {int(i != 4)}" for i in range(6)]
