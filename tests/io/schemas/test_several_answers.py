"""Several answers in a row; `test_wild.py` and its neighbours read these files, too."""

import numpy as np
import pytest
from wild import stores, truths, worlds
from wild.case import Case
from wild.chosen import each
from wild.rows import choices, chosen_texts, read
from wild.truths import Vote, every_pair

from robust_rlhf_jax.io import Columns, load_pairs
from robust_rlhf_jax.io.schemas.answer_judgements import ranking_in

LETTERS = "abcdefgh"

THREE = {"k": 3}

JSONL = stores.jsonl()


def order(item):
    """The answers' places from the best to the worst."""
    return sorted(range(len(item.answers)), key=lambda i: -item.scores[i])


def in_columns(item, stem="response_"):
    return {f"{stem}{LETTERS[i]}": answer for i, answer in enumerate(item.answers)}


@each
def ranked_by_signs(i, item):
    return {
        "prompt": item.prompt,
        **in_columns(item),
        "ranking": " > ".join(LETTERS[j].upper() for j in order(item)),
    }


@each
def ranked_backwards(i, item):
    return {
        "prompt": item.prompt,
        **in_columns(item),
        "ranking": "<".join(LETTERS[j] for j in order(item)[::-1]),
    }


@each
def ranked_by_letters(i, item):
    ranking = "".join(LETTERS[j].upper() for j in order(item))
    return {"prompt": item.prompt, "responses": list(item.answers), "ranking": ranking}


@each
def ranked_by_names_in_a_list(i, item):
    return {
        "prompt": item.prompt,
        **in_columns(item),
        "rank": [f"response_{LETTERS[j]}" for j in order(item)],
    }


@each
def ranked_by_numbers(i, item):
    columns = {f"response_{j + 1}": answer for j, answer in enumerate(item.answers)}
    return {"prompt": item.prompt, **columns, "ranking": ",".join(str(j + 1) for j in order(item))}


@each
def ranks_in_one_cell(i, item):
    ranks = [order(item).index(j) + 1 for j in range(len(item.answers))]
    return {"prompt": item.prompt, **in_columns(item), "ranks": " ".join(map(str, ranks))}


@each
def ranks_by_name(i, item):
    ranks = {f"response_{LETTERS[j]}": order(item).index(j) + 1 for j in range(len(item.answers))}
    return {"prompt": item.prompt, **in_columns(item), "ranks": ranks}


@each
def numbers_by_name(i, item):
    row = ranks_by_name([item])[0]
    return row | {"ranking": {name[-1].upper(): rank for name, rank in row.pop("ranks").items()}}


@each
def ranks_in_columns(i, item):
    ranks = {f"rank_{LETTERS[j]}": order(item).index(j) + 1 for j in range(len(item.answers))}
    return {"prompt": item.prompt, **in_columns(item), **ranks}


@each
def scores_in_columns(i, item):
    scores = {f"{LETTERS[j].upper()} score": score for j, score in enumerate(item.scores)}
    return {"prompt": item.prompt, **in_columns(item), **scores}


@each
def best_by_letter(i, item):
    return {
        "prompt": item.prompt,
        **in_columns(item),
        "preferred": f"Response {LETTERS[order(item)[0]].upper()}",
    }


@each
def best_beside_scores_of_a_model(i, item):
    """The scores say the opposite, and are not what people said."""
    scores = {f"score_{LETTERS[j]}": -score for j, score in enumerate(item.scores)}
    return {"prompt": item.prompt, **in_columns(item), **scores, "preferred": LETTERS[order(item)[0]]}


@each
def best_by_index(i, item):
    return {"prompt": item.prompt, "responses": list(item.answers), "chosen": order(item)[0]}


@each
def best_by_number(i, item):
    return {"prompt": item.prompt, "responses": list(item.answers), "best_idx": order(item)[0] + 1}


@each
def best_by_text(i, item):
    return {
        "prompt": item.prompt,
        "responses": list(item.answers),
        "best_response": item.answers[order(item)[0]],
    }


