"""All votes on a pair in one column: a list, an object by rater, or a list of objects.

`test_wild.py` and its neighbours read, turn and export these files.
"""

import pytest
from wild import stores
from wild.arenas import word
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import Columns, load_pairs

MANY = {"ties": True, "votes": 3}
WITH_RATER = ("prompt", "row", "rater")


def _said(value):
    return word(value, "A", "B", "tie")


@each
def listed(i, item):
    return {
        "prompt": item.prompt,
        "response_a": item.a,
        "response_b": item.b,
        "votes": [_said(v) for _, v in item.votes],
    }


@each
def by_rater(i, item):
    votes = {who: _said(v) for who, v in item.votes}
    return listed([item])[0] | {"votes": votes}


@each
def objects(i, item):
    votes = [{"rater": who, "label": _said(v)} for who, v in item.votes]
    return listed([item])[0] | {"votes": votes}


@each
def beside_names(i, item):
    names = {"annotator_ids": [who for who, _ in item.votes]}
    return names | listed([item])[0]


@each
def in_one_text(i, item):
    return listed([item])[0] | {"votes": "; ".join(_said(v) for _, v in item.votes)}


@each
def named_in_one_text(i, item):
    return listed([item])[0] | {"votes": "; ".join(f"{who}: {_said(v)}" for who, v in item.votes)}


@each
def within_objects(i, item):
    votes = [
        {"annotator": who, "annotation": {"preference": _said(v), "seconds": 7}} for who, v in item.votes
    ]
    return listed([item])[0] | {"votes": votes}


CASES = (
    Case("votes_named_in_one_text", named_in_one_text, stores.table(), options=MANY, facts=WITH_RATER),
    Case("votes_within_objects", within_objects, options=MANY, facts=WITH_RATER),
    Case("votes_in_one_text", in_one_text, stores.table(), options=MANY),
    Case(
        "votes_beside_names", beside_names, stores.parquet(), options=MANY, facts=("prompt", "row", "rater")
    ),
    Case("votes_listed", listed, options=MANY),
    Case("votes_by_rater", by_rater, options=MANY, facts=("prompt", "row", "rater")),
    Case("votes_as_objects", objects, stores.parquet(), options=MANY, facts=("prompt", "row", "rater")),
)


@pytest.mark.parametrize("votes", [{"A": 3, "B": 1}, {"response_a": 2, "response_b": 2, "tie": 1}])
def test_numbers_of_votes_are_no_labels(votes):
    rows = [{"response_a": f"x {i}", "response_b": f"y {i}", "votes": votes} for i in range(4)]
    with pytest.raises(ValueError, match="column votes counts the votes of each side: write who won"):
        load_pairs(rows, featuriser="format")


@pytest.mark.parametrize("raters", ["AB", "12"])
def test_raters_may_be_called_as_sides_are(raters):
    rows = [
        {"response_1": f"x {i}", "response_2": f"y {i}", "votes": dict(zip(raters, (1, 2), strict=True))}
        for i in range(4)
    ]
    pairs = load_pairs(rows, featuriser="format")
    assert set(pairs.raters) == set(raters)
    assert pairs.swapped.tolist() == [False, True] * 4


@pytest.mark.parametrize(
    "votes",
    [
        {"1": 3, "2": 1},
        {"1": 1, "2": 0},
        {"response_1": 1, "response_2": 2},
        {"1": 1, "2": 1, "tie": 2},
    ],
)
def test_numbers_of_votes_may_look_like_sides(votes):
    rows = [{"response_1": f"x {i}", "response_2": f"y {i}", "votes": votes} for i in range(4)]
    with pytest.raises(ValueError, match="counts the votes of each side"):
        load_pairs(rows, featuriser="format")


@pytest.mark.parametrize("who", ["created_by", "Annotator ID", "worker_id"])
@pytest.mark.parametrize("listed", [True, False])
def test_the_rater_of_an_object_is_found(who, listed):
    votes = [{who: f"w{i % 3}", "Preference": "ab"[i % 2]} for i in range(6)]
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}", "annotations": [vote] if listed else vote}
        for i, vote in enumerate(votes)
    ]
    found = load_pairs(rows, featuriser="format")
    assert found.labels.tolist() == [1, -1] * 3
    assert found.raters.tolist() == ["w0", "w1", "w2"] * 2


