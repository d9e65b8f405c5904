"""Lines and documents of JSON that are written back are those that were read."""

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


def document(rows):
    return "[\r\n  " + ",\r\n  ".join(rows) + "\r\n]\r\n"


DOCUMENTS = {
    "array": (document, LINES),
    "under a key": (
        lambda rows: '{{"n": 1.50, "data": [{}], "end": "\\u00e9"}}'.format(" , ".join(rows)),
        LINES,
    ),
    "within": (
        lambda rows: '{{"n": 1.50, "result" : {{"data": [{}], "end": "\\u00e9"}} }}'.format(" , ".join(rows)),
        LINES,
    ),
    "wrapped": (
        lambda rows: '{{"rows":[{}]}}'.format(",".join(rows)),
        [f'{{"row_idx":{i}, "row":{line}, "truncated_cells":[]}}' for i, line in enumerate(LINES)],
    ),
    "by name": (
        lambda rows: "{{{}}}\n".format(",\n".join(rows)),
        [f'"\\u00e9 {i}":  {line}' for i, line in enumerate(LINES)],
    ),
}


def exported(tmp_path, text, columns, keep=None):
    (tmp_path / "pairs.json").write_bytes(text.encode())
    pairs = load_pairs(tmp_path / "pairs.json", featuriser="format")
    export(pairs, tmp_path / "out.json", columns, keep=keep)
    return (tmp_path / "out.json").read_bytes().decode()


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("kept", [(0, 1, 2, 3), (1, 3), (0,)])
def test_a_cleaned_document_has_the_kept_rows_letter_by_letter(tmp_path, name, kept):
    whole, rows = DOCUMENTS[name]
    found = exported(tmp_path, whole(rows), {}, keep=[i in kept for i in range(4)])
    assert found == whole([rows[i] for i in kept])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_further_keys_come_after_the_letters_of_the_row(tmp_path, name):
    whole, rows = DOCUMENTS[name]
    found = exported(tmp_path, whole(rows), {"suspicion": [0.5, 0.25, 0.125, 1.0]})
    for number in ("12345678901234567890123", "0.12345678901234567891", "1.10", "1E5", "\\u00fc", "\\ud83d"):
        assert number in found
    assert json.dumps(json.loads(found)).count('"suspicion": ') == 4
    assert found.startswith(whole(rows)[:30])


def test_further_keys_are_written_in_the_style_of_the_row(tmp_path):
    text = '[\n  {\n    "chosen" : "Yes",\n    "rejected" : "No"\n  }\n]'
    found = exported(tmp_path, text, {"keep": [True], "weight": [0.5]})
    assert found == text.replace('"No"', '"No",\n    "keep" : true,\n    "weight" : 0.5')


def test_keys_of_an_earlier_audit_are_replaced_where_the_rest_stays(tmp_path):
    columns = {
        "suspicion": [0.5],
        "keep": [True],
        "suggested_label": ["chosen"],
        "weight": [1.0],
        "margin": [0.1],
    }
    text = '[{"chosen":"Yes","suspicion":0.10,"rejected":"No","p":1.10}]'
    (tmp_path / "first").mkdir()
    first = exported(tmp_path / "first", text.replace('"suspicion":0.10,', ""), columns)
    again = exported(tmp_path, first.replace("0.5", "0.9"), columns)
    assert again == first
