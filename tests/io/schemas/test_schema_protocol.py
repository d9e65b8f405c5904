"""What every schema is held to: files of its kind are known as such, by it before others, and its place is kept.

`test_wild.py` and its neighbours read, turn and export the same files.
"""

import pytest
import wild

from robust_rlhf_jax.io import SCHEMAS
from robust_rlhf_jax.io.reading import read_table

NAMES = [schema.NAME for schema in SCHEMAS]


@pytest.fixture(scope="module")
def recognised(tmp_path_factory):
    """Schema -> invented files that it is the first to recognise, of those that the fast tests read."""
    found = {}
    for case in (wild.BY_NAME[name] for name in wild.few_fast() if isinstance(name, str)):
        try:
            table = read_table(case.write(tmp_path_factory.mktemp("files")))
        except ValueError:  # a file that a reader must ask about, before its columns matter
            continue
        schema = next(schema for schema in SCHEMAS if schema.recognise(table))
        found.setdefault(schema.NAME, []).append(case.name)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_some_file_is_of_its_kind(name, recognised):
    assert recognised.get(name)


def test_names_are_given_once_and_what_takes_every_table_comes_last():
    assert len(set(NAMES)) == len(NAMES)
    assert NAMES[:3] == ["Arena with three winner columns", "Label Studio", "Argilla"]
    assert NAMES[-1] == "columns"


@pytest.mark.parametrize("schema", SCHEMAS, ids=NAMES)
def test_it_says_what_it_reads(schema):
    assert schema.__doc__
    assert schema.NAME[0].isalpha()
