"""Columns that are called as labels are, beside sides whose names say who won."""

import json

import pytest

from robust_rlhf_jax.io import Columns, load_pairs


def read(tmp_path, column, cells, **columns):
    path = tmp_path / "pairs.jsonl"
    rows = [
        {"prompt": f"p{i}", "chosen": f"x {i}", "rejected": f"y {i}", column: c} for i, c in enumerate(cells)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load_pairs(path, featuriser="format", columns=Columns(**columns))


@pytest.mark.parametrize(
    "cells",
    [
        [None, "rejected"],
        ["", "rejected", ""],
        ["rejected", "rejected"],
        ["b", "b"],
        ["chosen", "tie"],
        ["a", "tie", None],
        [*["ok"] * 250, *["rejected"] * 50],
        [*["ok"] * 250, *["response b is better"] * 2],
        ["chosen", "rejected"],
    ],
)
def test_a_label_that_speaks_against_the_chosen_side_anywhere_is_asked_about(tmp_path, cells):
    with pytest.raises(ValueError, match=r"column winner could be the label .* give --label winner"):
        read(tmp_path, "winner", cells)
    assert read(tmp_path, "winner", cells, label="none").n_pairs == len(cells)


@pytest.mark.parametrize(
    "cells",
    [
        ["chosen", "chosen"],
        ["chosen", None],
        [1, 1],
        ["ok", "fine"],
        ["tie", "tie"],
        ["maths", "law", "b", "art", "sport"],
        ["none", "one", "some", "many"],
        ["x"] * 99 + ["second"],
    ],
)
def test_one_that_says_nothing_against_it_is_ignored(tmp_path, cells):
    assert read(tmp_path, "winner", cells).strength.tolist() == [1.0] * len(cells)


@pytest.mark.parametrize("name", ["tie", "is_tie"])
def test_a_column_of_ties_is_read(tmp_path, name):
    assert read(tmp_path, name, [True, False, False]).strength.tolist() == [0.0, 1.0, 1.0]
    assert read(tmp_path, name, ["silk", "wool", "red"]).strength.tolist() == [1.0, 1.0, 1.0]


def written(tmp_path, rows):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("turned", [1, -1])
@pytest.mark.parametrize("odd", ["[2, 3]", '{"a": 1}'])
def test_an_answer_that_looks_like_numbers_is_a_text(tmp_path, odd, turned):
    rows = [{"prompt": f"p{i}", "chosen": odd if i == 0 else f"x {i}", "rejected": "[4]" if i == 0 else f"y {i}"}
            for i in range(4)]  # fmt: skip
    found = load_pairs(written(tmp_path, rows[::turned]), featuriser="format")
    assert odd in found.texts.chosen


def test_answers_that_are_all_objects_in_json_are_texts_beside_a_prompt(tmp_path):
    rows = [
        {
            "prompt": f"Write number {i} in JSON",
            "chosen": f'{{"a": {i}}}',
            "rejected": f'{{"a": {i}, "b": 2}}',
        }
        for i in range(4)
    ]
    assert load_pairs(written(tmp_path, rows), featuriser="format").texts.chosen[1] == '{"a": 1}'


def test_a_number_among_answers_is_told_by_its_row(tmp_path):
    rows = [
        {"response_a": 5 if i == 0 else "p q", "response_b": "x y", "winner": "AB"[i % 2]} for i in range(4)
    ]
    with pytest.raises(ValueError, match="row 1, column response_a holds 5, neither a text nor messages"):
        load_pairs(written(tmp_path, rows), featuriser="format")


def test_words_that_count_from_1_beside_columns_that_count_from_0_are_asked_about(tmp_path):
    rows = [
        {"response_0": f"p {i}", "response_1": f"x {i}", "winner": f"Response {1 + i % 2}"} for i in range(4)
    ]
    path = written(tmp_path, rows)
    with pytest.raises(ValueError, match=r"winner counts the sides from 1, .* --first-is 'response 1'"):
        load_pairs(path, featuriser="format")
    told = Columns(first_is="Response 1")
    assert load_pairs(path, featuriser="format", columns=told).texts.chosen == ["p 0", "x 1", "p 2", "x 3"]


def test_two_embeddings_are_sides(tmp_path):
    rows = [{"emb_1": [i, 1.0], "emb_2": [1.0, i], "choice": 1 + i % 2} for i in range(4)]
    assert load_pairs(written(tmp_path, rows)).chosen.tolist() == [[0, 1], [1, 1], [2, 1], [1, 3]]


def test_pairs_that_cannot_be_used_are_counted_as_pairs(tmp_path):
    rows = [{"prompt": f"p{i}", "chosen": f"x{i}", "rejected": [f"y{i}", 3 if i else "z"]} for i in range(4)]
    with pytest.raises(ValueError, match="of 8 pairs are unusable"):
        load_pairs(written(tmp_path, rows), featuriser="format")


def test_objects_of_numbers_in_a_table_of_texts_are_features_beside_a_prompt(tmp_path):
    rows = "".join(
        f't{i},"{{""len"": {i}, ""depth"": 2.0}}","{{""len"": 3, ""depth"": {i}}}"\n' for i in range(4)
    )
    (tmp_path / "n.csv").write_text("task,chosen,rejected\n" + rows)
    assert load_pairs(tmp_path / "n.csv").names == ("len", "depth")


@pytest.mark.parametrize(("name", "cells"), [("gold", "ABCD"), ("annotation", ["good", "none", "a", "fine"])])
def test_the_key_of_a_test_says_nothing_of_the_sides(tmp_path, name, cells):
    assert read(tmp_path, name, list(cells)).n_pairs == 4


def test_answers_that_are_missing_at_first_are_answers(tmp_path):
    rows = [
        {"response_a": None if i < 25 else f"a {i}", "response_b": f"b {i}", "winner": "ab"[i % 2]}
        for i in range(40)
    ]
    assert load_pairs(written(tmp_path, rows), featuriser="format", skip_bad=30).n_pairs == 15


@pytest.mark.parametrize("tie", ["tie", "is_tie", "winner_tie", "both_equal", "draw", "Tied"])
@pytest.mark.parametrize("label", ["preference", "winner", "choice"])
def test_a_column_of_ties_stands_beside_any_label(tmp_path, label, tie):
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}", label: "A", tie: ["no", "yes"][i % 2]}
        for i in range(4)
    ]
    assert load_pairs(written(tmp_path, rows), featuriser="format").strength.tolist() == [1.0, 0.0] * 2