@pytest.mark.parametrize(
    "votes", [{1: "a", 2: "b"}, [{"rater": 1, "vote": "a", 5: ""}, {"rater": 2, "vote": "b"}]]
)
def test_keys_in_memory_may_be_numbers(votes):
    rows = [{"response_a": f"x {i}", "response_b": f"y {i}", "votes": votes} for i in range(4)]
    assert set(load_pairs(rows, featuriser="format").raters) == {"1", "2"}


@pytest.mark.parametrize("names", ["12", "01"])
@pytest.mark.parametrize("agree", [False, True])
def test_two_raters_who_never_agree_are_numbers_of_votes(names, agree):
    a, b = map(int, names)
    rows = [
        {f"response_{a}": f"x {i}", f"response_{b}": f"y {i}", "votes": [a, b] if i % 3 else [b, a]}
        for i in range(12)
    ]
    rows[5]["votes"] = [a, a] if agree else rows[5]["votes"]
    if agree:
        assert set(load_pairs(rows, featuriser="format").raters) == {"annotator 1", "annotator 2"}
    else:
        with pytest.raises(ValueError, match="column votes counts the votes of each side: write who won"):
            load_pairs(rows, featuriser="format")


def test_two_raters_with_names_may_never_agree():
    rows = [
        {"response_1": f"x {i}", "response_2": f"y {i}", "votes": {"ann": 1 + i % 2, "ben": 2 - i % 2}}
        for i in range(12)
    ]
    assert set(load_pairs(rows, featuriser="format").raters) == {"ann", "ben"}


def beside(votes, names, column="annotators"):
    return [
        {"response_a": f"x {i}", "response_b": f"y {i}", column: who, "labels": said}
        for i, (said, who) in enumerate(zip(votes, names, strict=True))
    ]


@pytest.mark.parametrize(("column", "rater"), [("annotators", None), ("worker_id", None), ("crowd", "crowd")])
def test_raters_may_be_listed_beside_votes(column, rater):
    """Those who saw a pair are others than those of the next one."""
    rows = beside([["A", "B"], ["B"], None], [["ann", "ben"], ["cem"], ["dan"]], column)
    found = load_pairs(rows, columns=Columns(rater=rater), featuriser="format", skip_bad=1)
    assert found.raters.tolist() == ["ann", "ben", "cem"]
    assert found.labels.tolist() == [1, -1, -1]
    assert column not in found.unused


def test_a_number_of_raters_names_none():
    rows = beside([["A", "B"], ["B", "B"]], [2, 2], "raters")
    assert load_pairs(rows, featuriser="format").raters.tolist() == ["annotator 1", "annotator 2"] * 2


def test_as_many_raters_as_votes_are_wanted():
    rows = beside([["A", "B"], ["B"]], [["ann", "ben"], ["cem", "dan"]])
    with pytest.raises(
        ValueError, match="row 2 has 1 vote in column labels and 2 names of raters in column annotators"
    ):
        load_pairs(rows, featuriser="format")


def in_a_text(separator, of, column="votes"):
    return [
        {"prompt": f"p {i}", "response_1": f"x {i}", "response_2": f"y {i}", column: separator.join(said)}
        for i, said in enumerate(of)
    ]


@pytest.mark.parametrize("separator", [";", "; ", "|", ",", ", ", "/", " | "])
@pytest.mark.parametrize("column", ["votes", "labels", "preference", "winner"])
@pytest.mark.parametrize("names", ["12", "AB", ("response_1", "response_2")])
def test_votes_may_stand_in_one_text(separator, column, names):
    a, b = names
    found = load_pairs(in_a_text(separator, [(a, b, a), (b, "tie"), (b,)], column), featuriser="format")
    assert (found.labels * found.strength).tolist() == [1, -1, 1, -1, 0, -1]
    assert found.raters.tolist() == [f"annotator {i}" for i in (1, 2, 3, 1, 2, 1)]


