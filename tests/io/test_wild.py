"""Files as they occur in the wild are read rightly, or refused in a sentence whose flag helps; none is misread."""

import re
import warnings
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from wild import BY_NAME, CASES, reading

from robust_rlhf_jax.io import Columns, load_pairs


class Outcome(NamedTuple):
    """`refused`: the sentence, or ""; `wrong`: in what the reading differs from the file, or ""."""

    refused: str
    wrong: str


def outcome(case, path, flags) -> Outcome:
    """What becomes of the file; any other error than the ones that are documented is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            pairs = load_pairs(path, featuriser="format", **reading(flags))
        except ValueError as error:
            return Outcome(str(error), "")
    return Outcome("", case.differs(pairs))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Of each case by name: without a flag, and with its flags."""
    found = {}
    for case in CASES:
        path = case.write(tmp_path_factory.mktemp("wild"))
        try:
            found[case.name] = [outcome(case, path, flags) for flags in ({}, case.flags) if flags is not None]
        except Exception as error:
            found[case.name] = error
    return found


@pytest.mark.parametrize("name", BY_NAME)
def test_a_file_is_read_rightly_or_refused_with_the_flag_that_helps(outcomes, name):
    case, found = BY_NAME[name], outcomes[name]
    if isinstance(found, Exception):
        raise found
    first, *more = found
    assert not first.wrong
    if not case.refused or (case.either and not first.refused):
        assert not first.refused
        return
    assert re.search(case.refused, first.refused), first.refused or "it was read"
    assert is_one_sentence(first.refused), first.refused
    for told in more:
        assert told == Outcome("", ""), told


def is_one_sentence(text: str) -> bool:
    """It ends with a full stop, and none within it is followed by a capital."""
    return text.endswith(".") and "\n" not in text and not re.search(r"[.!?] [A-Z]", text)


def kind(found) -> str:
    """What became of a file without a flag."""
    if isinstance(found, Exception):
        return "error"
    return "misread" if found[0].wrong else "refused" if found[0].refused else "read"


def test_most_files_need_no_flag_and_none_is_misread(outcomes):
    kinds = Counter(map(kind, outcomes.values()))
    assert kinds["read"] >= max(85, sum(not case.refused for case in CASES))
    assert not kinds["misread"]
    assert not kinds["error"]


SIDES_OF_ARENA = {"chosen": "conversation_a", "rejected": "conversation_b"}
SIDES_OF_SHP = {"chosen": "human_ref_A", "rejected": "human_ref_B"}


@pytest.mark.parametrize(("name", "sides"), [("arena_33k", SIDES_OF_ARENA), ("shp", SIDES_OF_SHP)])
def test_a_column_that_could_be_the_label_is_asked_about_or_used(tmp_path, name, sides):
    """The two sides are named, the label is not: the first side did not always win."""
    case = BY_NAME[name]
    found = outcome(case, case.write(tmp_path), {f"--{part}": column for part, column in sides.items()})
    assert not found.wrong
    assert not found.refused or "--label" in found.refused


def test_a_label_that_is_told_not_to_be_there_is_none(tmp_path):
    """`--label none`: the first side won each time."""
    case = BY_NAME["arena_33k"]
    pairs = load_pairs(
        case.write(tmp_path), columns=Columns(**SIDES_OF_ARENA, label="none"), featuriser="format"
    )
    assert pairs.texts.chosen == [item.a for item in case.items()]
    assert not pairs.swapped.any()


def test_ties_of_three_winner_columns_are_no_losses(tmp_path):
    """One of the three columns is named as the label."""
    case = BY_NAME["lmsys_55k"]
    found = outcome(case, case.write(tmp_path), {"--label": "winner_model_a", "--first-is": "1"})
    assert not found.wrong


def test_first_is_needs_to_know_what_the_other_values_mean(tmp_path):
    """Two values are left beside the first side's, of which one is a tie."""
    case = BY_NAME["zero_one_two"]
    found = outcome(case, case.write(tmp_path), {"--first-is": "1"})
    assert re.search("--tie-is|--scale", found.refused)
    assert is_one_sentence(found.refused)


@pytest.mark.parametrize("name", ["rater_columns", "label_columns", "helpsteer3"])
def test_annotators_in_columns_are_raters_of_their_own(tmp_path, name):
    """What each rater said, in the order of the rows, is one column."""
    case = BY_NAME[name]
    pairs = load_pairs(case.write(tmp_path), featuriser="format")
    votes = len(case.items()[0].votes)
    found = {tuple(pairs.labels[pairs.raters == who].tolist()) for who in set(pairs.raters.tolist())}
    expected = {tuple(int(np.sign(item.votes[j][1])) for item in case.items()) for j in range(votes)}
    assert found == expected
    assert len(set(pairs.groups.tolist())) == len(case.items())


@pytest.mark.parametrize(
    "name", ["nectar", "best_of_n", "helpsteer1_rows", "ultrafeedback_raw", "argilla1_ranking_of_k"]
)
def test_pairs_of_a_ranking_belong_together(tmp_path, name):
    case = BY_NAME[name]
    pairs = load_pairs(case.write(tmp_path), featuriser="format")
    together = {}
    for prompt, group in zip(pairs.texts.prompt, pairs.groups.tolist(), strict=True):
        together.setdefault(prompt, set()).add(group)
    assert len(together) == len(case.items())
    assert all(len(groups) == 1 for groups in together.values())
    assert len(set.union(*together.values())) == len(together)
