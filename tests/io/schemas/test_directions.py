"""Columns that say which end of scores, ranks and rankings is the better one; `test_wild.py` reads these files, too."""

import pytest
from wild import sheets, stores
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import describe, load_pairs


def turned(row: dict) -> dict:
    return row | {"rating_a": row["rating_b"], "rating_b": row["rating_a"]}


@each
def lower_is_better(i, item):
    return turned(sheets.stars([item])[0]) | {"score_direction": "lower is better"}


@each
def lower_in_some_rows(i, item):
    row = sheets.stars([item])[0]
    return (turned(row) if i % 3 == 1 else row) | {"higher_is_better": i % 3 != 1}


@each
def penalties(i, item):
    return turned(sheets.stars([item])[0]) | {"kind": "penalty"}


@each
def worst_to_best(i, item):
    first, second = ("B", "A") if item.vote > 0 else ("A", "B")
    return {"prompt": item.prompt, "response_a": item.a, "response_b": item.b, "ranking": f"{first}, {second}",
            "ranking_order": "worst to best"}  # fmt: skip


CASES = (
    Case("scores_lower_is_better", lower_is_better, stores.table(), options={"ties": True}),
    Case("scores_lower_in_some_rows", lower_in_some_rows, stores.jsonl()),
    Case("scores_of_penalties", penalties, stores.table(), refused="column kind says 'penalty'", flags=None),
    Case("ranking_worst_to_best", worst_to_best, stores.table()),
)


def scored(said: dict, best: float = 0.2, other: float = 0.9, n: int = 20):
    """Of each prompt the first of two answers has the score `best`."""
    return [
        {"prompt": f"p {i}", "response": f"{who} {i}", "score": value} | said
        for i in range(n)
        for who, value in (("good", best), ("bad", other))
    ]


def first_words(pairs) -> set[str]:
    return {text.split()[0] for text in pairs.texts.chosen}


@pytest.mark.parametrize(
    "said",
    [{"score_direction": "lower is better"}, {"direction": "lower_is_better"}, {"note": "Smaller is better."},
     {"scale": "1 = best, 5 = worst"}, {"scale": "5 is worst"}, {"lower_is_better": "yes"},
     {"higher_is_better": False}, {"optimize": "min"}, {"goal": "minimize"}, {"note": "Higher = worse"},
     {"scale": "1=excellent, 5=poor"}, {"skala": "1 = sehr gut, 6 = ungenügend"}, {"note": "niedriger ist besser"}],
)  # fmt: skip
@pytest.mark.parametrize("n", [20, 5000])
def test_low_scores_are_the_best_where_a_column_says_so(said, n):
    assert first_words(load_pairs(scored(said, n=n), featuriser="format")) == {"good"}
    assert f"turned round as {next(iter(said))} says" in describe(scored(said)).roles["label"]


@pytest.mark.parametrize(
    "said",
    [{"score_direction": "higher is better"}, {"scale": "1 = worst, 5 = best"}, {"lower_is_better": 0},
     {"kind": "reward"}, {"direction": "en-de"}, {"type": "harmful"}, {"note": "a lower score would be better here"},
     {"order": "best to worst"}, {"metric": "helpfulness"}, {"score_direction": 1}, {"metric": "error-free"}],
)  # fmt: skip
def test_high_scores_stay_the_best_where_no_column_says_otherwise(said):
    assert first_words(load_pairs(scored(said, 0.9, 0.2), featuriser="format")) == {"good"}
    assert describe(scored(said)).roles["label"] == "score: the highest is the best"


@pytest.mark.parametrize(
    "said",
    [{"kind": "cost"}, {"metric": "perplexity"}, {"score_type": "toxicity"}, {"score_order": "ascending"}],
)
def test_what_may_say_that_low_scores_are_better_is_asked_about(said):
    ((name, cell),) = said.items()
    with pytest.raises(
        ValueError, match=f"column {name} says '{cell}', .* turn the signs .* leave column {name} out"
    ):
        load_pairs(scored(said), featuriser="format")


def test_a_column_that_says_it_in_some_rows_alone_is_asked_about():
    rows = scored({"score_direction": ""})
    rows[0]["score_direction"] = "lower is better"
    with pytest.raises(ValueError, match="column score_direction says 'lower is better'"):
        load_pairs(rows, featuriser="format")


def test_ranks_of_which_1_is_the_worst_are_turned_round():
    rows = [
        {"prompt": f"p {i}", "response_a": f"good {i}", "response_b": f"bad {i}", "rank_a": 2, "rank_b": 1}
        | {"rank_meaning": "1 = worst"}
        for i in range(9)
    ]
    assert first_words(load_pairs(rows, featuriser="format")) == {"good"}


def test_signs_in_a_ranking_contradict_an_order_from_the_worst_on():
    rows = [
        {
            "prompt": f"p {i}",
            "response_a": f"x {i}",
            "response_b": f"y {i}",
            "ranking": "A>B",
            "order": "worst first",
        }
        for i in range(9)
    ]
    with pytest.raises(ValueError, match=r"column order says 'worst first'.* write the best first"):
        load_pairs(rows, featuriser="format")


def test_of_many_answers_the_best_is_not_the_one_that_was_paired():
    rows = [
        {"prompt": "p", "response": f"x {i}", "score": i, "score_direction": "lower is better"}
        for i in range(11)
    ]
    with pytest.raises(ValueError, match="column score_direction says"):
        load_pairs(rows + [row | {"prompt": "q"} for row in rows[:2]], featuriser="format")


def test_a_kind_inside_the_objects_of_answers_is_asked_about():
    rows = [
        {
            "prompt": f"p {i}",
            "responses": [{"text": f"{w} {i}", "score": w, "kind": "penalty"} for w in (1, 2)],
        }
        for i in range(9)
    ]
    with pytest.raises(ValueError, match="the key kind in column responses says 'penalty'"):
        load_pairs(rows, featuriser="format")


@pytest.mark.parametrize(
    "said",
    [{"score_direction": -1}, {"score_sign": "-1"}, {"metric_name": "word error rate"}, {"metric": "mean MQM"},
     {"metric": "MQM"}, {"score_type": "regret"}, {"metric": "normalised edit distance"}],
)  # fmt: skip
def test_scores_of_which_less_may_be_better_are_asked_about(said):
    with pytest.raises(ValueError, match="as if the highest score were the best: turn the signs"):
        load_pairs(scored(said), featuriser="format")
