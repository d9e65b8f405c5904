"""A share of the fuzz: `python tests/fuzz/fuzz_command.py 500` is all of it."""

import os
import random

import pytest

if not hasattr(os, "mkfifo"):
    pytest.skip("needs FIFOs and alarms", allow_module_level=True)

import bad_files
import bad_pairs
import fuzz_command

# About a minute and a half.
CASES = 264


@pytest.mark.slow
def test_bad_files_and_flags_end_in_one_sentence():
    outcomes = [fuzz_command.run_case(number) for number in range(CASES)]
    slowest = max(outcome.seconds for outcome in outcomes)
    refused = sum(outcome.status == 2 for outcome in outcomes)
    print(f"{CASES} cases, {refused} of them refused, the slowest in {slowest:.1f} s")
    assert [outcome for outcome in outcomes if outcome.complaints] == []
    # Else nothing would be tried.
    assert CASES / 2 < refused < CASES


def test_the_fuzz_complains(tmp_path, monkeypatch):
    """Of a sentence too many, half a result, a NaN, a corrupted file and a control character."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "audit.json").write_text('{"gain": NaN}')
    (tmp_path / "out" / ".results.unfinished").write_text("half")
    (tmp_path / "a.csv").write_text("mine")
    given = {"a.csv": "another digest"}
    found = list(fuzz_command.complain(["audit", "a.csv"], 0, "\x1b[31m", "one\ntwo\n", given))
    for word in ("control characters", "words on stderr", "changed", "scratch", "not whole", "NaN in"):
        assert any(word in complaint for complaint in found), word
    given = fuzz_command.snapshot()
    (tmp_path / "new").write_text("1")
    found = list(fuzz_command.complain(["audit", "data.csv"], 2, "", "robust-rlhf: one\ntwo\n", given))
    for word in ("no single sentence", "left behind", "without the file's name"):
        assert any(word in complaint for complaint in found), word


def test_cases_are_the_same_every_time():
    for make in (
        bad_files.csv_file,
        bad_files.npz_file,
        bad_files.toml_file,
        bad_pairs.decisions,
    ):
        assert [make(random.Random(n)) for n in range(5)] == [make(random.Random(n)) for n in range(5)]
