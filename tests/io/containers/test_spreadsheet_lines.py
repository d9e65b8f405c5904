"""What programs write around the rows of a CSV file: second lines of names, numbers of rows, emptied rows."""

import pytest

from robust_rlhf_jax.io import export, load_pairs, read_table
from robust_rlhf_jax.io.containers import delimited

HEADER = "prompt,response_a,response_b,winner"
ROWS = [f"p{i},x {i},y {i},{'AB'[i % 2]}" for i in range(6)]
SIDES = [True, False] * 3


def written(folder, *lines, ends="\r\n"):
    (folder / "a.csv").write_bytes((ends.join(lines) + ends).encode())
    return folder / "a.csv"


def first_won(path, **flags):
    return (~load_pairs(path, featuriser="format", **flags).swapped).tolist()


def of_qualtrics(rows):
    imported = ",".join(f'"{{""ImportId"":""{name}""}}"' for name in HEADER.split(","))
    return [HEADER, 'Prompt,Response A,Response B,"Which, in all, is better?"', imported, *rows]


def of_survey_monkey(rows):
    return [
        f"Respondent ID,{HEADER}",
        ",Open-Ended Response,,,Response",
        *(f"{118 + i},{row}" for i, row in enumerate(rows)),
    ]


@pytest.mark.parametrize(("program", "lines"), [(of_qualtrics, "2 lines"), (of_survey_monkey, "1 line")])
def test_further_lines_of_names_are_left_out(tmp_path, program, lines):
    path = written(tmp_path, *program(ROWS))
    assert first_won(path) == SIDES
    table = read_table(path)
    assert f"Left out below the names of the columns: {lines} of a survey's program." in table.notes
    assert [*delimited.lines(table.source)] == [*range(len(program([])) + 1, len(program(ROWS)) + 1)]
    assert next(delimited.read_batches(path, {}, 4)).n_rows == 4
    export(load_pairs(path, featuriser="format"), tmp_path / "b.csv", {"n": [*range(6)]})
    kept = program([row + f",{i}" for i, row in enumerate(ROWS)])[len(program([])) :]
    assert (tmp_path / "b.csv").read_text().splitlines() == [program([])[0] + ",n", *kept]


def test_numbers_of_two_sides_below_further_lines_of_names_are_read(tmp_path):
    head = ["price_1,price_2,time_1,time_2,choice", "Price,Price,Time,Time,Which?"]
    imported = ",".join(['"{""ImportId"":""Q""}"'] * 5)
    rows = [f"{i},7,{i % 3},1,{1 + i % 2}" for i in range(6)]
    assert (~load_pairs(written(tmp_path, *head, imported, *rows)).swapped).tolist() == SIDES


def test_a_row_without_a_respondent_may_be_a_row(tmp_path):
    path = written(tmp_path, f"Respondent ID,{HEADER}", *("," + row for row in ROWS))
    assert first_won(path) == SIDES


@pytest.mark.parametrize("mark", [",", ";", "\t", " "])
def test_numbers_of_rows_without_a_name_are_no_column(tmp_path, mark):
    """As R's `write.table` writes them."""
    lines = [mark.join(f'"{cell}"' for cell in line.split(",")) for line in (HEADER, *ROWS)]
    numbered = [lines[0], *(f'"{3 * i + 1}"{mark}{line}' for i, line in enumerate(lines[1:]))]
    path = written(tmp_path, *numbered)
    assert first_won(path) == SIDES
    assert read_table(path).names == ("", *HEADER.split(","))
    export(load_pairs(path, featuriser="format"), tmp_path / "b.csv", {"n": [*range(6)]})
    assert (tmp_path / "b.csv").read_text().splitlines()[1] == f"{numbered[1]}{mark}0"
    assert first_won(tmp_path / "b.csv") == SIDES


@pytest.mark.parametrize("name", ["", '"1",', '"n",'])
def test_a_comma_in_a_text_makes_no_number_of_a_row(tmp_path, name):
    """Nor do names of rows that come again, or words."""
    rows = [f"{name or i}p,x, {i},y,{'AB'[i % 2]}" for i in range(6)]
    path = written(tmp_path, HEADER, *rows)
    with pytest.raises(ValueError, match=r"row 1 has [56] cells, the header 4 \(6 of 6 rows are"):
        load_pairs(path, featuriser="format")


@pytest.mark.parametrize("end", [(",,,",), (",,,", "", ",,,", ",,"), ("",)])
def test_emptied_rows_at_the_end_are_none(tmp_path, end):
    path = written(tmp_path, HEADER, *ROWS, *end)
    assert first_won(path) == SIDES
    export(load_pairs(path, featuriser="format"), tmp_path / "b.csv", {})
    assert (tmp_path / "b.csv").read_text().splitlines() == [HEADER, *ROWS]


def test_an_empty_row_between_others_misses_its_cells(tmp_path):
    path = written(tmp_path, HEADER, *ROWS[:3], ",,,", *ROWS[3:])
    with pytest.raises(ValueError, match="row 4"):
        load_pairs(path, featuriser="format")


def test_spaces_between_quoted_names_part_cells(tmp_path):
    """As R's `write.table` writes them without numbers of rows; cells of an odd row are told of."""
    lines = [" ".join(f'"{cell}"' for cell in line.split(",")) for line in (HEADER, *ROWS)]
    path = written(tmp_path, *lines)
    assert first_won(path) == SIDES
    export(load_pairs(path, featuriser="format"), tmp_path / "b.csv", {"n": [*range(6)]})
    assert (tmp_path / "b.csv").read_text().splitlines()[1] == f"{lines[1]} 0"
    with pytest.raises(ValueError, match="row 7 has 2 cells, the header 4"):
        load_pairs(written(tmp_path, *lines, '"p" "x"'), featuriser="format")


def test_spaces_between_names_alone_are_asked_about(tmp_path):
    path = written(tmp_path, '"prompt" "chosen" "rejected"', '"p","x","y"')
    with pytest.raises(
        ValueError, match="in the first line letters follow a closing quotation mark: write commas"
    ):
        load_pairs(path, featuriser="format")
