"""Columns by their names, as platforms and people call them; `test_wild.py` and its neighbours read the files."""

import pytest
from wild import stores
from wild.arenas import word
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import Columns, load_pairs

TIES = {"ties": True}
RATED = ("prompt", "row", "rater")


def called(prompt, first, second, label, words, rater=None, **more):
    """Columns called so, with the words for the first side, the second and a tie."""

    @each
    def encode(i, item):
        row = {prompt: item.prompt, first: item.a, second: item.b, label: word(item.vote, *words)}
        return more | row | ({} if rater is None else {rater: item.votes[0][0]})

    return encode


@each
def chosen_code(i, item):
    chosen, rejected = (f"{'=' * 60}\n{side}" for side in (item.chosen, item.rejected))
    return {
        "instruction": item.prompt,
        "chosen_code": chosen,
        "rejected_code": rejected,
        "language": "python",
    }


@each
def triplets(i, item):
    """As sentence-transformers has them."""
    return {"anchor": item.prompt, "positive": item.chosen, "negative": item.rejected}


def long_texts(best, worst):
    """Sides of other names, which hold texts rather than names."""

    @each
    def encode(i, item):
        texts = (f"{'=' * 60}\n{side}" for side in (item.chosen, item.rejected))
        return {"prompt": item.prompt} | dict(zip((best, worst), texts, strict=True))

    return encode


@each
def judged_at_length(i, item):
    """A judge's verdict after what it says of the answers."""
    verdict = word(item.vote, "[[A]]", "[[B]]", "[[C]]")
    sides = {"question": item.prompt, "answer_a": item.a, "answer_b": item.b}
    return sides | {"judgment": f"Assistant B is brief, and A is not.\n\nMy verdict: {verdict}"}


MTURK = called("Input.prompt", "Input.response_a", "Input.response_b", "Answer.preference", ("A", "B", "tie"),
               "WorkerId", HITId="3X", AssignmentStatus="Approved", WorkTimeInSeconds=31)  # fmt: skip
TOLOKA = called("INPUT:prompt", "INPUT:answer_a", "INPUT:answer_b", "OUTPUT:result", ("a", "b", "equal"),
                "ASSIGNMENT:worker_id", **{"GOLDEN:result": "", "ASSIGNMENT:status": "APPROVED"})  # fmt: skip


@each
def rejected_response(i, item):
    """As ms-swift and others extend single answers."""
    return {"query": item.prompt, "response": item.chosen, "rejected_response": item.rejected}


SPACES = called(" Prompt", "Response A ", " Response B ", "Winner ", ("A", "B", "tie"), " annotator ")
CASES = (
    Case("names_with_spaces", SPACES, stores.table(), options=TIES, facts=RATED),
    Case("response_and_rejected_response", rejected_response),
    Case("best_and_worst_texts", long_texts("Best", "Worst"), stores.table(), loose=True),
    Case("winner_and_loser_texts", long_texts("winner", "loser"), loose=True),
    Case("judged_at_length", judged_at_length, options=TIES),
    Case("mturk", MTURK, stores.table(), options=TIES, facts=RATED),
    Case("toloka", TOLOKA, stores.table("pairs.tsv", "\t"), options=TIES, facts=RATED),
    Case("google_forms", called("prompt", "Response A", "Response B", "Preference", ("Response A", "Response B", "Tie"),
         "Email Address", Timestamp="1/2/2025 10:00:00"), stores.table(), options=TIES, facts=RATED),
    Case("triplets", triplets, stores.parquet()),
    Case("model_a_response", called("Prompt", "Model A Response", "Model B Response", "Winner",
         ("Model A", "Model B", "Tie")), stores.table(), options=TIES),
    Case("assistant_1_answer", called("question", "assistant_1_answer", "assistant_2_answer", "verdict",
         ("Assistant 1", "Assistant 2", "tie")), options=TIES),
    Case("chosen_counts_from_0", called("prompt", "response_0", "response_1", "chosen", (0, 1, None))),
    Case("chosen_counts_from_1", called("prompt", "response_1", "response_2", "chosen", (1, 2, None)),
         stores.parquet()),
    Case("chosen_of_unknown_count", called("prompt", "response_1", "response_2", "chosen", (0, 1, None)),
         refused="--first-is 0", flags={"--label": "chosen", "--first-is": "0"}),
    Case("chosen_code", chosen_code, loose=True),
)  # fmt: skip


def test_a_column_without_a_prefix_comes_before_one_with_it():
    rows = {"Input.response_a": ["x", "y"], "Input.response_b": ["p", "q"], "Answer.label": ["fine", "poor"],
            "label": ["a", "b"]}  # fmt: skip
    assert load_pairs(rows, featuriser="format").swapped.tolist() == [False, True]