@each
def best_by_model(i, item):
    answers = [{"model": f"m-{j}", "id": 7 + j, "text": answer} for j, answer in enumerate(item.answers)]
    return {"prompt": item.prompt, "completions": answers, "preference": answers[order(item)[0]]["model"]}


@each
def best_by_id(i, item):
    answers = [{"id": 7 + j, "text": answer} for j, answer in enumerate(item.answers)]
    return {"prompt": item.prompt, "completions": answers, "preference": 7 + order(item)[0]}


@each
def best_by_flag(i, item):
    best = order(item)[0]
    return {
        "prompt": item.prompt,
        "responses": [{"text": a, "chosen": j == best} for j, a in enumerate(item.answers)],
    }


@each
def two_indices(i, item):
    best, *_, worst = order(item)
    return {"prompt": item.prompt, "responses": list(item.answers), "chosen": best, "rejected": worst}


@each
def best_and_worst(i, item):
    best, *_, worst = order(item)
    return {"prompt": item.prompt, **in_columns(item), "best": LETTERS[best], "worst": LETTERS[worst]}


@each
def most_and_least(i, item):
    columns = {f"item{j + 1}": answer for j, answer in enumerate(item.answers)}
    most, *_, least = (item.answers[j] for j in order(item))
    return {"prompt": item.prompt, **columns, "most": most, "least": least}


def best_of_each(items):
    """The best answer with each other one."""
    return [vote for vote in every_pair(items) if vote.chosen in {i.answers[order(i)[0]] for i in items}]


def ends_of_each(items):
    """Pairs with the best answer or the worst."""
    ends = {i.answers[order(i)[place]] for i in items for place in (0, -1)}
    return [vote for vote in every_pair(items) if {vote.chosen, vote.rejected} & ends]


def best_with_worst(items):
    return [
        Vote(item.answers[order(item)[0]], item.answers[order(item)[-1]], False, item.prompt, row)
        for row, item in enumerate(items)
    ]


def case(name, encode, truth=every_pair, store=JSONL, **more):
    more = {"options": THREE} | more
    return Case(name, encode, store, world=worlds.rankings, truth=truth, **more)


CASES = (
    case("ranked_by_signs", ranked_by_signs, store=stores.table()),
    case("ranked_backwards", ranked_backwards, options={"k": 5}),
    case("ranked_by_letters", ranked_by_letters),
    case("ranked_by_names_in_a_list", ranked_by_names_in_a_list),
    case("ranked_by_numbers", ranked_by_numbers, refused="ranks or --ranking order", flags={"--ranking": "order"}),
    case("ranks_in_one_cell", ranks_in_one_cell, refused="ranks or --ranking order", flags={"--ranking": "ranks"}),
    case("ranks_by_name", ranks_by_name, options={"k": 4}),
    case("numbers_by_name", numbers_by_name, refused="--ranking ranks if 1 is", flags={"--ranking": "ranks"}),
    case("ranks_in_columns", ranks_in_columns, store=stores.table()),
    case("scores_in_columns", scores_in_columns, store=stores.table()),
    case("best_by_letter", best_by_letter, best_of_each, stores.table()),
    case("best_beside_scores", best_beside_scores_of_a_model, best_of_each),
    case("best_by_index", best_by_index, best_of_each),
    case("best_by_index_parquet", best_by_index, best_of_each, stores.parquet()),
    case("best_by_number", best_by_number, best_of_each),
    case("best_of_two_by_number", best_by_number, best_of_each, options={"k": 2}),
    case("best_by_text", best_by_text, best_of_each),
    case("best_by_model", best_by_model, best_of_each),
    case("best_by_id", best_by_id, best_of_each),
    case("best_by_flag", best_by_flag, best_of_each),
    case("two_indices", two_indices, best_with_worst),
    case("best_and_worst", best_and_worst, ends_of_each, stores.table(), options={"k": 4}),
    case("most_and_least", most_and_least, ends_of_each, stores.table(), options={"k": 5}),
)  # fmt: skip