def test_their_raters_may_stand_in_another():
    rows = in_a_text(";", ["ABA", "BB"])
    for row, who in zip(rows, ("ann; ben; cem", "ben; dan"), strict=True):
        row["annotators"] = who
    assert load_pairs(rows, featuriser="format").raters.tolist() == ["ann", "ben", "cem", "ben", "dan"]


@pytest.mark.parametrize(
    "said",
    [["A;B", "B;A"] * 6, ["1;2", "2;1"] * 6, ["3;0", "1;2"] * 6, ["A", "B", "A / B"] * 4, ["A, fluent", "B"] * 6],
)  # fmt: skip
def test_an_order_counts_and_reasons_are_no_votes(said):
    rows = in_a_text("", said)
    with pytest.raises(ValueError, match=r"no label|names no side|name no side|unknown label"):
        load_pairs(rows, featuriser="format")


@pytest.mark.parametrize("tie", ["both equal", "A = B", "tie"])
def test_a_tie_of_several_words_is_one_vote(tie):
    found = load_pairs(in_a_text("", ["A", "B", tie], "winner"), featuriser="format")
    assert found.strength.tolist() == [1, 1, 0]
    assert found.raters is None


@pytest.mark.parametrize("column", ["preferences", "annotations"])
def test_an_annotation_may_stand_within(column):
    rows = in_a_text("", ["A", "B"])
    for row in rows:
        row[column] = [{"annotator": "ann", "annotation": row.pop("votes")}]
    found = load_pairs(rows, featuriser="format")
    assert (found.labels.tolist(), found.raters.tolist()) == ([1, -1], ["ann", "ann"])


@pytest.mark.parametrize("beside", ["A;B;tie", "A;B;A", ["fluent", "short"], [{"annotation": "fluent"}]])
def test_options_topics_and_votes_in_a_text_beside_a_label_are_left_alone(beside):
    rows = [row | {"choices": beside} for row in in_a_text("", ["A", "B"] * 3, "preference")]
    found = load_pairs(rows, featuriser="format")
    assert found.labels.tolist() == [1, -1] * 3
    assert "choices" in found.unused


def within(annotations, beside=None):
    """Rows with a cell of annotations each, and the same cells of other columns beside it."""
    return [
        {"response_a": f"x {i}", "response_b": f"y {i}", "annotations": cell} | (beside or {})
        for i, cell in enumerate(annotations)
    ]


@pytest.mark.parametrize(
    "asked",
    [("overall_preference",), ("helpfulness", "overall"), ("helpfulness",), ("more_helpful",), ("Q1",)],
)
def test_a_question_is_no_rater(asked):
    rows = within([dict.fromkeys(asked, "B") | {asked[-1]: said} for said in "ABA"])
    found = load_pairs(rows, featuriser="format")
    assert found.labels.tolist() == [1, -1, 1]
    assert found.raters is None


def test_answers_to_several_questions_are_asked_about():
    rows = within([{"helpfulness": "A", "safety": "B"}, {"helpfulness": "B"}])
    with pytest.raises(
        ValueError, match=r"annotations holds answers to 2 questions \(helpfulness, safety\): write"
    ):
        load_pairs(rows, featuriser="format")


@pytest.mark.parametrize("grades", [{"helpfulness": 4, "safety": 2}, {"helpfulness": "A", "safety": "B"}])
def test_answers_to_questions_beside_a_label_are_left_alone(grades):
    found = load_pairs(within([grades] * 3, {"winner": "B"}), featuriser="format")
    assert (found.labels.tolist(), found.raters) == ([-1] * 3, None)
    assert "annotations" in found.unused


@pytest.mark.parametrize(
    "options", [["A", "B"], ["A", "B", "tie"], ["A is better", "about the same", "B is better"]]
)
def test_a_list_of_both_sides_in_all_rows_holds_options(options):
    rows = [row | {"choices": options} for row in in_a_text("", ["A", "B", "A"], "winner")]
    found = load_pairs(rows, featuriser="format")
    assert found.labels.tolist() == [1, -1, 1]
    assert "choices" in found.unused


