"""Numbers with a decimal comma between semicolons; `test_wild.py` reads these files, too."""

import pytest
from wild import stores, worlds
from wild.arenas import word
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import load_pairs


def comma(number) -> str:
    return str(number).replace(".", ",")


@each
def of_two_sides(i, item):
    sides = {f"{what}_{side}": comma(values[k]) for side, values in (("a", item.a), ("b", item.b))
             for k, what in enumerate(("preis", "dauer", "wechsel", "komfort", "verspätung"))}  # fmt: skip
    return sides | {"Wahl": word(item.vote, "A", "B", "gleich")}


@each
def chosen_first(i, item):
    return {f"{side}_{k}": comma(values[k]) for side, values in (("chosen", item.chosen), ("rejected", item.rejected))
            for k in range(5)}  # fmt: skip


VOTED = {"world": worlds.voted_vectors, "facts": ("row",)}
CASES = (
    Case("decimal_commas_of_two_sides", of_two_sides, stores.table("pairs.csv", ";"), **VOTED),
    Case(
        "decimal_commas_chosen",
        chosen_first,
        stores.table("pairs.csv", ";"),
        world=worlds.vectors,
        facts=("row",),
    ),
)


def written(path, cells, sep=";", name="price", label="choice"):
    lines = [sep.join((f"{name}_a", f"{name}_b", "km_a", "km_b", label))]
    lines += [sep.join((a, b, "3", "4", "ab"[i % 2])) for i, (a, b) in enumerate(cells)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("n", [20, 5000])
@pytest.mark.parametrize("name", ["pairs.csv", "pairs.tsv"])
def test_commas_between_semicolons_are_decimal_and_said_to_be(tmp_path, n, name):
    found = load_pairs(written(tmp_path / name, [(f"{i},5", f"-{i},25") for i in range(n)]))
    price = found.names.index("price")
    assert found.chosen[:4, price].tolist() == [0.5, -1.25, 2.5, -3.25]
    assert found.rejected[:4, price].tolist() == [-0.25, 1.5, -2.25, 3.5]
    assert any(
        "The commas in price_a, price_b are read as decimal points" in note
        for note in found.description.notes
    )


@pytest.mark.parametrize(
    "cells",
    [
        [(f"{i + 1},250", f"{i + 2},500") for i in range(20)],  # thousands, perhaps
        [(("1,2", "2,1")[i % 2], "2,1") for i in range(20)],  # votes or ranks of two
    ],
)
def test_commas_that_may_be_something_else_are_refused(tmp_path, cells):
    with pytest.raises(ValueError, match="write numbers with a decimal point"):
        load_pairs(written(tmp_path / "pairs.csv", cells))


def test_commas_between_tabs_are_refused(tmp_path):
    with pytest.raises(ValueError, match="write numbers with a decimal point"):
        load_pairs(written(tmp_path / "pairs.tsv", [(f"{i},5", f"{i},25") for i in range(20)], "\t"))


def test_one_side_without_a_comma_has_the_same_unit(tmp_path):
    found = load_pairs(written(tmp_path / "pairs.csv", [(f"{i},5", f"{i}") for i in range(20)]))
    first = found.names.index("price")
    gaps = (found.chosen - found.rejected)[:, first]
    assert {*abs(gaps).tolist()} == {0.5}