def test_the_order_of_showing_is_no_ranking(tmp_path):
    rows = [row | {"order": "CAB"} for row in ranked_by_signs(worlds.rankings(np.random.default_rng(0), k=3))]
    shown = [{k: v for k, v in row.items() if k != "ranking"} for row in rows]
    with pytest.raises(ValueError, match="3 answers a row"):
        read(tmp_path, shown)
    best = [row | {"best": "b"} for row in shown]
    assert len(read(tmp_path, best).labels) == 2 * len(best)


def test_names_of_options_with_prices_are_no_answers(tmp_path):
    rows = [
        {f"option_{j}": ["tram", "bus", "car"][j - 1] for j in (1, 2, 3)}
        | {f"price_{j}": i * j % 7 for j in (1, 2, 3)}
        | {"choice": i % 3 + 1}
        for i in range(12)
    ]
    with pytest.raises(ValueError, match="3 answers a row"):
        read(tmp_path, rows)


def test_raters_are_read_by_their_name(tmp_path):
    rows = [row | {"annotator": f"w{i % 3}"} for i, row in enumerate(choices([0, 1, 2] * 4))]
    pairs = read(tmp_path, rows)
    assert sorted(set(pairs.raters)) == ["w0", "w1", "w2"]


def test_tables_of_numbers_and_keys_of_tests_are_no_answers(tmp_path):
    numbers = [{"a": str(i), "b": str(2 * i), "c": str(3 * i), "choice": "abc"[i % 3]} for i in range(8)]
    (tmp_path / "n.csv").write_text(
        "a,b,c,choice\n" + "".join(",".join(row.values()) + "\n" for row in numbers)
    )
    with pytest.raises(ValueError):  # noqa: PT011
        load_pairs(tmp_path / "n.csv", featuriser="format")
    test = [{"question": f"q{i}", "choices": [f"x{i}", f"y{i}", f"z{i}"], "label": i % 3} for i in range(6)]
    with pytest.raises(
        ValueError, match="no column that is known to say which is the best: name one by --label"
    ):
        read(tmp_path, test)
    assert read(tmp_path, test, label="label").n_pairs == 12


def test_a_ranking_of_two_says_by_how_much(tmp_path):
    rows = [
        {"prompt": f"p{i}", "response_a": f"a {i}", "response_b": f"b {i}", "ranking": r}
        for i, r in enumerate(["A>>B", "B>A", "A=B", "A>B"])
    ]
    assert read(tmp_path, rows).strength.tolist() == [2.0, 1.0, 0.0, 1.0]
    assert ranking_in("A>=B>C") == []


@pytest.mark.parametrize(
    ("names", "cells"),
    [(("chosen", "rejected"), "ABC"), (("preferred", "rejected"), "ABC"), (("chosen", "rejected"), range(3))],
)
def test_chosen_and_rejected_may_name_answers(tmp_path, names, cells):
    texts = [{f"response_{c}": f"{c} {i}" for c in "abc"} for i in range(6)]
    rows = [
        {"prompt": f"p{i}"} | text | {names[0]: cells[i % 3], names[1]: cells[(i + 1) % 3]}
        for i, text in enumerate(texts)
    ]
    votes = truths.read_votes(read(tmp_path, rows))
    assert [(v.chosen, v.rejected) for v in votes][:3] == [("a 0", "b 0"), ("b 1", "c 1"), ("c 2", "a 2")]
    assert len(votes) == 6


@pytest.mark.parametrize("name", ["preference_strength", "strength", "overall_preference"])
def test_a_strength_is_no_number_of_an_answer(tmp_path, name):
    rows = [{"prompt": f"p{i}", "responses": [f"a{i}", f"b{i}"], name: 1 + i % 2} for i in range(6)]
    with pytest.raises(
        ValueError, match="no column that is known to say which is the best: name one by --label"
    ):
        read(tmp_path, rows)


def test_labels_of_classes_are_no_preferences(tmp_path):
    rows = [
        {"question": f"q{i}", **{f"answer{c}": f"{c} {i}" for c in "ABC"}, "label": i % 3} for i in range(6)
    ]
    with pytest.raises(ValueError, match="3 answers a row"):
        read(tmp_path, rows)
    assert read(tmp_path, rows, label="label").n_pairs == 12


