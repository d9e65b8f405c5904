"""Which columns name raters or hold the labels of one each, and which only look so."""

import pytest

from robust_rlhf_jax.io import Columns, load_pairs


@pytest.mark.parametrize(
    "name", ["subjectID", "participant.code", "labeller_id", "Judge ID", "rated by", "Assessor", "grader"]
)
def test_raters_have_many_names(name):
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}", "winner": "ab"[i % 2], name: f"p{i % 3}"}
        for i in range(6)
    ]
    assert {*load_pairs(rows, featuriser="format").raters} == {"p0", "p1", "p2"}


@pytest.mark.parametrize(
    ("names", "label"),
    [
        (("human_label", "gpt4_label"), "human_label"),
        (("label_human", "label_gpt4", "label_claude"), None),
        (("ai_preference", "human_preference"), "human_preference"),
        (("label_pred", "label_true"), None),
        (("choice_before", "choice_after"), None),
        (("preference_round1", "preference_final"), None),
    ],
)
def test_not_every_two_labels_are_of_two_raters(names, label):
    words = {name: ("AB" if name in (label, names[0]) else "BA") for name in names}
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}"} | {name: said[i % 2] for name, said in words.items()}
        for i in range(6)
    ]
    if label is None:
        with pytest.raises(ValueError, match="--label"):
            load_pairs(rows, featuriser="format")
    else:
        assert load_pairs(rows, featuriser="format").description.roles["label"].startswith(f"{label}:")


@pytest.mark.parametrize(
    ("names", "raters"),
    [
        (("label_1", "label_2", "label_majority"), {"1", "2"}),
        (("label_anna", "label_ben", "label_gpt4", "label_claude_3"), {"anna", "ben"}),
        (("label_anna", "label_ben", "label_claude"), {"anna", "ben", "claude"}),
        (("label_anna", "label_goldberg"), {"anna", "goldberg"}),
        (("winner_gpt4", "winner_claude", "winner_gemini"), {"gpt4", "claude", "gemini"}),
        (("winner_gpt4", "winner_claude_3", "winner_majority"), {"gpt4", "claude_3"}),
    ],
)
def test_raters_are_people_or_a_panel_of_machines(names, raters):
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}"}
        | {name: "AB"[(i + k) % 2] for k, name in enumerate(names)}
        for i in range(4)
    ]
    assert set(load_pairs(rows, featuriser="format").raters) == raters


@pytest.mark.parametrize(
    "names",
    [("winner_bleu", "winner_rouge"), ("winner_latency", "winner_cost"), ("preference_length", "preference_formatting"),
     ("choice_q1", "choice_q2"), ("preference_turn_1", "preference_turn_2"), ("winner_seed1", "winner_seed2"),
     ("preference_en", "preference_de"), ("preference_reason", "preference_choice"),
     ("label_strict", "label_loose"), ("winner_cot", "winner_direct"), ("label_clean", "label_noisy"),
     ("choice_before_discussion", "choice_after_discussion"), ("preference_short_term", "preference_long_term")],
)  # fmt: skip
def test_columns_of_metrics_questions_and_turns_are_no_raters(names):
    rows = [
        {"response_a": f"x {i}", "response_b": f"y {i}"}
        | {name: "ABA"[(i + k) % (2 + k)] for k, name in enumerate(names)}
        for i in range(12)
    ]
    with pytest.raises(ValueError, match=rf"the cells of {names[0]}, {names[1]} name sides"):
        load_pairs(rows, featuriser="format")
    named = [{name.replace(names[0], "winner_ann").replace(names[1], "winner_ben"): c for name, c in row.items()}
             for row in rows]  # fmt: skip
    assert set(load_pairs(named, featuriser="format").raters) == {"ann", "ben"}


@pytest.mark.parametrize(
    "said",
    [("expert", (True, False)), ("individual", ("yes", "no")),
     ("judge", ("A covers more of what was asked for", "B says the same in fewer words"))],
)  # fmt: skip
@pytest.mark.parametrize("beside", [{}, {"worker_id": "w-amber"}])
def test_what_is_called_after_raters_and_holds_no_names_is_no_rater(said, beside):
    name, cells = said
    rows = [
        {
            "prompt": f"p {i}",
            "response_a": f"x {i}",
            "response_b": f"y {i}",
            "winner": "AB"[i % 2],
            name: cells[i % 2],
        }
        | beside
        for i in range(12)
    ]
    raters = load_pairs(rows, featuriser="format").raters
    assert (raters is None) if not beside else {*raters} == {"w-amber"}
    asked = Columns(rater=name)
    assert {*load_pairs(rows, columns=asked, featuriser="format").raters} == {*map(str, cells)}


