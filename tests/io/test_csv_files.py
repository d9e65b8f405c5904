import pytest

from robust_rlhf_jax.io import csv_files


@pytest.mark.parametrize(
    ("cell", "safe"),
    [("=1+1", "'=1+1"), ("-1.5", "-1.5"), ("@x", "'@x"), ("-cmd", "'-cmd"), ("plain", "plain"), ("", "")],
)
def test_formulas_become_texts_and_numbers_stay(cell, safe):
    assert csv_files.without_formula(cell) == safe


def test_what_is_written_is_what_was_read(tmp_path):
    source, out = tmp_path / "a.csv", tmp_path / "b.csv"
    source.write_text('id,text\n007,"a, ""b""\nc"\n008,=1\n009,x\n')
    csv_files.write(source, out, [0, 1], {"keep": [True, False]})
    assert out.read_text() == 'id,text,keep\n007,"a, ""b""\nc",True\n008,\'=1,False\n'