def test_answers_may_be_messages(tmp_path):
    rows = choices([0, 1, 2, 1])
    for row in rows:
        row["responses"] = [[{"role": "assistant", "content": text}] for text in row["responses"]]
    assert chosen_texts(read(tmp_path, rows)) == chosen_texts(read(tmp_path, choices([0, 1, 2, 1])))


@pytest.mark.parametrize("beside", ["ranking", "ranks"])
def test_a_ranking_and_a_best_answer_that_contradict_each_other_are_asked_about(beside):
    for wrong in (0, 1):
        rows = [
            {
                "prompt": f"p{i}",
                **{f"response_{who}": f"{who} {i}" for who in "abc"},
                "best": "abc"[(i + wrong) % 3],
            }
            for i in range(9)
        ]
        for i, row in enumerate(rows):
            order = "abc"[i % 3 :] + "abc"[: i % 3]
            row |= {"ranking": ">".join(order)} if beside == "ranking" else {
                f"rank_{who}": order.index(who) + 1 for who in "abc"
            }  # fmt: skip
        if wrong:
            with pytest.raises(
                ValueError, match="both say which answer is the better one, and disagree in most"
            ):
                load_pairs(rows, featuriser="format")
        else:
            assert load_pairs(rows, featuriser="format").n_rows == 9


def ticked(i, one, **more):
    """Three answers a row, and a column for each that says whether it was chosen."""
    answers = {f"response_{who}": f"{who} {i}" for who in "abc"}
    return {"prompt": f"p{i}", **answers, **{f"{who}_chosen": int(who == one) for who in "abc"}, **more}


def test_ticks_of_three_answers_say_which_one_is_the_best():
    found = load_pairs([ticked(i, "abc"[i % 3]) for i in range(9)], featuriser="format")
    assert (found.n_pairs, {*found.texts.chosen}) == (18, {f"{'abc'[i % 3]} {i}" for i in range(9)})
    assert found.description.roles["label"] == "a_chosen, b_chosen, c_chosen: the 1 of them"


def test_a_row_of_several_ticks_is_told_of():
    rows = [ticked(i, "abc"[i % 3]) for i in range(20)]
    rows[4]["a_chosen"] = 1
    with pytest.raises(
        ValueError, match="row 5, column a_chosen is one of 2 columns that say yes, not of one"
    ):
        load_pairs(rows, featuriser="format")


@pytest.mark.parametrize("wrong", [0, 1])
@pytest.mark.parametrize("beside", ["best", "ranking", "score"])
def test_ticks_that_contradict_another_judgement_are_asked_about(wrong, beside):
    rows = []
    for i in range(9):
        best = "abc"[(i + wrong) % 3]
        order = best + "".join(who for who in "abc" if who != best)
        more = {"best": best} if beside == "best" else {"ranking": ">".join(order)}
        more = {f"score_{who}": -order.index(who) for who in "abc"} if beside == "score" else more
        rows.append(ticked(i, "abc"[i % 3], **more))
    if wrong:
        with pytest.raises(
            ValueError, match=r"a_chosen, b_chosen, c_chosen both say .* disagree in most rows: "
        ):
            load_pairs(rows, featuriser="format")
    else:
        assert load_pairs(rows, featuriser="format").n_rows == 9


def test_flags_of_objects_that_contradict_the_best_answer_are_asked_about():
    rows = [
        {
            "prompt": f"p{i}",
            "best": best,
            "responses": [{"text": f"{j} {i}", "chosen": j == i % 3} for j in range(3)],
        }
        for i in range(9)
        for best in [(i + 1) % 3]
    ]
    with pytest.raises(
        ValueError, match=r"chosen and best both say .* disagree in most rows: give --label chosen if"
    ):
        load_pairs(rows, featuriser="format")
    for name, first in (("chosen", "0 0"), ("best", "1 0")):
        assert load_pairs(rows, columns=Columns(label=name), featuriser="format").texts.chosen[0] == first
