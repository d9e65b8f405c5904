"""An answer a row, scored by several people; `test_wild.py` and its neighbours read, turn and export these files."""

import dataclasses

import pytest
from wild import stores, worlds
from wild.case import Case
from wild.truths import every_pair_of_rows

from robust_rlhf_jax.io import Columns, load_pairs

PEOPLE = ("w-amber", "w-birch")


def rated_by_people(items):
    """The second person likes what the first one does not, on another scale."""
    return [
        {"prompt": item.prompt, "model_response": text, "rating": score if who == PEOPLE[0] else 30 - score,
         "annotator_id": who}
        for item in items for text, score in zip(item.answers, item.scores, strict=True) for who in PEOPLE
    ]  # fmt: skip


def by_person(items):
    said = every_pair_of_rows(items)
    return [dataclasses.replace(vote, rater=PEOPLE[0]) for vote in said] + [
        dataclasses.replace(vote, chosen=vote.rejected, rejected=vote.chosen, rater=PEOPLE[1])
        for vote in said
    ]


CASES = (
    Case("rated_by_people", rated_by_people, stores.table(), world=worlds.rankings, truth=by_person,
         facts=("prompt", "rater")),
)  # fmt: skip


def test_answers_that_one_person_each_scored_are_compared():
    rows = [
        {"prompt": f"p{i // 2}", "response": f"x {i}", "score": i % 2, "annotator": f"w{i % 2}"}
        for i in range(8)
    ]
    found = load_pairs(rows, featuriser="format")
    assert (found.n_pairs, found.raters) == (4, None)


def test_the_scores_of_several_people_on_one_prompt_stay_together():
    items = CASES[0].items()
    found = load_pairs(rated_by_people(items), featuriser="format")
    assert len(set(found.groups.tolist())) == len(items)


@pytest.mark.parametrize("beside", ["image_id", "input", "System", "context"])
def test_the_same_words_about_another_thing_are_another_prompt(beside):
    rows = [
        {"instruction": "Describe.", beside: f"n{i // 2}", "response": f"x {i}", "score": i % 2}
        for i in range(8)
    ]
    found = load_pairs(rows, featuriser="format")
    assert sorted(found.texts.chosen) == ["x 1", "x 3", "x 5", "x 7"]


def test_what_differs_from_answer_to_answer_is_no_part_of_the_prompt():
    rows = [
        {"prompt": f"p{i // 2}", "input": f"n{i}", "response": f"x {i}", "score": i % 2} for i in range(8)
    ]
    assert load_pairs(rows, featuriser="format").n_pairs == 4


def test_the_model_that_wrote_an_answer_is_no_part_of_the_prompt():
    rows = [
        {"prompt": f"q{i}", "system": f"sys{s}", "output": f"x {i} {s}", "annotator": f"r{a}", "score": (s + a) % 3}
        for i in range(4) for s in range(3) for a in range(3)
    ]  # fmt: skip
    found = load_pairs(rows, featuriser="format")
    assert found.n_pairs == 36
    assert all(a != b for a, b in zip(found.texts.chosen, found.texts.rejected, strict=True))


@pytest.mark.parametrize("beside", ["context", "history"])
def test_a_passage_that_few_answers_share_is_no_part_of_the_prompt(beside):
    rows = [
        {"question": f"q{i // 3}", beside: f"n{max(i, 3)}", "answer": f"x {i}", "score": i % 3} for i in range(12)
    ]  # fmt: skip
    assert load_pairs(rows, featuriser="format").n_pairs == 12


def test_answers_of_people_who_scored_no_other_one_are_counted():
    people = ("v", "v", "w", "u")
    rows = [
        {"prompt": f"p{i}", "response": f"x {i} {j}", "score": j, "annotator": who}
        for i in range(5) for j, who in enumerate(people[: 3 + (i == 0)])
    ]  # fmt: skip
    found = load_pairs(rows, featuriser="format")
    assert found.n_pairs == 5
    assert "6 answers make no pair: whoever scored them scored no other answer" in str(found.description)
    several = [row for row in rows if row["annotator"] == "v"]
    assert "whoever" not in str(load_pairs(several, featuriser="format").description)


@pytest.mark.parametrize("name", ["pair_id", "task id", "pair"])
def test_ranks_are_those_of_one_ranking(name):
    rows = [
        {name: i, "prompt": f"p{i // 2}", "response": f"x {i} {j}", "rank": 1 + (i + j) % 2}
        for i in range(8) for j in range(2)
    ]  # fmt: skip
    found = load_pairs(rows, featuriser="format")
    assert sorted(found.texts.chosen) == sorted(row["response"] for row in rows if row["rank"] == 1)


