"""Which side a label means: words by the names of the sides, numbers only as somebody says."""

import re

import pytest

from robust_rlhf_jax.io import Columns, load_pairs
from robust_rlhf_jax.io.label_rules import rule_for
from robust_rlhf_jax.io.labels import read_labels, verdict_in, word_rule

AB, ONE_TWO, ZERO_ONE = (
    ("response_a", "response_b"),
    ("response_1", "response_2"),
    ("response_0", "response_1"),
)


@pytest.mark.parametrize(
    ("sides", "first", "second"),
    [
        (AB, "A", "b"), (AB, "model_a", "model_b"), (AB, "Response A", "Assistant B"), (AB, "left", "right"),
        (AB, "[[A]]", "[[B]]"), (AB, "A>B", "B > A"), (AB, "A-is-slightly-better", "B-is-clearly-better"),
        (AB, "response_a", "response_b"), (AB, "A wins", "B won"), (AB, "B<A", "A<<B"), (AB, "model_1", "model_2"),
        (AB, "Strongly prefer A", "Slightly prefer B"), (AB, "1 - A much better", "7 - B much better"),
        (AB, "B is worse", "A loses"), (AB, "I prefer the first", "I strongly prefer response B"),
        (ONE_TWO, "@Response 1 is better than @Response 2", "Response 2 is slightly better than Response 1"),
        (ONE_TWO, "2 is worse", "1 is worse"),
        (ONE_TWO, "1", "2"), (ONE_TWO, "response 1", "response_2"), (ONE_TWO, "first", "second"),
        (ZERO_ONE, "0", "1"), (ZERO_ONE, "response_0", "response_1"), (ZERO_ONE, "a", "b"),
        (AB, "Profile A", "Plan B"), (("left", "right"), "L", "r"), (("price_left", "price_right"), "l", "R"),
        (("left_response", "right_response"), "L", "R"), (("Left answer", "Right answer"), "l", "r"),
        (AB, "Winner: A", "Verdict: B"), (AB, "Answer: A", "Option: b"), (AB, "**A**", '"B"'),
        (AB, "Response A > Response B", "Response A < Response B"), (AB, "A ≻ B", "model B >> model A"),
        (("human_response", "ai_response"), "Human", "AI"), (("Answer of GPT-4", "Answer of Llama"), "gpt-4", "llama"),
        (("left_response", "right_response"), "links", "rechts"), (("left", "right"), "gauche", "droite"),
        (ONE_TWO, "Response 1 beats Response 2", "Response 2 beats Response 1"), (AB, "prefer A over B", "B over A"),
        (("summary_ours", "summary_theirs"), "ours", "summary_theirs"),
    ],
)  # fmt: skip
def test_words_name_the_sides(sides, first, second):
    rule = word_rule(sides)
    assert rule.value(first) > 0 > rule.value(second)


@pytest.mark.parametrize(
    "said",
    [
        "tie",
        "Tie (bothbad)",
        "both_bad",
        "equal",
        "[[C]]",
        "draw",
        "no preference",
        "Neutral",
        "both are bad",
        "=",
        "Unentschieden",
        "égalité",
        "Empate",
        "pareggio",
        "4 - about the same",
        "3. Tie",
        "I have no preference",
        "1=2",
        "1 = 2",
    ],
)
def test_words_for_ties(said):
    assert word_rule(AB).value(said) == 0


@pytest.mark.parametrize(
    ("sides", "said"),
    [
        (AB, "1"),
        (AB, "0"),
        (AB, "perhaps"),
        (AB, "A is better than A"),
        (ZERO_ONE, "2"),
        (ONE_TWO, "0"),
        (ONE_TWO, "[-1]"),
    ],
)
def test_what_names_no_side_is_unknown(sides, said):
    assert word_rule(sides).value(said) is None


@pytest.mark.parametrize("first", ["-1", "[-1]", "(-1)", "- 1"])
def test_the_sign_of_a_number_is_no_dash(first):
    """Of -1 and 1 in brackets both were 1, so that --first-is 1 read every row as won by the first side."""
    for second in ("1", "[1]", "(1)", "+1", "1.0"):
        rule = rule_for([first, second], "preference", ONE_TWO, Columns(first_is="-1"))
        assert rule.value(first) > 0 > rule.value(second)


NUMBERS = [[1, 2], ["1", "2"], [0, 1, 2], [0, 0.5, 1], [0.2, 0.7], [-1, 1], [True, False], [-3, 0, 2], [1, 1]]


