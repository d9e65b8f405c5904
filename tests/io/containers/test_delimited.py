"""CSV and TSV files: cells as they are, whatever separates them and in whatever letters they are written."""

import pytest

from robust_rlhf_jax.io import export, load_pairs, read_table
from robust_rlhf_jax.io.containers import delimited

TEXTS = [("prompt", "chosen", "rejected"), ("q1", "Süß, nicht?", "=nein"), ("q2", "- eins\n- zwei", "x;y\tz")]


def written(path, delimiter, encoding, ends="\n"):
    import csv

    with open(path, "w", newline="", encoding=encoding) as file:
        csv.writer(file, delimiter=delimiter, lineterminator=ends).writerows(TEXTS)
    return path


def test_what_is_written_is_what_was_read(tmp_path):
    source, out = tmp_path / "a.csv", tmp_path / "b.csv"
    source.write_text('id,text\n007,"a, ""b""\nc"\n008,=1\n009,x\n')
    delimited.write(read_table(source).source, out, [0, 1], {"keep": [True, False]})
    assert out.read_text() == 'id,text,keep\n007,"a, ""b""\nc",True\n008,=1,False\n'


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_cells_keep_their_quotation_marks(tmp_path, ends):
    """Databases tell an empty text from none by them."""
    lines = [
        '"prompt","chosen","rejected","n"',
        '"q1","a ""b""","c",""',
        '"q2","d\ne","f",',
        '"q3","g","h",7',
    ]
    source = tmp_path / "a.csv"
    source.write_bytes((ends.join(lines) + ends).encode())
    table = read_table(source)
    delimited.write(table.source, tmp_path / "b.csv", [0, 1], {})
    assert (tmp_path / "b.csv").read_bytes().decode() == ends.join(lines[:3]) + ends
    delimited.write(table.source, tmp_path / "c.csv", [0, 2], {"why": ["x, y", 1]})
    added = [f"{lines[0]},why", f'{lines[1]},"x, y"', f"{lines[3]},1"]
    assert (tmp_path / "c.csv").read_bytes().decode() == ends.join(added) + ends


