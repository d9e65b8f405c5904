"""A word that the command does not take ends in one sentence, and in no box of its parser."""

import sys

import pytest

from robust_rlhf_jax.refused_words import one_sentence, sentence


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "sweep --epsilons 5%",
            "--epsilons 5%: give a number such as 0.05, or several (robust-rlhf sweep --help).",
        ),
        ("sweep --epsilons 0,1 --seeds 2", "--epsilons 0,1: give a number such as 0.05, or several"),
        ("audit x.csv --epsilon=5%", "--epsilon 5%: give a number such as 0.05 (robust-rlhf audit --help)."),
        ("sweep --n_pairs many", "--n-pairs many: give a whole number (robust-rlhf sweep --help)."),
        (
            "sweep --engine process",
            "--engine process: choose auto, local, processes or ray (robust-rlhf sweep --help).",
        ),
        ("reproduce table2", "table2: choose table1 or robustness (robust-rlhf reproduce --help)."),
        ("sweep --processes 2", "robust-rlhf sweep has no --processes: see robust-rlhf sweep --help."),
        (
            "audit x --epsilonn 1",
            "robust-rlhf audit has no --epsilonn: did you mean --epsilon? See robust-rlhf",
        ),
        ("audit", "robust-rlhf audit needs FILE: see robust-rlhf audit --help."),
        ("reproduce", "robust-rlhf reproduce needs table1 or robustness: see robust-rlhf reproduce --help."),
        ("report", "robust-rlhf report needs PATH: see robust-rlhf report --help."),
        ("clean x.csv", "robust-rlhf clean needs DECISIONS and --out PATH: "),
        (
            "audt x",
            "there is no command audt: choose describe, audit, clean, embed, fit, best-of-n, ",
        ),
        ("report a b", "b is more than robust-rlhf report takes: see robust-rlhf report --help."),
    ],
)
def test_it_says_what_is_wrong_and_what_to_give(robust_rlhf, line, said):
    status, printed, errors = robust_rlhf(*line.split())
    assert (status, printed) == (2, "")
    assert errors.startswith(f"robust-rlhf: {said}")
    assert errors.count("\n") == 1


BOX = """
╭─ Value error ──────────────────────────────────────────────────────╮
│ Error parsing --seeds: invalid literal for int() with base 10: 'x' │
│ ────────────────────────────────────────────────────────────────── │
│ Argument helptext:                                                 │
│     --seeds INT                                                    │
│     data sets per family. (default: 4)                             │
╰────────────────────────────────────────────────────────────────────╯
"""


def test_boxes_are_drawn_by_what_a_stream_can_show():
    assert (
        sentence(BOX, ["sweep", "--seeds", "x"])
        == "--seeds x: give a whole number (robust-rlhf sweep --help)."
    )


def refuse():
    print("no box", file=sys.stderr)
    sys.exit(2)


def test_what_is_no_box_is_repeated(capsys):
    assert sentence("no box", ["audit"]) is None
    with pytest.raises(SystemExit), one_sentence(["audit"]):
        refuse()
    with one_sentence(["audit"]):
        print("a warning", file=sys.stderr)
    assert capsys.readouterr().err == "no box\na warning\n"