@pytest.mark.parametrize("cells", NUMBERS, ids=str)
def test_numbers_are_refused_with_a_flag_that_works(cells):
    with pytest.raises(ValueError, match=r"--scale|--first-is") as refused:
        rule_for(cells, "preference", AB, Columns())
    told = re.search(r"such as --scale (\S+) (\S+?),", str(refused.value))
    first = re.search(r"--first-is (\S+)", str(refused.value))
    if told:
        rule = rule_for(cells, "preference", AB, Columns(scale=(float(told[1]), float(told[2]))))
    else:
        rule = rule_for(cells, "preference", AB, Columns(first_is=first[1]))
    assert all(rule.value(cell) is not None for cell in cells)


def test_a_first_side_beside_two_others_asks_which_is_a_tie():
    with pytest.raises(ValueError, match="--tie-is"):
        rule_for([0, 1, 2], "label", AB, Columns(first_is="1"))
    rule = rule_for([0, 1, 2], "label", AB, Columns(first_is="1", tie_is="0"))
    assert [rule.value(v) for v in (0, 1, 2)] == [0.0, 1.0, -1.0]


@pytest.mark.parametrize(
    ("scale", "values"), [((-3, 3), [3, 0, -3]), ((3, -3), [-3, 0, 3]), ((1, 0), [-1, 0, 1])]
)
def test_a_scale_says_which_end_is_the_first_side(scale, values):
    ends = [scale[0], sum(scale) / 2, scale[1]]
    rule = rule_for(ends, "label", AB, Columns(scale=scale))
    assert [rule.value(v) for v in ends] == [abs(values[0]), 0, -abs(values[0])]
    assert rule.value(99) is None


def test_a_scale_that_no_label_lies_on_is_refused():
    with pytest.raises(ValueError, match="not between 0 and 1"):
        rule_for([5, 7], "label", AB, Columns(scale=(0, 1)))
    with pytest.raises(ValueError, match="has no two ends"):
        rule_for([5, 7], "label", AB, Columns(scale=(1, 1)))


@pytest.mark.parametrize("column", ["loser", "worse", "worst_response", "Rejected", "is_rejected"])
def test_a_column_of_losers_is_asked_about_and_read_as_told(column):
    with pytest.raises(ValueError, match=r"which side lost.*--first-is"):
        rule_for(["a", "b"], column, AB, Columns())
    rule = rule_for(["a", "b"], column, AB, Columns(first_is="b"))
    assert rule.value("b") > 0 > rule.value("a")


@pytest.mark.parametrize("tie", ["0", "3"])
def test_a_third_number_beside_those_of_the_sides_may_be_a_tie(tie):
    cells = ["1", "2", tie]
    with pytest.raises(ValueError, match=f"--tie-is {tie}"):
        rule_for(cells, "winner", ONE_TWO, Columns())
    rule = rule_for(cells, "winner", ONE_TWO, Columns(tie_is=tie))
    assert [rule.value(cell) for cell in cells] == [1, -1, 0]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"1", "2", "tie"}, "holds 1 and 2 beside ties: say which one means the first side, by --first-is 1"),
        ({"1", "Tie"}, "holds 1 beside ties: give --first-is 1"),
        ({"0", "1", "2", "both bad"}, "such as --scale 0 2"),
    ],
)
def test_ties_in_words_are_no_numbers_of_a_scale(words, says):
    with pytest.raises(ValueError, match=says):
        rule_for(list(words), "vote", AB, Columns())


@pytest.mark.parametrize(
    "name",
    ["Which response is more harmful?", "less_preferred", "more toxic", "worse", "weaker_answer", "inferior",
     "not_chosen", "unchosen", "disliked", "eliminated", "schlechtere Antwort", "Verlierer", "perdant", "peor",
     "peggiore"],
)  # fmt: skip
def test_a_question_about_the_other_side_is_asked_about(name):
    with pytest.raises(ValueError, match="says by its name which side lost"):
        rule_for(["A", "B"], name, AB, Columns())


@pytest.mark.parametrize("name", ["less_harmful", "more helpful", "Which is less toxic?"])
def test_a_question_about_the_better_side_is_read(name):
    assert rule_for(["A", "B"], name, AB, Columns()).value("A") == 1


def test_a_word_that_is_a_tie_may_stand_beside_a_scale():
    rule = rule_for([1, 0.5, 0, "skip"], "label", AB, Columns(scale=(1, 0), tie_is="skip"))
    assert [rule.value(v) for v in (1, 0.5, 0, "skip")] == [1, 0, -1, 0]


def test_a_scale_beside_a_first_side_is_refused():
    with pytest.raises(ValueError, match="--scale and --first-is both say"):
        rule_for([1, 0], "label", AB, Columns(scale=(1, 0), first_is="1"))


def test_judges_say_ties_as_they_say_winners():
    value = word_rule(("response_a", "response_b")).value
    assert [value(said) for said in ("Winner: A", "Winner: tie", "Verdict: tie")] == [1.0, 0.0, 0.0]