@pytest.mark.parametrize("ids", [("id_a", "id_b"), ("a_id", "b_id"), ("response_a_id", "response_b_id")])
@pytest.mark.parametrize("made", ["{}", "x-{}"])
@pytest.mark.parametrize("label", ["winner_id", "winner", "chosen_response_id"])
def test_a_winner_may_be_named_by_its_id(tmp_path, ids, made, label):
    rows = [
        {"prompt": f"p{i}", "response_a": f"x {i}", "response_b": f"y {i}", ids[0]: made.format(2 * i),
         ids[1]: made.format(2 * i + 1), label: made.format(2 * i + i % 2)}
        for i in range(8)
    ]  # fmt: skip
    rows[2][label] = "tie"
    assert load_pairs(written(tmp_path, rows), featuriser="format").labels.tolist() == [
        1,
        -1,
        0,
        *[-1, 1] * 2,
        -1,
    ]
    numbers = [
        {n: int(c) if n in (*ids, label) and c.isdigit() else c for n, c in row.items()} for row in rows
    ]
    assert load_pairs(written(tmp_path, numbers), featuriser="format").labels.tolist()[3:] == [
        -1,
        1,
        -1,
        1,
        -1,
    ]
    rows[3][label] = made.format(99)
    with pytest.raises(ValueError, match=f"row 4, column {label} holds the unknown label"):
        load_pairs(written(tmp_path, rows), featuriser="format")


@pytest.mark.parametrize("tie", ["Both equal", "about the same", "It's a tie", None])
def test_columns_of_words_that_name_sides_are_proposed(tie):
    rows = [
        {"Prompt": f"p{i}", "Response 1": f"x {i}", "Response 2": f"y {i}", "Is it one?": "yes",
         "Which is it?": ("Response 1", "Response 2", tie)[i % 3]}
        for i in range(9)
    ]  # fmt: skip
    with pytest.raises(
        ValueError, match=r"no label known by its name \(the cells of Which is it\? name sides\):"
    ):
        load_pairs(rows, featuriser="format")
    said = Columns(label="Which is it?")
    assert load_pairs(rows, columns=said, featuriser="format", skip_bad=3).labels.tolist()[:2] == [1, -1]