NUMBERS = [(1, 2), (2, 1), (0, 1), (True, False), ("1", "2")]


def of_numbers(names, cells, n=20, **more):
    return [
        {"prompt": f"p{i}", "response_a": f"x {i}", "response_b": f"y {i}"}
        | {name: cells[(i + k) % 2] for k, name in enumerate(names)}
        | more
        for i in range(n)
    ]


@pytest.mark.parametrize("n", [20, 5000])
@pytest.mark.parametrize("cells", NUMBERS)
def test_numbers_of_one_rater_are_named_and_read_as_told(cells, n):
    rows = of_numbers(["rater_1"], cells, n)
    with pytest.raises(
        ValueError, match=r"rater_1 holds .* give --label rater_1 and say by --first-is which one"
    ):
        load_pairs(rows, featuriser="format")
    asked = Columns(label="rater_1", first_is=str(cells[0]))
    assert load_pairs(rows, columns=asked, featuriser="format").swapped.tolist() == [False, True] * (n // 2)


@pytest.mark.parametrize("n", [20, 5000])
@pytest.mark.parametrize("cells", NUMBERS)
def test_numbers_of_several_raters_are_named_and_read_as_told(cells, n):
    rows = of_numbers(["rater_1", "rater_2", "rater_3"], cells, n)
    with pytest.raises(
        ValueError, match=r"rater_1, rater_2, rater_3 hold .* say by --first-is which one means response_a"
    ):
        load_pairs(rows, featuriser="format")
    found = load_pairs(rows, columns=Columns(first_is=str(cells[0])), featuriser="format")
    assert {*found.raters} == {"1", "2", "3"}
    assert found.swapped.tolist() == [False, True, False, True, False, True] * (n // 2)


def test_a_label_beside_numbers_of_raters_is_read():
    rows = of_numbers(["annotator_1"], (1, 2), winner="A")
    assert load_pairs(rows, featuriser="format").n_pairs == 20
    asked = of_numbers(["annotator_1"], (1, 2), **{"Which response is better?": "A"})
    asked[0]["Which response is better?"] = "B"
    assert load_pairs(asked, featuriser="format").swapped.tolist() == [True] + [False] * 19


@pytest.mark.parametrize("cells", [(1, 7), (12, 13), ("ann", "ben")])
def test_other_cells_of_a_column_called_after_a_rater_are_no_labels(cells):
    with pytest.raises(ValueError, match="no label"):
        load_pairs(of_numbers(["rater_1"], cells), featuriser="format")


@pytest.mark.parametrize(
    "name",
    ["participant_no", "Participant #", "subject_no", "annotator_name", "Judge name", "rater_code", "annotator_hash",
     "respondent_nr", "ppt_id", "mturk_id", "_worker_id", "labeled_by", "completed_by_email", "crowdworker",
     "Beurteiler", "annotatore", "beoordelaar", "Avaliador"],
)  # fmt: skip
@pytest.mark.parametrize("people", [("p1", "p2", "p3"), (1, 2, 3)])
def test_raters_may_have_numbers_codes_and_names_in_six_languages(name, people):
    rows = of_numbers([], ("A", "B"), 21)
    rows = [row | {"winner": "AB"[i % 2], name: people[i % 3]} for i, row in enumerate(rows)]
    assert {*load_pairs(rows, featuriser="format").raters} == {*map(str, people)}


@pytest.mark.parametrize(
    "name", ["annotator_country", "judge_model", "rater_type", "worker_batch", "annotation_id", "reviewer_comment",
             "subject_name", "assignment_id"]
)  # fmt: skip
def test_what_else_is_said_of_raters_names_none(name):
    rows = [
        row | {"winner": "AB"[i % 2], name: f"p{i % 3}"} for i, row in enumerate(of_numbers([], ("A", "B")))
    ]
    assert load_pairs(rows, featuriser="format").raters is None
