"""Decisions made on the page come back, and bad ones are refused in one sentence."""

import csv
import json

import numpy as np
import pytest
from text_pairs import faulty_file, made_up_fit, read

from robust_rlhf_jax import Pairs
from robust_rlhf_jax.audit import Advice, find, plot
from robust_rlhf_jax.audit.audited_file import AuditedFile
from robust_rlhf_jax.audit.config import AuditConfig
from robust_rlhf_jax.audit.files import write_files
from robust_rlhf_jax.audit.page_decisions import SCHEMA, read_decisions
from robust_rlhf_jax.audit.pair_check import pair_check

PAIRS = Pairs(np.ones((4, 1)), np.zeros((4, 1)), rows=np.array([0, 0, 1, 3]), n_rows=4)


def told(decisions, pairs=4, **more):
    return json.dumps({"schema": SCHEMA, "version": 1, "pairs": pairs, "decisions": decisions} | more)


def entry(pair, row, decision):
    return {"pair": pair, "row": row, "decision": decision}


def test_json_and_csv_say_the_same(tmp_path):
    entries = [entry(2, 1, "drop"), entry(4, 4, "keep"), entry(3, 2, "drop")]
    (tmp_path / "d.json").write_text(told(entries))
    with open(tmp_path / "d.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, ["pair", "row", "decision"])
        writer.writeheader()
        writer.writerows(entries)
    for name in ("d.json", "d.csv"):
        assert read_decisions(tmp_path / name, PAIRS).keep.tolist() == [True, False, False, True]


def test_decisions_saved_again_by_a_spreadsheet_say_the_same(tmp_path):
    """With semicolons, and with numbers that a table of floats made of the columns."""
    (tmp_path / "d.csv").write_text("pair;row;decision\n2.0;1.0;drop\n3.0;2.0;drop\n")
    assert read_decisions(tmp_path / "d.csv", PAIRS).keep.tolist() == [True, False, False, True]


def test_unusable_rows_that_a_file_loses_are_counted(tmp_path, robust_rlhf):
    (tmp_path / "p.csv").write_text("prompt,chosen,rejected\nHi,Yes.,No\nBye,So long,\nA,B?,C\n")
    (tmp_path / "d.csv").write_text("pair,row,decision\n1,1,drop\n2,3,drop\n")
    given = ("clean", tmp_path / "p.csv", tmp_path / "d.csv", "--out", tmp_path / "c.csv", "--skip-bad", "1")
    status, printed, errors = robust_rlhf(*given)
    assert status == 0, errors
    assert printed.startswith(
        "Kept 0 of 2 pairs. The file that is written has none.\n1 unusable row left out.\n"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is no JSON"),
        ("{}", "is no robust_rlhf_jax.decisions of version 1"),
        (told([], pairs=5), "is about 5 pairs, and pairs has 4"),
        (told(None), "has no list of decisions"),
        (told([3]), "decision 1: it needs pair, row and decision"),
        (told([entry(1, 2, "drop")]), "has no pair 1 in row 2"),
        (told([entry(9, 9, "drop")]), "has no pair 9 in row 9"),
        (told([entry("x", 1, "drop")]), "pair is 'x': give a number"),
        (told([entry(True, 1, "drop")]), "pair is 'True': give a number"),
        (told([entry(1, 1, "perhaps")]), "'perhaps' is neither keep nor drop"),
        (told([entry(1, 1, "drop")] * 2), "decision 2: pair 1 is decided twice"),
        ("row,decision\n1,drop\n", "has no column pair"),
        ("", "has no column pair"),
        ("pair,row,decision,decision\n1,1,drop,keep\n", "has more than one column decision"),
        ("pair,row,decision\n1,1\n", "'None' is neither keep nor drop"),
    ],
)
def test_bad_decisions_are_refused(tmp_path, text, sentence):
    (tmp_path / "d").write_text(text)
    with pytest.raises(ValueError, match=sentence):
        read_decisions(tmp_path / "d", PAIRS)


@pytest.mark.parametrize(
    "text",
    [
        "Pair, Row ,DECISION\n2,1,drop\n,,\n3,2,Drop\n",
        "pair,row,decision,check\n2,1,drop,\n3,2,drop,\n",
        "sep=,\npair,row,decision\n2,1,drop\n3,2,drop\n",
    ],
)
def test_headers_and_empty_lines_as_spreadsheets_leave_them(tmp_path, text):
    for encoding in ("utf-8-sig", "utf-16"):
        (tmp_path / "d.csv").write_text(text, encoding=encoding)
        assert read_decisions(tmp_path / "d.csv", PAIRS).keep.tolist() == [True, False, False, True]


def test_decisions_about_other_pairs_are_refused(tmp_path):
    """In shuffled rows, or beside other texts, a number names another pair."""
    path, _, _ = faulty_file(tmp_path, "identical", 0.1, n=40)
    pairs = read(path)
    checked = [entry(i + 1, i + 1, "drop") | {"check": pair_check(pairs, i)} for i in (3, 7)]
    (tmp_path / "d.json").write_text(told(checked, pairs=40))
    assert np.flatnonzero(~read_decisions(tmp_path / "d.json", pairs).keep).tolist() == [3, 7]
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[::-1]))
    with pytest.raises(ValueError, match=r"decision 1: pair 4 of .* is not the one that was audited"):
        read_decisions(tmp_path / "d.json", read(path))