def test_options_alone_are_no_votes():
    rows = in_a_text("", ["A"] * 12, "topic")
    with pytest.raises(ValueError, match="but no label"):
        load_pairs([row | {"choices": ["A", "B"]} for row in rows], featuriser="format")


def test_votes_beside_their_majority_stay_votes():
    rows = [row | {"votes": ["A", "B", "A"]} for row in in_a_text("", ["A"] * 3, "winner")]
    assert len(load_pairs(rows, featuriser="format").labels) == 9


@pytest.mark.parametrize("separator", [";", ", ", " | ", "/"])
@pytest.mark.parametrize("mark", [":", ": ", "=", " = "])
@pytest.mark.parametrize("column", ["votes", "winner", "annotations"])
def test_votes_in_one_text_may_name_their_raters(separator, mark, column):
    said = [[f"ann{mark}1", f"ben{mark}2"], [f"cem{mark}tie"], [f"ben{mark}response_2", f"ann{mark}2"]]
    found = load_pairs(in_a_text(separator, said, column), featuriser="format")
    assert (found.labels * found.strength).tolist() == [1, -1, 0, -1, -1]
    assert found.raters.tolist() == ["ann", "ben", "cem", "ben", "ann"]


@pytest.mark.parametrize(
    "said",
    [
        ["A: 1; B: 2"],
        ["helpfulness: A; safety: B"],
        ["ann: A; ann: B"],
        ["ann: fluent; ben: B"],
        ["style: A; tone: A"],
    ],
)
def test_counts_questions_and_reasons_name_no_raters(said):
    with pytest.raises(
        ValueError, match=r"no label|names? no side|unknown label|answers to 2 questions|counts"
    ):
        load_pairs(in_a_text("", said * 6), featuriser="format")


@pytest.mark.parametrize("inner", [{"label": {"value": "B"}}, '{"preference": "B"}'])
def test_an_answer_may_stand_within_several_objects(inner):
    rows = within([[{"annotator": "ann", "annotation": inner}]] * 3)
    found = load_pairs(rows, featuriser="format")
    assert (found.labels.tolist(), found.raters.tolist()) == ([-1] * 3, ["ann"] * 3)


def test_answers_within_objects_to_several_questions_are_asked_about():
    rows = within([[{"annotator": "ann", "annotation": {"helpfulness": "A", "safety": "B"}}]] * 3)
    with pytest.raises(ValueError, match="no label"):
        load_pairs(rows, featuriser="format")


@pytest.mark.parametrize("votes", [[{"overall_preference": "A"}], [{"preference": "A"}], ["A"]])
@pytest.mark.parametrize("who", [None, "ann"])
def test_the_only_vote_of_each_row_has_no_rater_by_its_place(votes, who):
    """One rater of all pairs would be judged by them."""
    made = [
        {"prompt": f"p {i}", "response_a": f"x {i}", "response_b": f"y {i}", "annotations": votes}
        | ({} if who is None else {"annotator": who})
        for i in range(12)
    ]
    found = load_pairs(made, featuriser="format")
    assert found.raters is None if who is None else set(found.raters) == {"ann"}
    assert not found.swapped.any()


@pytest.mark.parametrize("said", [("A", "B"), ("first", "second")])
def test_votes_beside_which_it_says_that_the_sides_were_swapped_are_asked_about(said):
    made = [
        {"prompt": f"p {i}", "response_a": f"x {i}", "response_b": f"y {i}"}
        | {
            "annotations": [
                {"annotator": who, "preference": said[k], "swapped": bool(k)} for k, who in enumerate("uv")
            ]
        }
        for i in range(12)
    ]
    with pytest.raises(
        ValueError, match=r"swapped says in which rows the sides changed places, .* --first-is"
    ):
        load_pairs(made, featuriser="format")
    for row in made:
        for vote in row["annotations"]:
            vote["swapped"] = False
    assert load_pairs(made, featuriser="format").n_pairs == 24
