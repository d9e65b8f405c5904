"""What a description says beside the pairs; its lines are in `test_wild.py`."""

import json

import pytest

from robust_rlhf_jax.io import describe


def lines_of(path, rows, skip_bad=0.0):
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return str(describe(path, skip_bad=skip_bad)).splitlines()


def notes_of(path, rows):
    return "\n".join(line for line in lines_of(path, rows) if line.startswith("  note: "))


def pair(i, **other):
    return {"prompt": f"q{i}", "chosen": f"yes, {i}", "rejected": f"no, {i}"} | other


@pytest.mark.parametrize("skip_bad", [3, 0.5])
def test_rows_that_are_skipped_are_named_in_the_order_of_the_file(tmp_path, skip_bad):
    rows = [pair(0), pair(1, rejected=None), pair(2, chosen="", rejected=" "), pair(3), "{no JSON", pair(5)]
    said = [line for line in lines_of(tmp_path / "p.jsonl", rows, skip_bad) if line.startswith("  skipped")]
    assert said == [
        "  skipped: row 2, column rejected is missing",
        "  skipped: row 3, column chosen holds no text",
        "  skipped: row 5 is not a JSON object ('{no JSON')",
    ]


def test_many_rows_that_are_skipped_are_counted(tmp_path):
    said = lines_of(
        tmp_path / "p.jsonl", [pair(i, **({"chosen": ""} if i % 2 else {})) for i in range(50)], 25
    )
    assert sum(line.startswith("  skipped: row ") for line in said) == 20
    assert "  skipped: 5 more" in said


def test_nothing_is_said_of_skipped_rows_where_there_are_none(tmp_path):
    assert not any("skipped" in line for line in lines_of(tmp_path / "p.jsonl", [pair(i) for i in range(4)]))


@pytest.mark.parametrize(
    ("again", "said"),
    [
        ([], ""),
        (
            [pair(1)],
            "  note: 1 pair repeats an earlier one with the same result, and no rater tells them apart: drop ",
        ),
        ([pair(1), pair(2), pair(1)], "  note: 3 pairs repeat an earlier one"),
        ([{"prompt": "q1", "chosen": "no, 1", "rejected": "yes, 1"}], ""),  # the issue both_orders says so
    ],
)
def test_repeated_pairs_of_nobody_are_counted(tmp_path, again, said):
    """Held-out pairs that the training folds have, too, look right, and evidence counts twice."""
    notes = notes_of(tmp_path / "p.jsonl", [pair(i) for i in range(4)] + again)
    assert notes.startswith(said)
    assert ("repeat" in notes) == bool(said)


def test_judgements_of_several_raters_are_no_repeats(tmp_path):
    rows = [pair(i % 4, rater=f"r{i}") for i in range(8)]
    assert not any("repeat" in line for line in lines_of(tmp_path / "p.jsonl", rows))


@pytest.mark.parametrize("more", [{}, {"id": "p1"}])
def test_copies_by_the_same_rater_are_counted(tmp_path, more):
    rows = [pair(i, rater=f"r{i % 2}", **dict.fromkeys(more, f"p{i}")) for i in range(6)]
    said = notes_of(tmp_path / "p.jsonl", [*rows, rows[1], rows[4]])
    assert (
        "2 pairs repeat an earlier one with the same result, by the same rater: drop those that are copies"
        in said
    )


@pytest.mark.parametrize(
    ("same", "said"), [([], ""), ([2], "1 pair has the same"), ([0, 3], "2 pairs have the same")]
)
@pytest.mark.parametrize("what", ["text", "numbers"])
def test_pairs_with_the_same_sides_are_counted(tmp_path, same, said, what):
    """Of numbers in each column, not in one of them."""
    if what == "text":
        rows = [pair(i, **{"rejected": f"yes, {i}"} if i in same else {}) for i in range(5)]
    else:
        rows = [
            {"chosen_a": i, "rejected_a": i, "chosen_b": i + 1, "rejected_b": i + (i in same)}
            for i in range(5)
        ]
    notes = notes_of(tmp_path / "p.jsonl", rows)
    assert (f"note: {said} {what} on both sides." in notes) if same else ("on both sides" not in notes)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_feature_that_predicts_every_label_is_named(tmp_path, sign):
    def rows(n, wrong=0):
        sides = [(1.0 + i, sign * (-1 if i < wrong else 1)) for i in range(n)]
        return [
            {"chosen_price": (7 * i) % 5, "rejected_price": 2, "chosen_logp": a + more, "rejected_logp": a}
            for i, (a, more) in enumerate(sides)
        ]

    side = "higher" if sign > 0 else "lower"
    said = f"logp is {side} on the chosen side in all 50 decided pairs, so that it predicts every label: leave it out"
    assert said in notes_of(tmp_path / "p.jsonl", rows(50))
    assert "price is" not in notes_of(tmp_path / "p.jsonl", rows(50))
    for others in (rows(49), rows(60, wrong=1)):
        assert "predicts" not in notes_of(tmp_path / "p.jsonl", others)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({}, True),
        ({"prompt": "which is better?"}, False),
        ({"chosen": "an answer of several words"}, False),
    ],
)
def test_words_that_recur_may_be_names_of_items(tmp_path, change, named):
    """Their letters would be features, as of texts."""
    names = ["gpt", "claude", "llama", "qwen"]
    rows = [{"chosen": names[i % 4], "rejected": names[(i + 1 + i % 3) % 4]} | change for i in range(20)]
    notes = notes_of(tmp_path / "p.jsonl", rows)
    said = (
        "The 40 texts are 4 words that recur, such as 'claude': if they name items, robust-rlhf leaderboard"
    )
    assert (said in notes) == named
    few = [{"chosen": f"w{i}", "rejected": f"v{i}"} for i in range(20)]
    assert "leaderboard" not in notes_of(tmp_path / "p.jsonl", few)
