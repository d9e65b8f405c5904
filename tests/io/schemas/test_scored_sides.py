"""Two answers with a score each; `test_wild.py` and its neighbours read, turn and export these files."""

import pytest
from wild import sheets, stores
from wild.case import Case, reading
from wild.chosen import each

from robust_rlhf_jax.io import load_pairs

TIES = {"ties": True}


@each
def named_after_sides(i, item):
    row = sheets.stars([item])[0]
    return {name.replace("rating_a", "response_a_score").replace("rating_b", "response_b_score"): cell
            for name, cell in row.items()}  # fmt: skip


@each
def beside_a_person(i, item):
    """A reward model's scores, and what a person said under a name that is no label's."""
    row = sheets.stars([item])[0]
    scores = {"rm_score_a": row.pop("rating_b"), "rm_score_b": row.pop("rating_a")}
    return row | scores | {"human_says": "A" if item.vote > 0 else "B"}


CASES = (
    Case("scores_named_after_sides", named_after_sides, stores.table(), options=TIES),
    Case("scores_beside_a_person", beside_a_person, stores.table(), refused="--label human_says",
         flags={"--label": "human_says"}),
)  # fmt: skip


def rows(n=8, **more):
    return [
        {"prompt": f"p{i}", "response_a": f"x {i}", "response_b": f"y {i}"} | {k: v[i % 2] for k, v in more.items()}
        for i in range(n)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["severity_rating", "badness_score", "negative_score", "spam_score", "latency_score", "difficulty_rating",
     "similarity_score", "length_score", "word_score",
     "mqm_score", "regret_score", "ppl_score",
     "toxicity_score", "harm_rating", "perplexity_score", "error_score", "elo_rating", "total_costs_score",
     "logloss_score", "risk_free_loss_score", "elo-score", "biased_score", "offensiveness_rating",
     "violation_score", "plagiarism_score", "refusal_rating", "nll_score", "ter_score", "edit_distance_score",
     "failure_score", "rank_score", "ai_detector_score", "position_score", "downvote_score", "dislikes_rating",
     "editing_effort_score", "inaccuracy_rating", "complaints_score", "confusion_score"],
)  # fmt: skip
def test_a_score_of_which_more_is_worse_says_nothing_of_who_won(name):
    with pytest.raises(ValueError, match="no label"):
        load_pairs(rows(**{f"{name}_a": (1, 3), f"{name}_b": (2, 2)}), featuriser="format")


@pytest.mark.parametrize(
    "name",
    ["harmless", "harmlessness", "eloquence", "harmony", "glossiness", "costume", "brisk", "unbiased", "un_biased",
     "non_toxicity", "nontoxicity", "error_free", "no_error", "bias-free", "non_spam",
     "word_choice", "length_control", "complexity_handling", "effortless", "word_order", "upvote"],
)  # fmt: skip
def test_a_score_of_which_more_is_better_says_who_won(name):
    found = load_pairs(rows(**{f"{name}_score_a": (1, 3), f"{name}_score_b": (2, 2)}), featuriser="format")
    assert found.swapped.tolist() == [True, False] * 4


@pytest.mark.parametrize("name", ["mos", "MOS", "naturalness_mos"])
def test_mean_opinions_are_scores(name):
    found = load_pairs(rows(**{f"{name}_a": (1.5, 3), f"{name}_b": (2, 2)}), featuriser="format")
    assert found.swapped.tolist() == [True, False] * 4
    if name == "mos":
        rated = [{"prompt": f"p{i // 2}", "response": f"x {i}", "mos": 1 + (i % 4) % 3} for i in range(16)]
        assert load_pairs(rated, featuriser="format").texts.chosen[:2] == ["x 1", "x 2"]


def test_who_wrote_a_side_says_not_who_won():
    scores = {"score_a": (1, 3), "score_b": (2, 2)}
    for more in (
        {"model_a": ("m", "n"), "model_b": ("n", "m")},
        {"topic": ("a", "c")},
        {"language": ("a", "a")},
    ):
        found = load_pairs(rows(**scores, **more), featuriser="format")
        assert found.schema == "two scored sides"