def test_ids_of_the_answers_are_no_rankings():
    rows = [{"id": i, "prompt": f"p{i // 3}", "response": f"x {i}", "rank": 1 + i % 3} for i in range(12)]
    assert load_pairs(rows, featuriser="format").n_pairs == 12


def test_an_id_of_each_answer_names_no_ranking():
    rows = [
        {"prompt": f"p{k // 4}", "response": f"answer {k}", "item_id": k, "rater": f"r{who}", "rank": 1 + (k + who) % 4}
        for k in range(16)
        for who in range(3)
    ]  # fmt: skip
    found = load_pairs(rows, featuriser="format")
    assert found.n_pairs == 4 * 6 * 3


def ranked_twice(other_answers, by="", in_order=True):
    """Two people rank three answers to each prompt, the second one the other way round."""
    rows = [
        {"prompt": f"p{i}", "response": f"x {i} {j}{' again' * (who and other_answers)}",
         "rank": 3 - j if who else 1 + j} | ({by: f"{i} {who}"} if by else {})
        for i in range(6) for who in range(2) for j in range(3)
    ]  # fmt: skip
    return rows if in_order else sorted(rows, key=lambda row: (row["prompt"], row["rank"]))


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("other_answers", [False, True])
def test_complete_rankings_that_follow_each_other_are_not_mixed(other_answers, start):
    rows = [row | {"rank": row["rank"] - 1 + start} for row in ranked_twice(other_answers)]
    found = load_pairs(rows, featuriser="format")
    assert "Ranks that begin again under one prompt are those of another ranking" in str(found.description)
    assert found.n_pairs == 6 * 2 * 3
    assert found.decided().n_pairs == found.n_pairs
    assert len(set(found.groups.tolist())) == 6


def test_rankings_of_the_same_answers_in_another_order_are_asked_about():
    rows = ranked_twice(False, "ranking", in_order=False)
    with pytest.raises(
        ValueError, match=r"several places, as several people do: name .* --rater.* --pair-id"
    ):
        load_pairs(rows, featuriser="format")
    for asked in (Columns(pair_id="ranking"), Columns(rater="ranking")):
        assert load_pairs(rows, columns=asked, featuriser="format").n_pairs == 6 * 2 * 3


def ranked_in_two_places(ranks, **ids):
    """Four answers to each prompt; in every third of them, the ranks stand in another order."""
    return [
        {
            "prompt": f"p{i}",
            **{name: f"{stem}{i}" for name, stem in ids.items()},
            "response": f"x {i} {j}",
            "rank": r,
        }
        for i in range(12)
        for j, r in enumerate(ranks if i % 3 else sorted(ranks))
    ]


@pytest.mark.parametrize("id_of", ["ranking_id", "set_id", "Comparison ID"])
def test_equal_ranks_of_one_id_are_ties(id_of):
    rows = ranked_in_two_places((1, 2, 1, 2), **{id_of: "r"})
    found = load_pairs(rows, featuriser="format")
    assert (found.n_pairs, found.decided().n_pairs) == (12 * 6, 12 * 4)


@pytest.mark.parametrize(("same_answers", "prompts_of_id"), [(True, 1), (False, 2)])
def test_an_id_of_answers_that_several_ranked_or_of_several_prompts_names_no_ranking(
    same_answers, prompts_of_id
):
    rows = [
        {
            "prompt": f"p{i}",
            "set_id": f"s{i // prompts_of_id}",
            "response": f"x {i} {j} {0 if same_answers else k}",
            "rank": rank,
        }
        for i in range(6)
        for k, ranks in enumerate(((1, 2, 3), (2, 1, 3)))
        for j, rank in enumerate(ranks)
    ]
    found = load_pairs(rows, featuriser="format")
    assert (found.n_pairs, found.decided().n_pairs) == (36, 36)


def test_ranks_that_may_begin_again_or_be_ties_are_asked_about():
    rows = ranked_in_two_places((1, 2, 1, 2), prompt_id="q")
    with pytest.raises(
        ValueError, match=r"rank gives several answers .* ties or those of another ranking: .* --pair-id"
    ):
        load_pairs(rows, featuriser="format")
    found = load_pairs(rows, columns=Columns(pair_id="prompt_id"), featuriser="format")
    assert (found.n_pairs, found.decided().n_pairs) == (12 * 6, 12 * 4)


