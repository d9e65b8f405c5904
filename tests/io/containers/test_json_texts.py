"""Lines of JSON that are written back are the lines that were read."""

import json

import pytest

from robust_rlhf_jax.io import export, load_pairs

# Numbers that a parser rounds or respells, escapes of another style, spaces, and half of a character.
LINES = [
    '{"prompt": "Tea?", "chosen": "Yes", "rejected": "No", "id": 12345678901234567890123, "p": 0.12345678901234567891}',
    '{"prompt":"Tee f\\u00fcr zwei?","chosen":"Ja","rejected":"Nein","p":1.10,"q":1E5,"r":-0.0}',
    '{ "chosen" : "für dich" , "prompt" : "Wer?" , "rejected" : "Nie \\ud83d" , "meta" : {"p": 2.50} }',
    '{"prompt": "Tea?", "chosen": "Of course", "rejected": "Never"}',
]


def written(tmp_path, ends, columns, keep=None):
    (tmp_path / "pairs.jsonl").write_bytes((ends.join(LINES) + ends).encode())
    pairs = load_pairs(tmp_path / "pairs.jsonl", featuriser="format")
    export(pairs, tmp_path / "out.jsonl", columns, keep=keep)
    return (tmp_path / "out.jsonl").read_bytes().decode()


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_cleaned_copy_has_the_kept_lines_letter_by_letter(tmp_path, ends):
    kept = [LINES[i] + ends for i in (0, 1, 2)]
    assert written(tmp_path, ends, {}, keep=[True, True, True, False]) == "".join(kept)


def test_further_keys_come_after_the_letters_of_the_line(tmp_path):
    found = written(tmp_path, "\n", {"keep": [True, False, True, True]}).splitlines()
    begun = [line[:-1].rstrip() for line in LINES]
    assert [line.startswith(start) for line, start in zip(found, begun, strict=True)] == [True] * 4
    rows = [json.loads(line) for line in found]
    assert [row.pop("keep") for row in rows] == [True, False, True, True]
    assert rows == [json.loads(line) for line in LINES]