def test_what_the_caller_calls_a_tie_is_one_though_it_is_part_of_the_name_of_a_side():
    value = word_rule(("human_response", "nobody_response"), tie_is="nobody").value
    assert [value(said) for said in ("human", "nobody", "nobody_response")] == [1.0, 0.0, -1.0]


def test_stars_are_named_as_they_are_and_name_no_side():
    with pytest.raises(ValueError, match=r"holds '\*\*', '\*\*\*', which name no side"):
        rule_for(["**", "***"], "winner", AB, Columns())


@pytest.mark.parametrize(
    ("said", "way"),
    [
        ("Both answer the question.\n\nVerdict: **B**", -1),
        ("A is brief. B is complete and kind. Verdict: **A**", 1),
        ("The first one is much longer than it needs to be. B is better.", -1),
        ("Assistant A explains more. I compared both of them. Winner: tie", 0),
        ("The answers come in this order.\nBest: B\nWorst: A", None),
        ("A is better. After a second look, I am sure that I was wrong. B is better.", None),
        ("1. B 2. A", None),
        ("Both are right, and A is longer. Therefore, Assistant A is better.", 1),
        ("Both are right, and A is longer. Overall, the better response is B.", -1),
        ("Both are right, and A is longer.\nFinal verdict: A", 1),
        ("I read both answers twice. My final verdict is: tie", 0),
    ],
)
def test_the_last_sentence_of_a_judge_is_the_verdict(said, way):
    rule = word_rule(AB)
    assert rule.value(verdict_in(said, rule)) == way


@pytest.mark.parametrize("words", [("win", "lose", "draw"), (">", "<", "="), ("Y", "N", "both")])
def test_words_that_name_no_side_beside_ties_are_asked_about(words):
    rows = [{"response_a": f"x {i}", "response_b": f"y {i}", "choice": words[i % 3]} for i in range(6)]
    with pytest.raises(
        ValueError, match="which name no side: say which value means the first side, by --first-is"
    ):
        load_pairs(rows, featuriser="format")
    found = load_pairs(rows, columns=Columns(first_is=words[0]), featuriser="format")
    assert found.labels.tolist() == [1, -1, 0] * 2


@pytest.mark.parametrize(
    ("first", "values"), [(1, (True, False)), ("true", (1, 0)), ("yes", ("a", "b", "tie"))]
)
def test_a_label_that_never_stands_there_is_named(first, values):
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}", "choice": values[i % len(values)]} for i in range(6)
    ]
    with pytest.raises(ValueError, match=f"column choice never holds --first-is {first}: it holds"):
        load_pairs(rows, columns=Columns(first_is=first), featuriser="format")


@pytest.mark.parametrize("nothing", ["NULL", "\\N", "nan", "<NA>"])
def test_a_label_that_a_database_lacks_is_missing_and_no_tie(nothing):
    rows = [{"response_a": f"x {i}", "response_b": f"y {i}", "winner": "AB"[i % 2]} for i in range(5)]
    rows[3]["winner"] = nothing
    with pytest.raises(ValueError, match=r"row 4, column winner is missing \(.*\): mend or drop that row"):
        load_pairs(rows, featuriser="format")


@pytest.mark.parametrize("code", ["99", "-1", "9", "-99", "999"])
def test_a_number_that_surveys_write_for_no_answer_is_no_tie_without_being_told(code):
    with pytest.raises(ValueError, match=f"leave the rows of {code} out if it means .*--tie-is {code}"):
        rule_for(["1", "2", code], "label", ("response_1", "response_2"), Columns())


@pytest.mark.parametrize(
    ("said", "way"),
    [("Candidate #1", 1.0), ("candidate #2", -1.0), ("Option #1 is better", 1.0), ("Neither of them", 0.0),
     ("Both of them", 0.0), ("A and B", 0.0), ("Neither A nor B", 0.0)],
)  # fmt: skip
def test_numbers_after_a_hash_and_more_ties_are_known(said, way):
    assert word_rule(("candidate_1", "candidate_2")).value(said) == way


@pytest.mark.parametrize("cell", ["#N/A", "n/a", "NA"])
def test_what_spreadsheets_write_for_no_label_is_missing(cell):
    rule = word_rule(("response_a", "response_b"))
    _, (bad,) = read_labels(["A", cell], "winner", rule)
    assert bad.reason == f"is missing ({cell!r})"


@pytest.mark.parametrize("cell", ["!A", "not A", "~A", "A is not better"])
def test_a_denied_side_is_no_winner(cell):
    assert word_rule(("response_a", "response_b")).value(cell) is None
    assert word_rule(("response_a", "response_b")).value("A!") == 1.0