def test_equal_ranks_in_one_ranking_are_ties():
    rows = [
        {"prompt": f"p{i}", "response": f"x {i} {j}", "rank": rank}
        for i in range(4) for j, rank in enumerate((1, 2, 2, 3))
    ]  # fmt: skip
    found = load_pairs(rows, featuriser="format")
    assert (found.n_pairs, found.decided().n_pairs) == (24, 20)


def test_one_text_may_come_twice_in_a_ranking():
    rows = [{"prompt": f"p{i // 3}", "response": f"x {i % 3 // 2}", "rank": 1 + i % 3} for i in range(12)]
    assert load_pairs(rows, featuriser="format").n_pairs == 8


@pytest.mark.parametrize("name", ["stars", "Bewertung", "how_good"])
def test_scores_of_any_name_are_read_where_they_are_named(name):
    rows = [{"prompt": f"p{i // 2}", "response": f"x {i}", name: 1 + i % 2} for i in range(8)]
    with pytest.raises(
        ValueError, match=r"several rows of response to one prompt, and no column .* by --label"
    ):
        load_pairs(rows, featuriser="format")
    found = load_pairs(rows, columns=Columns(label=name), featuriser="format")
    assert found.texts.chosen == ["x 1", "x 3", "x 5", "x 7"]


@pytest.mark.parametrize("scores", [("Good", "Bad"), ("4/5", "2/5"), ("very good", "okay")])
def test_scores_in_words_are_asked_about(scores):
    rows = [{"prompt": f"p{i // 2}", "response": f"x {i}", "rating": scores[i % 2]} for i in range(8)]
    with pytest.raises(ValueError, match=f"rating holds '{scores[0]}' and the like: name by --label"):
        load_pairs(rows, featuriser="format")


def test_a_label_of_options_is_no_score():
    rows = [
        {
            "task": i // 2,
            "text": "ab"[i % 2],
            "price": i * 7 % 5,
            "time": i * 3 % 4,
            "y": int(i % 4 in (0, 3)),
        }
        for i in range(80)
    ]
    assert load_pairs(rows, columns=Columns(label="y")).names == ("price", "time")


@pytest.mark.parametrize("other", ["reward", "Rating", "overall"])
@pytest.mark.parametrize("wrong", [12, 10])
def test_two_scores_that_contradict_each_other_throughout_are_asked_about(other, wrong):
    rows = [
        {"prompt": f"p{i}", "response": f"x {i} {j}", "score": j, other: 1 - j if i < wrong else j}
        for i in range(12)
        for j in range(2)
    ]
    if wrong == 12:
        with pytest.raises(
            ValueError, match="both score the answers, and disagree in nearly all of them: choose by"
        ):
            load_pairs(rows, featuriser="format")
    chosen = {
        name: load_pairs(rows, columns=Columns(label=name), featuriser="format").texts.chosen[0]
        for name in ("score", other)
    }
    assert chosen == {"score": "x 0 1", other: "x 0 0"}
    if wrong < 12:
        assert load_pairs(rows, featuriser="format").texts.chosen[0] == "x 0 1"


def scored_by(name, scores=(3, 1)):
    return [{"prompt": f"p{i // 2}", "response": f"x {i}", name: scores[i % 2]} for i in range(8)]


@pytest.mark.parametrize("name", ["human_rank", "Rank of the answer", "avgRank", "ranking"])
def test_a_label_that_may_hold_ranks_is_asked_about(name):
    with pytest.raises(ValueError, match=f"column {name} may hold ranks, .*: call it rank"):
        load_pairs(scored_by(name), columns=Columns(label=name), featuriser="format")


@pytest.mark.parametrize("name", ["loss", "error_rate", "nll", "toxicity", "nErrors", "Harm score"])
def test_a_label_of_which_less_is_better_by_its_name_is_asked_about(name):
    with pytest.raises(ValueError, match=f"column {name} says by its name .*: turn its signs round"):
        load_pairs(scored_by(name), columns=Columns(label=name), featuriser="format")


@pytest.mark.parametrize(
    "name", ["harmlessness", "usefulness", "accuracy", "error_free", "frankness", "placebo"]
)
def test_a_label_of_which_more_is_better_is_read(name):
    found = load_pairs(scored_by(name), columns=Columns(label=name), featuriser="format")
    assert found.texts.chosen == [f"x {i}" for i in (0, 2, 4, 6)]


@pytest.mark.parametrize("name", ["Rank", "rank ", "Ranking Position", "ranking-position"])
def test_ranks_are_known_however_they_are_written(name):
    found = load_pairs(scored_by(name, (1, 2)), featuriser="format")
    assert found.texts.chosen == [f"x {i}" for i in (0, 2, 4, 6)]