def test_a_label_by_the_models_name_is_asked_about():
    more = {"model_a": ("m", "n"), "model_b": ("n", "m"), "person": ("m", "m")}
    data = rows(score_a=(1, 3), score_b=(2, 2), **more)
    with pytest.raises(ValueError, match="--label person"):
        load_pairs(data, featuriser="format")
    found = load_pairs(data, featuriser="format", **reading({"--label": "person"}))
    assert found.swapped.tolist() == [False, True] * 4


@pytest.mark.parametrize(
    "more", [{"response_a_score": (3, 1), "response_b_score": (2, 2)}, {"A score": (3, 1)}]
)
def test_scores_by_two_names_are_asked_about(more):
    with pytest.raises(ValueError, match="no label"):
        load_pairs(rows(score_a=(1, 3), score_b=(2, 2), **more), featuriser="format")


# Of four rows the scores are for the first side in two; a column says these ways of all sixteen.
HALF = (1, 1, -1, -1)
SCORES = (1, -1, 1, -1)


def beside(name, says, ways):
    """Sixteen rows with scores, and a column that has `says` of each way."""
    return [
        {"prompt": f"p{i}", "response_a": f"x {i}", "response_b": f"y {i}", "score_a": SCORES[i % 4], "score_b": 0,
         name: says(ways[i % len(ways)], i)}
        for i in range(16)
    ]  # fmt: skip


ARM = ("arm", lambda way, i: "A" if way > 0 else "B")
LANGUAGE = ("first_language", lambda way, i: "one" if way > 0 else "two")
REFERENCE = ("reference", lambda way, i: f"x {i}" if way > 0 else f"y {i}")


@pytest.mark.parametrize(("name", "says"), [ARM, LANGUAGE, REFERENCE])
def test_a_column_that_goes_not_with_the_scores_says_not_who_won(name, says):
    found = load_pairs(beside(name, says, HALF), featuriser="format")
    assert found.schema == "two scored sides"
    assert found.swapped.tolist() == [False, True] * 8


@pytest.mark.parametrize("ways", [SCORES, [-way for way in SCORES], (*SCORES[:3], 1)])
@pytest.mark.parametrize(("name", "says"), [ARM, REFERENCE])
def test_a_column_that_goes_with_the_scores_or_against_them_is_asked_about(name, says, ways):
    with pytest.raises(ValueError, match=f"--label {name}"):
        load_pairs(beside(name, says, ways), featuriser="format")


@pytest.mark.parametrize("name", ["final_verdict", "humanChoice", "Who won", "winner 2"])
def test_a_column_called_as_labels_are_is_asked_about(name):
    with pytest.raises(ValueError, match=f"--label {name}"):
        load_pairs(beside(name, ARM[1], HALF), featuriser="format")


def test_the_lower_rank_wins():
    found = load_pairs(rows(rank_a=(1, 2), rank_b=(2, 1)), featuriser="format")
    assert found.labels.tolist() == [1, -1] * 4
    assert found.description.roles["label"] == "the lower of rank_a and rank_b"


def test_ranks_beside_scores_must_agree():
    scores = {"score_a": (9, 3), "score_b": (4, 8)}
    agreeing = rows(**scores, rank_a=(1, 2), rank_b=(2, 1))
    assert load_pairs(agreeing, featuriser="format").labels.tolist() == [1, -1] * 4
    with pytest.raises(ValueError, match="score_a and rank_a contradict each other"):
        load_pairs(rows(**scores, rank_a=(2, 1), rank_b=(1, 2)), featuriser="format")


@pytest.mark.parametrize(
    ("stem", "cells", "named"),
    [("rating", ("good", "bad"), True), ("helpful", (1, 5), True), ("model", ("x", "y"), False)],
)
def test_columns_that_may_score_both_sides_are_named(stem, cells, named):
    rows = [
        {"answer_a": f"x {i}", "answer_b": f"y {i}", f"{stem}_a": cells[i % 2], f"{stem}_b": cells[1 - i % 2]}
        for i in range(6)
    ]
    said = rf"if {stem}_a and {stem}_b score them, write numbers as score_a and score_b, .*, else name its column"
    with pytest.raises(ValueError, match=said if named else "no label: name its column"):
        load_pairs(rows)
