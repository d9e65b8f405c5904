"""What raters answered in `ask.csv` comes back, whichever side stood first."""

import csv
import dataclasses

import numpy as np
import pytest
from text_pairs import faulty_file, made_up_fit, read

from robust_rlhf_jax import Pairs
from robust_rlhf_jax.audit import Advice, find
from robust_rlhf_jax.audit.answers import read_answers
from robust_rlhf_jax.audit.ask_pairs import first_is_rejected, write_ask
from robust_rlhf_jax.audit.page_decisions import read_decisions

PAIRS = Pairs(np.ones((4, 1)), np.zeros((4, 1)))


def side(pair, chosen=True):
    """How the chosen or the other side of a pair is called in the file."""
    return ("second", "first")[chosen != first_is_rejected(pair)]


@pytest.fixture
def asked(tmp_path):
    """(an audited file of 60 pairs, its pairs, its `ask.csv` about the first 40)."""
    path, _, _ = faulty_file(tmp_path, "identical", 0.1, n=60)
    pairs = read(path)
    advice = Advice("ask", np.arange(0), np.arange(40), 0, None, ("Said.",))
    write_ask(tmp_path / "ask.csv", find(pairs, made_up_fit(pairs)), advice)
    return path, pairs, tmp_path / "ask.csv"


def answer(path, say):
    """Fill in `better` by `say(row)`."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows([row | {"better": say(row)} for row in rows])


def test_raters_who_see_which_text_is_better_are_understood(asked, tmp_path, robust_rlhf):
    """Rows 1 to 20 are answered by the text that the file prefers, 21 to 30 by the other one; 10 are open."""
    path, pairs, ask = asked

    def say(row):
        pair = int(row["pair"]) - 1
        if pair >= 30:
            return ""
        wanted = pairs.texts.chosen[pair] if pair < 20 else pairs.texts.rejected[pair]
        return "first" if row["first"] == wanted else "second"

    answer(ask, say)
    same = {i for i in range(60) if pairs.texts.chosen[i] == pairs.texts.rejected[i]}
    kept, said = read_decisions(ask, pairs)
    for pair in sorted(set(range(60)) - same):
        assert kept[pair] == (pair < 20 or pair >= 30)
    assert said.startswith("Raters answered 30 of the 40 pairs to ask about: ")
    status, printed, errors = robust_rlhf("clean", path, ask, "--out", tmp_path / "cleaned.jsonl")
    assert status == 0, errors
    assert printed.startswith(f"Kept {kept.sum()} of 60 pairs.\n{said}\n")


def test_answers_about_another_file_are_refused(asked):
    _, pairs, ask = asked
    answer(ask, lambda row: "tie")
    with pytest.raises(ValueError, match=r"question 1: pair 1 of .* is not the one that was audited"):
        read_decisions(ask, dataclasses.replace(pairs.take(np.arange(60)[::-1]), rows=pairs.rows))


@pytest.mark.parametrize(
    ("answers", "confirmed"),
    [
        ([True], True),
        ([False], False),
        (["tie"], False),
        ([True, True, False], True),
        ([True, False], False),
        ([True, "", "tie"], False),
        ([True, "tie", "tie"], False),
        ([True, True, False, "tie", ""], True),
    ],
)
@pytest.mark.parametrize("pair", range(4))
def test_most_answers_decide(pair, answers, confirmed):
    rows = [("here", pair, side(pair, said) if isinstance(said, bool) else said) for said in answers]
    found = read_answers(rows, PAIRS)
    assert (found.pairs, found.confirm, found.open) == ((pair,), (confirmed,), 0)


def test_a_tie_confirms_a_tie():
    pairs = Pairs(np.ones((2, 1)), np.zeros((2, 1)), strength=np.array([0.0, 1.0]))
    assert read_answers([("here", 0, "tie"), ("here", 1, "tie")], pairs).confirm == (True, False)
    assert read_answers([("here", 0, side(0))], pairs).confirm == (False,)
    answers = [("here", 0, answer) for answer in ("tie", "tie", "first")]
    assert read_answers(answers, pairs).confirm == (True,)
    assert read_answers([("here", 0, "first"), ("here", 0, "second")], pairs).confirm == (False,)


@pytest.mark.parametrize(
    "words", [("first", "second"), ("1", "2"), ("A", "B"), (1, 2), ("First", " second ")]
)
def test_words_for_the_sides(words):
    for pair in range(4):
        word = words[first_is_rejected(pair)]
        assert read_answers([("here", pair, word)], PAIRS).confirm == (True,)


def test_another_word_is_refused_in_one_sentence():
    with pytest.raises(
        ValueError, match=r"^line 3: better is 'perhaps': answer first, second or tie, or leave it"
    ):
        read_answers([("line 3", 0, "perhaps")], PAIRS)
    assert read_answers([("here", 0, ""), ("here", 1, None)], PAIRS).open == 2


def test_files_of_several_raters_are_put_below_each_other(asked):
    """With the header of each, and one that a spreadsheet saved in an encoding of its own."""
    _, pairs, ask = asked
    answer(ask, lambda row: side(int(row["pair"]) - 1, int(row["pair"]) <= 10))
    once = ask.read_text(encoding="utf-8")
    ask.write_bytes(
        once.encode("utf-8-sig") * 2 + once.replace("first", "fïrst", 0).encode("cp1252", "replace")
    )
    kept, said = read_decisions(ask, pairs)
    assert kept[:10].all()
    assert not kept[10:40].any()
    assert (
        said
        == "Raters answered 40 of the 40 pairs to ask about: 10 as in the file, 30 otherwise and left out."
    )
    ask.write_bytes(once.replace("better", "Better (b\xe9st)", 1).encode("cp1252", "replace"))
    with pytest.raises(ValueError, match="has no column better: it needs pair, row and better, each once"):
        read_decisions(ask, pairs)


def test_texts_of_any_length_come_back(tmp_path):
    path = tmp_path / "ask.csv"
    path.write_text(f"pair,row,first,second,better\n1,1,{'a' * 200_000},b,{side(0)}\n")
    assert read_decisions(path, PAIRS).keep.tolist() == [True] * 4
