"""A refusal that names flags also says, to who called from Python, what they are called there."""

import inspect
import subprocess
import sys

import pytest

from robust_rlhf_jax.io import Columns, describe, load_pairs
from robust_rlhf_jax.io.flags_in_python import python_names

ROWS = [
    {"response_a": "Yes.", "response_b": "No.", "verdict": 0},
    {"response_a": "Red.", "response_b": "Blue.", "verdict": 1},
]


@pytest.mark.parametrize("read", [load_pairs, describe])
def test_the_note_names_the_fields_that_decide(read, tmp_path):
    with pytest.raises(ValueError, match="--first-is") as caught:
        read(ROWS, columns=Columns(label="verdict"))
    assert caught.value.__notes__ == ["For this io.load_pairs has columns=io.Columns(first_is=…)."]
    assert len(load_pairs(ROWS, columns=Columns(label="verdict", first_is="0")).labels) == 2


@pytest.mark.slow
def test_the_command_says_the_flag_alone(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("response_a,response_b,verdict\nYes.,No.,0\nRed.,Blue.,1\n")
    command = [sys.executable, "-c", "import robust_rlhf_command; robust_rlhf_command.main()"]
    flags = ["audit", str(file), "--out", str(tmp_path / "out"), "--label", "verdict"]
    done = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "--first-is" in done.stderr
    assert "Columns" not in done.stderr + done.stdout


def test_every_argument_of_reading_has_a_flag_of_its_name():
    named = set(inspect.signature(load_pairs).parameters) - {"path", "columns"}
    for name in named:
        assert python_names(f"give --{name.replace('_', '-')}") == f"For this io.load_pairs has {name}=…."


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("a.csv has no label.", None),
        ("choose one by --split train.", "For this io.load_pairs has split=…."),
        (
            "give --label x, or --label none with --chosen a --skip-bad 3",
            "For this io.load_pairs has columns=io.Columns(label=…, chosen=…) and skip_bad=….",
        ),
        ("x--label is no flag, nor is --unheard-of", None),
    ],
)
def test_only_flags_of_reading_have_a_name_there(message, note):
    assert python_names(message) == note