def test_bytes_and_folders_are_refused(tmp_path):
    (tmp_path / "d").write_bytes(b"\xff\xfe\x00")
    for path, sentence in ((tmp_path / "d", "no text in UTF-8"), (tmp_path, "is a folder")):
        with pytest.raises(ValueError, match=sentence):
            read_decisions(path, PAIRS)


def test_a_missing_file_of_decisions_is_one_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.json does not exist: check the path\.$"):
        read_decisions(tmp_path / "none.json", PAIRS)


def test_the_command_writes_the_file_as_decided(tmp_path, robust_rlhf):
    rows = [{"prompt": f"q{i}", "chosen": f"good {i} answer", "rejected": f"bad, {i}"} for i in range(6)]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "d.json").write_text(
        told([entry(2, 2, "drop"), entry(5, 5, "drop"), entry(6, 6, "keep")], pairs=6)
    )
    status, printed, errors = robust_rlhf(
        "clean", tmp_path / "p.jsonl", tmp_path / "d.json", "--out", tmp_path / "c.jsonl"
    )
    assert status == 0, errors
    assert printed.startswith("Kept 4 of 6 pairs.\nWrote ")
    back = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert back == [rows[i] for i in (0, 2, 3, 5)]


@pytest.mark.parametrize(
    ("drop", "said"),
    [([1], "2 ties are among them: drop them,"), ([2], "1 tie is among them: drop it,"), ([2, 3], "")],
)
def test_ties_that_are_kept_are_counted(drop, said, tmp_path, robust_rlhf):
    """A trainer would take the first side of a tie for the better one."""
    rows = [
        {"prompt": f"q{i}", "chosen": f"good {i}", "rejected": f"bad, {i}", "tie": i in (1, 2)}
        for i in range(4)
    ]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "d.json").write_text(told([entry(pair, pair, "drop") for pair in drop]))
    given = ("clean", tmp_path / "p.jsonl", tmp_path / "d.json", "--out", tmp_path / "c.jsonl")
    status, printed, errors = robust_rlhf(*given)
    assert status == 0, errors
    assert printed.startswith(
        f"Kept {4 - len(drop)} of 4 pairs.\n{said}" if said else "Kept 2 of 4 pairs.\nWrote "
    )


@pytest.mark.parametrize(
    ("drop", "rows", "said"),
    [
        ([1], [0, 1, 2], "1 dropped pair left in, because other pairs of the row are kept."),
        ([1, 2], [1, 2], "1 kept pair left out, because other pairs of the row are dropped."),
        ([1, 2, 3], [1, 2], None),
        ([3, 4], [0, 2], "1 dropped pair left in"),
    ],
)
def test_rows_of_several_pairs_are_written_whole_or_not_at_all(drop, rows, said, tmp_path, robust_rlhf):
    """The first row has three pairs, the others one: of three, two must be dropped before the row is."""
    lines = ["t_a,t_b,t_c,t_d,u_a,u_b,u_c,u_d,choice", "1,2,3,4,5,6,7,9,a", "1,2,,,3,4,,,a", "2,1,,,4,2,,,b"]
    (tmp_path / "p.csv").write_text("\n".join(lines) + "\n")
    owners = [1, 1, 1, 2, 3]
    (tmp_path / "d.json").write_text(told([entry(pair, owners[pair - 1], "drop") for pair in drop], pairs=5))
    status, printed, errors = robust_rlhf(
        "clean", tmp_path / "p.csv", tmp_path / "d.json", "--out", tmp_path / "c.csv"
    )
    assert status == 0, errors
    assert ("whole or not at all" in printed) == (said is not None)
    assert said is None or said in " ".join(printed.split())
    back = (tmp_path / "c.csv").read_text().split("\n")[1:-1]
    assert back == [lines[1 + row] for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("dropped", [False, True])
def test_the_list_of_suspects_is_a_file_of_decisions(tmp_path, dropped, monkeypatch):
    """It follows the advice until someone edits the column; what issues flag is marked and drawn even if it is kept."""
    path, faulty, _ = faulty_file(tmp_path, "identical", 0.1, n=40)
    pairs = read(path)
    findings = find(pairs, made_up_fit(pairs))
    out = np.flatnonzero(faulty)
    advice = Advice(
        "drop" if dropped else "leave", out[: dropped * len(out)], out[:0], len(out), None, ("Said.",)
    )
    result = findings.held_out.audit
    audited = AuditedFile("pairs.jsonl", pairs, result, AuditConfig(repeats=1), 1.0, findings, advice)
    drawn = []
    monkeypatch.setattr(
        plot, "plot_suspicion", lambda *args: drawn.append({*np.flatnonzero(args[-1]).tolist()})
    )
    write_files(tmp_path, audited)
    suspects = tmp_path / "suspects.csv"
    assert (
        read_decisions(suspects, pairs).keep.tolist() == (~faulty if dropped else np.ones(40, bool)).tolist()
    )
    with open(suspects, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {int(row["row"]) for row in rows if row["flagged"] == "1"} == set(out + 1)
    assert drawn == [set(out)]
    assert all(row["check"] == pair_check(pairs, int(row["pair"]) - 1) for row in rows)