@pytest.mark.parametrize(
    "sides",
    [("Input.left", "Input.right"), ("INPUT:a", "INPUT:b"), ("Input.A", "Input.B"), ("input.1", "input.2")],
)
def test_the_sides_of_a_task_may_have_no_other_names(sides):
    rows = [
        {
            sides[0]: f"x {i}",
            sides[1]: f"y {i}",
            "Answer.choice": sides[i % 2][6:],
        }
        for i in range(4)
    ]
    found = load_pairs(rows, featuriser="format")
    assert found.texts.chosen == ["x 0", "y 1", "x 2", "y 3"]


@pytest.mark.parametrize("name", ["conversation", "Dialogue"])
def test_the_dialogue_before_two_answers_is_their_prompt(name):
    rows = [
        {name: [{"role": "user", "content": f"p {i}"}], "answer_a": f"x {i}", "answer_b": f"y {i}", "winner": "a"}
        for i in range(4)
    ]  # fmt: skip
    assert load_pairs(rows, featuriser="format").texts.prompt == ["p 0", "p 1", "p 2", "p 3"]


def long(**more):
    return [{"chosen_code": f"x {i} " * 50, "rejected_code": f"y {i} " * 50} | more for i in range(4)]


def test_texts_beside_numbers_are_no_sides():
    assert load_pairs(long(chosen_price=1, rejected_price=2)).names == ("price",)


def test_texts_beside_scores_are_no_sides():
    assert load_pairs(long(score_chosen=3, score_rejected=2)).names == ("score",)


def test_of_several_texts_none_is_guessed():
    with pytest.raises(ValueError, match="chosen_code"):
        load_pairs(long(chosen_why="w" * 70, rejected_why="w"))


def test_short_words_are_no_texts():
    rows = [{"chosen_brand": "xy"[i % 2], "rejected_brand": "yx"[i % 2]} for i in range(8)]
    with pytest.raises(ValueError, match="--words"):
        load_pairs(rows)


def test_left_and_right_may_be_the_sides_of_a_chosen_text():
    rows = [{"left": f"x {i}", "right": f"y {i}", "chosen": f"{'xy'[i % 2]} {i}"} for i in range(4)]
    assert load_pairs(rows, featuriser="format").swapped.tolist() == [False, True] * 2


@pytest.mark.parametrize("first", ["assistant_a", "response_a"])
def test_answers_that_a_letter_ends_come_before_those_of_a_letter_inside(first):
    names = (first, first[:-1] + "b", "assistant_a_response", "assistant_b_response")
    rows = [{name: f"{name} {i}" for name in names} | {"winner": "ab"[i % 2]} for i in range(4)]
    assert load_pairs(rows, featuriser="format").texts.chosen[:2] == [f"{names[0]} 0", f"{names[1]} 1"]


@pytest.mark.parametrize(
    ("sides", "sentence"),
    [
        (("winner", "loser"), "names of models in winner and loser"),
        (("best", "worst"), "has no column chosen_<name>"),
        (("good", "bad"), "has no column chosen_<name>"),
    ],
)
def test_names_of_winners_and_losers_are_no_answers(sides, sentence):
    rows = [dict(zip(sides, (f"model {i % 3}", f"model {(i + 1) % 3}"), strict=True)) for i in range(9)]
    with pytest.raises(ValueError, match=sentence):
        load_pairs(rows)


def test_several_verdicts_are_none():
    rows = [
        {"answer_a": f"x {i}", "answer_b": f"y {i}", "judgment": f"It is [[{'AB'[i % 2]}]]."}
        for i in range(6)
    ]
    rows[3]["judgment"] = "[[A]] or [[B]]?"
    with pytest.raises(ValueError, match="row 4, column judgment holds the unknown label"):
        load_pairs(rows, featuriser="format")


@pytest.mark.parametrize(
    "inner", [[{"chosen": "x", "rejected": "y"}], {"response_a": "x", "response_b": "y"}]
)
def test_sides_inside_objects_are_named(inner):
    with pytest.raises(ValueError, match="the sides inside the objects of column pairs"):
        load_pairs([{"prompt": "p", "pairs": inner}])


@pytest.mark.parametrize("chosen", ["accepted_output", "approved_output", "selected_output"])
def test_an_answer_beside_a_rejected_one_may_not_be_what_was_chosen(chosen):
    rows = [
        {"prompt": f"p{i}", chosen: f"x {i}", "rejected_output": f"y {i}", "output": f"z {i}"}
        for i in range(6)
    ]
    with pytest.raises(ValueError, match="lacks the column chosen_output"):
        load_pairs(rows, featuriser="format")


def test_open_sides_with_a_label_come_before_an_answer_beside_a_rejected_one():
    more = {"response": "z", "rejected_response": "w"}
    rows = [{"response_a": f"x {i}", "response_b": f"y {i}", "winner": "ab"[i % 2]} | more for i in range(6)]
    assert load_pairs(rows, featuriser="format").texts.chosen[:2] == ["x 0", "y 1"]
    turns = [{"role": "user", "content": "Is it?"}, {"role": "assistant", "content": "Yes."}]
    found = load_pairs([{"messages": turns} | more] * 2, featuriser="format")
    assert found.texts.chosen == ["Yes."] * 2