@pytest.mark.parametrize(
    ("name", "delimiter"), [("a.csv", ","), ("a.csv", ";"), ("a.csv", "\t"), ("a.tsv", "\t"), ("a.csv", "|")]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_every_delimiter_and_encoding_is_found_and_kept(tmp_path, name, delimiter, encoding, ends):
    path = written(tmp_path / name, delimiter, encoding, ends)
    pairs = load_pairs(path, featuriser="format")
    assert pairs.texts.chosen == [row[1] for row in TEXTS[1:]]
    assert pairs.texts.rejected == [row[2] for row in TEXTS[1:]]
    out = tmp_path / f"out{path.suffix}"
    export(pairs, out, {"keep": [True, False]})
    content = out.read_bytes().decode(encoding)
    assert content.splitlines()[0] == delimiter.join([*TEXTS[0], "keep"])
    assert content.endswith(f"{delimiter}False{ends}")
    assert read_table(out).cells("chosen") == [row[1] for row in TEXTS[1:]]


@pytest.mark.parametrize(("delimiter", "ends"), [(";", "\r\n"), (",", "\n"), ("\t", "\r\n")])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_spreadsheet_s_line_before_the_header_is_obeyed_and_kept(tmp_path, delimiter, ends, encoding):
    path, out = written(tmp_path / "a.csv", delimiter, encoding, ends), tmp_path / "out.csv"
    plain = path.read_bytes().decode(encoding)
    path.write_bytes(f"sep={delimiter}{ends}{plain}".encode(encoding))
    pairs = load_pairs(path, featuriser="format")
    assert pairs.texts.chosen == [row[1] for row in TEXTS[1:]]
    export(pairs, out, {"keep": [True, False]})
    content = out.read_bytes().decode(encoding)
    assert content.startswith(f"sep={delimiter}{ends}{delimiter.join(TEXTS[0])}{delimiter}keep{ends}")
    assert content.count("sep=") == 1


HEADS = ("prompt,chosen,rejected", '"prompt","chosen","rejected"')
ROWS = ('"Q1","Say \\"yes\\" now","No"', '"Q1","Say \\"yes, please\\" now","No"')
ESCAPED = [
    "\n".join([head, row, '"Q2","First, do it","\\frac{a}{b}"', '"Q3","Fine \\"","Nope"', ""])
    for head, row in zip(HEADS, ROWS, strict=True)
]


@pytest.mark.parametrize("text", ESCAPED)
def test_quotation_marks_after_a_backslash_are_read_and_written_so(tmp_path, text):
    """As Spark and databases write them."""
    path, out = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text(text)
    pairs = load_pairs(path, featuriser="format")
    assert pairs.texts.chosen[0] in ('Say "yes" now', 'Say "yes, please" now')
    assert (pairs.texts.chosen[2], pairs.texts.rejected[1]) == ('Fine "', "\\frac{a}{b}")
    export(pairs, out, {"keep": [True, False, True]})
    again = load_pairs(out, featuriser="format")
    assert again.texts == pairs.texts
    assert '\\"yes' in out.read_text()


def test_a_line_break_in_a_cell_is_no_new_row(tmp_path):
    """Though every line has as many commas as the header."""
    path = tmp_path / "a.csv"
    path.write_text('prompt,chosen,rejected\nQ1,"First, boil it.\nThen, pour it.",No\nQ2,Fine then,Nope\n')
    pairs = load_pairs(path, featuriser="format")
    assert pairs.texts.chosen == ["First, boil it.\nThen, pour it.", "Fine then"]
    path.write_text('"prompt","chosen","rejected"\n"Q1","First, boil.\nThen, pour.","No"\n')
    assert load_pairs(path, featuriser="format").texts.rejected == ["No"]


def test_latin_1_is_said_and_damaged_utf_8_is_not_taken_for_it(tmp_path):
    path = written(tmp_path / "a.csv", ",", "latin-1")
    assert "Latin-1" in " ".join(read_table(path).notes)
    assert read_table(path, encoding="latin-1").cells("chosen")[0] == "Süß, nicht?"
    good = written(tmp_path / "b.csv", ",", "utf-8").read_bytes()
    (tmp_path / "b.csv").write_bytes(good.replace("ü".encode(), b"\xfc"))
    with pytest.raises(ValueError, match=r"cannot be read as UTF-8 .* name its --encoding"):
        read_table(tmp_path / "b.csv")
    assert read_table(tmp_path / "b.csv", encoding="latin-1").n_rows == 2
    with pytest.raises(ValueError, match="--encoding nonsense is unknown"):
        read_table(tmp_path / "b.csv", encoding="nonsense")


def test_an_index_without_a_name_is_kept(tmp_path):
    path, out = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text(",prompt,chosen,rejected\n0,p,x,y\n1,q,z,- w\n")
    pairs = load_pairs(path, featuriser="format")
    export(pairs, out, {})
    assert out.read_text() == path.read_text()


def test_a_row_that_is_cut_short_is_said(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('prompt,chosen,rejected\np,x,y\nq,z,"w and')
    with pytest.raises(ValueError, match=r"row 2 is cut short: .*--skip-bad 1"):
        load_pairs(path)
    assert load_pairs(path, skip_bad=1, featuriser="format").n_pairs == 1
    path.write_text('prompt,chosen,rejected\np,x,y\nq,"z\n' + "a,b,c\n" * 1000)
    with pytest.raises(ValueError, match="quotation mark in line 3 never ends"):
        load_pairs(path)


def texts_of(path, text):
    path.write_text(text, encoding="utf-8")
    table = read_table(path)
    return [table.cells(name) for name in table.names], table


def test_an_escaped_mark_in_a_cell_without_quotation_marks_is_one(tmp_path):
    """As pandas writes with doublequote=False: cells without commas stay as they are."""
    (_, chosen, rejected), table = texts_of(
        tmp_path / "a.csv",
        'prompt,chosen,rejected\nq0,he said \\"alpha\\" twice,"no, \\"pi\\" never"\nq1,x,y\n',
    )
    assert chosen[0] == 'he said "alpha" twice'
    assert rejected[0] == 'no, "pi" never'
    delimited.write(table.source, tmp_path / "b.csv", [0, 1], {"keep": [None, True]})
    assert read_table(tmp_path / "b.csv").cells("chosen")[0] == chosen[0]
    assert read_table(tmp_path / "b.csv").cells("keep")[0] == ""


def test_long_cells_are_quoted_as_others_are(tmp_path):
    long = 'he said ""x"", ' + "a" * 200_000
    (_, chosen, _), _ = texts_of(tmp_path / "a.csv", f'prompt,chosen,rejected\nq,"{long}","no"\np,"x","y"\n')
    assert chosen == [long.replace('""', '"'), "x"]


def test_one_short_row_does_not_make_quotation_marks_letters(tmp_path):
    rows = "".join(f'"q{i}","x {i}","y {i}"\n' for i in range(6))
    (_, chosen, _), table = texts_of(
        tmp_path / "a.csv", f'prompt,chosen,rejected\n{rows}"the long, prompt","only chosen"\n'
    )
    assert chosen[:6] == [f"x {i}" for i in range(6)]
    assert [(cell.row, cell.reason) for cell in table.bad] == [(6, "has 2 cells, the header 3")]


def test_one_ragged_or_cut_row_does_not_hide_how_marks_are_escaped(tmp_path):
    rows = "".join(f'"q{i}","say \\"x, {i}\\" now","y {i}"\n' for i in range(6))
    for last in ('"q","a"\n', '"q","a","cut he'):
        (_, chosen, _), table = texts_of(tmp_path / "a.csv", f"prompt,chosen,rejected\n{rows}{last}")
        assert chosen[:6] == [f'say "x, {i}" now' for i in range(6)]
        assert len(table.bad) == 1


def test_a_quoted_line_before_the_header_is_obeyed(tmp_path):
    (_, chosen, _), _ = texts_of(tmp_path / "a.csv", '"sep=;"\r\nprompt;chosen;rejected\r\nq;x;y\r\n')
    assert chosen == ["x"]


def test_one_broken_row_is_bad_and_the_others_are_read(tmp_path):
    rows = [f'"q{i}","a ""x"" {i}","b{i}"' for i in range(5)]
    for broken, at in (('"q","he said "hi" twice","n"', 2), ('"q4" ,"x","y"', 4)):
        text = "\n".join(["prompt,chosen,rejected", *rows[:at], broken, *rows[at:], ""])
        (_, chosen, _), table = texts_of(tmp_path / "a.csv", text)
        assert [c for c in chosen if c is not None] == [f'a "x" {i}' for i in range(5)]
        assert [(cell.row, "quotation mark" in cell.reason) for cell in table.bad] == [(at, True)]


def test_a_mark_inside_a_cell_opens_nothing(tmp_path):
    """Five inches."""
    rows = "".join(f'q{i},a {i}" pipe,b\n' for i in range(250))
    (_, chosen, _), table = texts_of(tmp_path / "a.csv", "prompt,chosen,rejected\n" + rows)
    assert chosen[249] == 'a 249" pipe'
    assert not table.bad


def test_escaped_cells_may_hold_semicolons_and_other_ends_of_lines(tmp_path):
    text = 'prompt;chosen;rejected\nq;"x \\"a; b\\" y";r\np;"u\u2028v";w\n'
    (_, chosen, _), _ = texts_of(tmp_path / "a.csv", text)
    assert chosen == ['x "a; b" y', "u\u2028v"]


@pytest.mark.parametrize(
    "first",
    [",chosen,,rejected,", ";chosen;;rejected;", ",Option A,,Option B,,"],
    ids=["commas", "semicolons", "open"],
)
def test_names_in_two_lines_are_asked_for_in_one(tmp_path, first):
    """As spreadsheets write a name that stands above several columns; the prices below were texts of the sides."""
    mark = first[0]
    rows = [("person", "price", "time", "price", "time"), *((i, 20 + i, 7, 30, i) for i in range(6))]
    more = ("choice", *"ABABAB") if "A" in first else ()
    lines = [first, *(mark.join(map(str, (*row, *more[i : i + 1]))) for i, row in enumerate(rows))]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(
        ValueError, match=r"a\.csv names its columns in two lines, of which the second holds 'person', "
    ):
        load_pairs(tmp_path / "a.csv")
    with pytest.raises(ValueError, match="names its columns in two lines"):
        next(delimited.read_batches(tmp_path / "a.csv", {}, 4))


def test_words_in_columns_without_a_name_are_cells(tmp_path):
    (tmp_path / "a.csv").write_text("chosen_x,,rejected_x,\n1,few,2,many\n3,many,5,few\n")
    assert load_pairs(tmp_path / "a.csv").differences().tolist() == [[-1], [-2]]


def test_names_of_columns_that_come_again_are_no_pair(tmp_path):
    """Files that were put one after another."""
    (tmp_path / "a.csv").write_text("prompt,chosen,rejected\nq1,x,y\nprompt,chosen,rejected\nq2,u,v\n")
    with pytest.raises(ValueError, match="row 2 repeats the names of the columns: mend or drop that row"):
        load_pairs(tmp_path / "a.csv", featuriser="format")
    assert load_pairs(tmp_path / "a.csv", featuriser="format", skip_bad=1).texts.chosen == ["x", "u"]


@pytest.mark.parametrize(
    ("total", "numbers"),
    [("Total", "15,9"), ("Grand total", "15.0,9"), ("Mittelwert:", "3.75,2.25"), ("mean", "3.8,2.2")],
)
def test_a_row_that_sums_up_those_above_is_no_pair(tmp_path, total, numbers):
    (tmp_path / "a.csv").write_text(
        f"person,chosen_x,rejected_x\np1,1,2\np2,3,1\np1,4,4\np3,7,2\n{total},{numbers}\n"
    )
    with pytest.raises(ValueError, match="row 5 sums up the rows above: mend or drop that row"):
        load_pairs(tmp_path / "a.csv")
    assert len(load_pairs(tmp_path / "a.csv", skip_bad=1).rows) == 4


@pytest.mark.parametrize(
    "rows",
    [
        "prompt,chosen,rejected,turn\nq1,one,two,1\nq2,two,three,1\nq3,Mean,mode,1\n",
        "frage,antwort_a,antwort_b,wahl,runde\nf1,ja,nein,a,1\nf2,gut,schlecht,b,2\nf3,Summe,Produkt,a,3\n",
        "brand_a,price_a,brand_b,price_b,choice\nEsso,1.5,Aral,1.7,a\nAral,1.7,Total,1.5,b\nTotal,1.6,Esso,1.6,a\n",
    ],
)
def test_an_answer_or_a_brand_may_be_called_as_totals_are(tmp_path, rows):
    (tmp_path / "a.csv").write_text(rows)
    assert load_pairs(tmp_path / "a.csv", featuriser="format").n_pairs == 3


@pytest.mark.parametrize("nothing", ["n/a", "NA", "-", "<NA>"])
def test_missing_cells_of_the_first_row_are_no_names(tmp_path, nothing):
    """Beside an unnamed index and an unnamed column of notes."""
    (tmp_path / "a.csv").write_text(
        f",,score_a,score_b,response_a,response_b,winner\nx,{nothing},{nothing},1,t u,v w,a\n"
        "y,2,3,1,t x,v y,b\nz,3,4,2,ts u,vs w,a\n"
    )
    assert load_pairs(tmp_path / "a.csv", featuriser="format").n_pairs == 3


@pytest.mark.parametrize("last", ["Total,15,8", "p4,15,9", "Total,,"])
def test_a_row_of_other_numbers_is_a_pair_or_misses_some(tmp_path, last):
    """A brand or a person may be called Total."""
    (tmp_path / "a.csv").write_text(f"person,chosen_x,rejected_x\np1,1,2\np2,3,1\np1,4,4\np3,7,2\n{last}\n")
    assert "sums up" not in "".join(cell.reason for cell in load_pairs(tmp_path / "a.csv", skip_bad=1).bad)
