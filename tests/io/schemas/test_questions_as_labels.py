"""A form's question which answer is better, as the name of the column that says it."""

import pytest

from robust_rlhf_jax.io import load_pairs


def forms(question: str, **more) -> list[dict]:
    return [
        {
            "Response A": f"x {i}",
            "Response B": f"y {i}",
            question: ("Response A", "Response B", "Both equal")[i % 3],
        }
        | more
        for i in range(9)
    ]


@pytest.mark.parametrize(
    "question",
    ["Which response is better?", "Which is better? ", "Q2. Which response do you prefer (A or B)?",
     "Which answer is the best one?", "Welche Antwort ist besser?", "Quelle réponse préférez-vous ?",
     "Cuál es mejor?", "Quale risposta è migliore?"],
)  # fmt: skip
def test_the_question_which_one_is_better_is_the_label(question):
    found = load_pairs(forms(question), featuriser="format")
    assert found.swapped.tolist() == [False, True, False] * 3
    assert int((found.strength == 0).sum()) == 3


@pytest.mark.parametrize(
    "question",
    ["Which response is longer?", "Which response is not better?", "Which one is better at deceiving?",
     "Which is worse?", "Which do you like less, or prefer least?", "What did the better rater say first?"],
)  # fmt: skip
def test_other_questions_are_asked_about(question):
    with pytest.raises(ValueError, match=r"the cells of .* name sides\): name its column by --label"):
        load_pairs(forms(question), featuriser="format")


def test_two_questions_are_asked_about():
    with pytest.raises(ValueError, match="name its column by --label"):
        load_pairs(
            [row | {"Which is safer?": "AB"[i % 2]} for i, row in enumerate(forms("Which is better?"))]
        )