def test_chosen_texts_come_before_good_and_bad_ones():
    rows = [
        {"chosen_code": "x" * 80 + str(i), "rejected_code": "y" * 70, "good": "g" * 80, "bad": "b" * 80}
        for i in range(6)
    ]
    assert load_pairs(rows, featuriser="format").texts.rejected == ["y" * 70] * 6


def test_a_side_with_spaces_around_its_name_comes_after_one_without():
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}", " response_a ": "z", "winner": "ab"[i % 2]}
        for i in range(6)
    ]
    assert load_pairs(rows, featuriser="format").texts.chosen[:2] == ["x 0", "y 1"]


def test_a_list_of_rejected_answers_is_no_answer():
    rows = [{"query": f"p{i}", "response": f"x {i}", "rejected_response": ["y", f"z {i}"]} for i in range(6)]
    with pytest.raises(ValueError, match="lacks the column chosen_response"):
        load_pairs(rows, featuriser="format")


@pytest.mark.parametrize("stem", ["response_", "answer of "])
def test_sides_that_name_the_columns_of_answers_are_no_answers(stem):
    rows = [
        {"prompt": f"p {i}", f"{stem}model1": f"x {i}", f"{stem}model2": f"y {i}"}
        | {"A": f"model{1 + i % 2}", "B": f"model{2 - i % 2}", "winner": "AB"[i % 3 > 0]}
        for i in range(6)
    ]
    with pytest.raises(
        ValueError, match=rf"A and B say which of {stem}model1 and {stem}model2 stood there in each row"
    ):
        load_pairs(rows, featuriser="format")


def test_short_answers_that_end_no_name_of_a_column_stay_answers():
    rows = [
        {"statement yes": f"p {i}", "A": ("yes", "no")[i % 2], "B": ("no", "yes")[i % 2], "winner": "A"}
        for i in range(6)
    ]
    assert load_pairs(rows, featuriser="format").texts.chosen == ["yes", "no"] * 3


@pytest.mark.parametrize("stem", ["reason_", "why "])
def test_short_answers_may_have_a_column_of_reasons_each(stem):
    rows = [
        {"question": f"q {i}", "A": ("yes", "no")[i % 2], "B": ("no", "yes")[i % 2], "winner": "A"}
        | {f"{stem}yes": "it is so", f"{stem}no": "it is not"}
        for i in range(6)
    ]
    assert load_pairs(rows, featuriser="format").texts.chosen == ["yes", "no"] * 3


def test_what_databases_write_for_null_is_no_text(tmp_path):
    (tmp_path / "a.csv").write_text("prompt,chosen,rejected\nq,x,y\n\\N,u,v\nr,z,\\N\n")
    with pytest.raises(ValueError, match="row 3, column rejected is missing"):
        load_pairs(tmp_path / "a.csv", featuriser="format")
    assert load_pairs(tmp_path / "a.csv", featuriser="format", skip_bad=1).texts.prompt == ["q", ""]


@pytest.mark.parametrize("as_text", [False, True])
def test_a_list_of_one_label_is_that_label(as_text):
    labels = [["A"], ["B"], ["tie"]]
    rows = [
        {
            "response_a": f"x {i}",
            "response_b": f"y {i}",
            "label": str(labels[i % 3]) if as_text else labels[i % 3],
        }
        for i in range(6)
    ]
    found = load_pairs(rows, featuriser="format")
    assert (found.swapped.tolist(), found.strength.tolist()) == (
        [False, True, False] * 2,
        [1.0, 1.0, 0.0] * 2,
    )
    rows[3]["label"] = ["A", "B"]
    with pytest.raises(ValueError, match="row 4, column label holds the unknown label"):
        load_pairs(rows, featuriser="format")


@pytest.mark.parametrize("whole", ["chosen", "rejected"])
def test_a_dialogue_beside_an_answer_has_the_prompt_in_it(whole):
    rows = [{"prompt": f"q {i}", "chosen": f"x {i}", "rejected": f"y {i}"} for i in range(3)]
    for row in rows:
        said = (("user", row["prompt"]), ("assistant", row[whole]))
        row[whole] = [{"role": role, "content": text} for role, text in said]
    texts = load_pairs(rows, featuriser="format").texts
    assert (texts.prompt, texts.chosen, texts.rejected) == tuple(
        [f"{a} {i}" for i in range(3)] for a in "qxy"
    )


@pytest.mark.parametrize("name", ["X", "text_x", "Text X"])
def test_what_an_abx_test_asks_is_no_preference(name):
    rows = [
        {"text_a": f"x {i}", "text_b": f"y {i}", name: f"{'xy'[i % 2]} {i}", "choice": "AB"[i % 3 > 0]}
        for i in range(12)
    ]
    with pytest.raises(
        ValueError, match=rf"column {name} repeats text_a or text_b in every row, as an ABX test"
    ):
        load_pairs(rows, featuriser="format")
    assert load_pairs(rows, columns=Columns(label="choice"), featuriser="format").n_pairs == 12
    rows[3][name] = "another"
    assert load_pairs(rows, featuriser="format").n_pairs == 12