def test_a_word_for_a_side_that_is_the_other_model_is_asked_about():
    rows = [
        {
            "response_a": f"x {i}",
            "response_b": f"y {i}",
            "model_a": "AB"[i % 2],
            "model_b": "BA"[i % 2],
            "winner": "A",
        }
        for i in range(6)
    ]
    rows[3]["winner"] = "B"
    with pytest.raises(
        ValueError, match="column winner holds 'A' in row 2, which names a side and the model of the"
    ):
        load_pairs(rows, featuriser="format")
    told = Columns(label="winner", first_is="A")
    assert load_pairs(rows, columns=told, featuriser="format").labels.tolist() == [1, 1, 1, -1, 1, 1]


@pytest.mark.parametrize("called", ["arm_{}", "condition_{}", "response_{}_source"])
@pytest.mark.parametrize("words", ["AB", "12"])
def test_arms_of_an_experiment_are_asked_about_as_models_are(called, words):
    first, second = (called.format(i) for i in (1, 2))
    rows = [
        {"response_1": f"x {i}", "response_2": f"y {i}", first: words[i % 2], second: words[1 - i % 2]}
        | {"winner": words[i % 3 > 0]}
        for i in range(6)
    ]
    with pytest.raises(ValueError, match="which names a side and the model of the other side"):
        load_pairs(rows, featuriser="format")


