"""A file in which something was changed is not read as if nothing had been."""

import pytest
from wild import BY_NAME, CASES, few_fast, reading, worlds
from wild.truths import read_votes

from robust_rlhf_jax.io import load_pairs

READABLE = few_fast(case for case in CASES if case.flags is not None)


def read(case, folder, items=None, shift=""):
    folder.mkdir()
    return load_pairs(case.write(folder, items, shift), featuriser="format", **reading(case.flags))


@pytest.mark.parametrize("name", READABLE)
def test_swapped_sides_and_turned_labels_are_read_as_such(tmp_path, name):
    case = BY_NAME[name]
    for change in (worlds.swapped, worlds.negated):
        items = change(case.items())
        if items == case.items() or (case.world is worlds.vectors and change is worlds.negated):
            continue
        pairs = read(case, tmp_path / change.__name__, items)
        assert case.differs(pairs, items) == ""
        assert case.differs(pairs) != ""


def everything(pairs) -> tuple:
    """All that a reading says of preferences."""
    lists = (getattr(pairs, name) for name in ("ids", "groups", "weights"))
    features = pairs.differences().tolist()
    return read_votes(pairs), features, *(None if one is None else list(one) for one in lists)


# Cells that say the same of each vote.
SAME_EVERYWHERE = ("preference.responses.status",)


@pytest.mark.parametrize("name", READABLE)
def test_each_column_is_named_as_ignored_or_matters(tmp_path, name):
    """Each column alone is moved by one row."""
    case = BY_NAME[name]
    rows = case.encode(case.items())
    before = read(case, tmp_path / "before")
    for i, column in enumerate(rows[0]):
        cells = [row[column] for row in rows]
        if cells == cells[1:] + cells[:1] or column in (*before.unused, *SAME_EVERYWHERE):
            continue
        try:
            after = read(case, tmp_path / str(i), shift=column)
        except ValueError:
            continue
        assert everything(after) != everything(before), column