def test_a_feature_may_be_called_as_arms_are():
    rows = [
        {"condition_1": 1 + i % 2, "condition_2": 1 + i // 2 % 2, "price_1": i, "price_2": 7}
        for i in range(12)
    ]
    rows = [row | {"choice": 1 + i % 3 % 2} for i, row in enumerate(rows)]
    assert load_pairs(rows).names == ("condition", "price")


@pytest.mark.parametrize("names", [("system_left", "system_right"), ("left_model", "right_model")])
@pytest.mark.parametrize("sides", [("left_response", "right_response"), ("answer left", "answer right")])
def test_it_is_asked_about_where_names_begin_with_the_side(names, sides):
    rows = [
        {sides[0]: f"x {i}", sides[1]: f"y {i}", names[0]: "AB"[i % 2], names[1]: "BA"[i % 2], "winner": "A"}
        for i in range(6)
    ]
    with pytest.raises(ValueError, match="which names a side and the model of the other side"):
        load_pairs(rows, featuriser="format")
    for row in rows:
        row |= {names[0]: "m" + row[names[0]], names[1]: "m" + row[names[1]], "winner": "mA"}
    assert load_pairs(rows, featuriser="format").labels.tolist() == [1, -1] * 3


def of_numbered_ids(ids, label):
    return [
        {
            "response_1": f"x {i}",
            "response_2": f"y {i}",
            "id_1": ids(i),
            "id_2": ids(i + 1),
            "winner": label(i),
        }
        for i in range(12)
    ]


def test_labels_that_are_ids_by_chance_name_sides():
    rows = of_numbered_ids(lambda i: 1 + i % 3, lambda i: 1 + (i % 4 == 0))
    expected = [-1 if i % 4 == 0 else 1 for i in range(12)]
    assert load_pairs(rows, featuriser="format").labels.tolist() == expected
    rows = of_numbered_ids(lambda i: 1 + i % 2, lambda i: 1 + (i % 4 == 0))
    assert load_pairs(rows, featuriser="format").labels.tolist() == expected


def test_a_word_for_a_side_that_is_the_other_id_is_asked_about():
    rows = of_numbered_ids(lambda i: "ba"[i % 2], lambda i: "ab"[i % 2])
    rows = [{n.replace("1", "a").replace("2", "b"): cell for n, cell in row.items()} for row in rows]
    with pytest.raises(
        ValueError, match="holds 'a' in row 1, which names a side and the id of the other side"
    ):
        load_pairs(rows, featuriser="format")


def test_a_number_of_a_side_among_ids_of_winners_is_unknown():
    rows = of_numbered_ids(lambda i: 10 + i, lambda i: 10 + i)
    rows = [{n.replace("winner", "winner_id"): cell for n, cell in row.items()} for row in rows]
    rows[2]["winner_id"] = 1
    with pytest.raises(ValueError, match="row 3, column winner_id holds the unknown label 'id 1'"):
        load_pairs(rows, featuriser="format")


def test_a_text_with_brackets_may_be_repeated_as_the_label():
    rows = [{"response_a": f"x {i} in [[Paris]]", "response_b": f"y {i} in [[Rome]]"} for i in range(6)]
    rows = [row | {"best": row[("response_a", "response_b")[i % 2]]} for i, row in enumerate(rows)]
    assert load_pairs(rows, featuriser="format").labels.tolist() == [1, -1] * 3


def test_two_numbers_with_a_comma_may_be_a_tie():
    rows = [
        {"response_1": f"x {i}", "response_2": f"y {i}", "label": ("1", "2", "1,2")[i % 3]} for i in range(9)
    ]
    told = Columns(tie_is="1,2")
    assert load_pairs(rows, columns=told, featuriser="format").labels.tolist() == [1, -1, 0] * 3


@pytest.mark.parametrize("words", [("good", "bad"), ("positive", "negative")])
def test_kinds_of_texts_beside_sides_called_so_are_no_label(words):
    rows = [
        {
            "prompt": f"p{i}",
            f"{words[0]}_response": f"x {i}",
            f"{words[1]}_response": f"y {i}",
            "label": words[i % 2],
        }
        for i in range(8)
    ]
    assert not load_pairs(rows, featuriser="format").swapped.any()


@pytest.mark.parametrize("name", ["better_answer", "preferred_answer", "winning_response"])
def test_the_better_answer_is_a_label(name):
    rows = [{"answer_a": f"x {i}", "answer_b": f"y {i}", name: "AB"[i % 2]} for i in range(6)]
    assert load_pairs(rows, featuriser="format").labels.tolist() == [1, -1] * 3


def test_the_winners_model_is_known_beside_sides_called_after_models():
    rows = [
        {
            "Model A": f"m{i % 3}",
            "Model A Response": f"x {i}",
            "Model B": f"m{(i + 1) % 3}",
            "Model B Response": f"y {i}",
        }
        for i in range(9)
    ]
    rows = [row | {"Winner": row[("Model A", "Model B")[i % 2]]} for i, row in enumerate(rows)]
    assert load_pairs(rows, featuriser="format").labels.tolist() == [1, -1] * 4 + [1]


@pytest.mark.parametrize("said", ["Overall, B is better.", "I like what it says.", "Same."])
def test_what_a_judge_says_in_sentences_decides_where_no_label_does(said):
    rows = [
        {
            "answer_a": f"x {i}",
            "answer_b": f"y {i}",
            "comparison": f"Both are fine in some way. {said}",
            "winner": "a",
        }
        for i in range(6)
    ]
    assert load_pairs(rows, featuriser="format").labels.tolist() == [1] * 6
    alone = [{name: cell for name, cell in row.items() if name != "winner"} for row in rows]
    if "B" in said:
        assert load_pairs(alone, featuriser="format").labels.tolist() == [-1] * 6
    else:
        with pytest.raises(ValueError, match=r"column comparison holds .* which name no side"):
            load_pairs(alone, featuriser="format")


SCALE = [
    "A is much better",
    "A is slightly better",
    "About the same",
    "Strongly prefer B",
    "B is slightly better",
]


def open_rows(cells, column):
    return [{"response_a": f"x {i}", "response_b": f"y {i}", column: cell} for i, cell in enumerate(cells)]


@pytest.mark.parametrize("column", ["likert", "Preference Rating", "rating"])
def test_a_worded_scale_is_a_label(column):
    found = load_pairs(open_rows(SCALE, column), featuriser="format")
    assert found.labels.tolist() == [1, 1, 0, -1, -1]


@pytest.mark.parametrize(
    ("cells", "column"),
    [(SCALE, "length"), (["A", "B", "A"], "rating"), (["A is better", "C is better"], "likert")],
)
def test_other_words_are_asked_about(cells, column):
    with pytest.raises(ValueError, match="but no label"):
        load_pairs(open_rows(cells, column), featuriser="format")


def test_a_label_comes_before_a_scale():
    rows = [row | {"winner": "B"} for row in open_rows(SCALE, "likert")]
    assert load_pairs(rows, featuriser="format").labels.tolist() == [-1] * 5
