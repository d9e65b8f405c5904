"""Numbers of the winner and the loser of each pair, and what looks like them; `test_wild.py` reads the files, too."""

import pytest
from wild import stores, worlds
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import load_pairs


@each
def of_winners(i, item):
    sides = {"winner": item.chosen, "loser": item.rejected}
    return {f"{side}_x{k}": cell for side, cells in sides.items() for k, cell in enumerate(cells)}


CASES = (Case("numbers_of_winners", of_winners, stores.table(), world=worlds.vectors, facts=("row",)),)


def read(folder, header, *rows, **reading):
    file = folder / "pairs.csv"
    file.write_text("\n".join((header, *rows)) + "\n")
    return load_pairs(file, **reading)


@pytest.mark.parametrize(
    "header",
    [
        "winner_price,winner_time,loser_price,loser_time",
        "Winner price,Winner time,Loser price,Loser time",
        "price_preferred,time_preferred,price_other,time_other",
        "selected.price,selected.time,unselected.price,unselected.time",
        "price_chosen,time_chosen,price_rejected,time_rejected",
        "chosen.price,chosen.time,rejected.price,rejected.time",
    ],
)
def test_the_winner_is_chosen(tmp_path, header):
    pairs = read(tmp_path, header, "1,9,2,3", "4,5,6,8")
    assert (pairs.schema, pairs.names) == ("numbers of winners and losers", ("price", "time"))
    assert pairs.preferred_differences().tolist() == [[-1, 6], [-2, -3]]
    assert (pairs.labels == 1).all()


def test_a_bad_cell_is_named_as_the_file_has_it(tmp_path):
    header, rows = "winner_price,loser_price", ("1,2", "NA,4")
    with pytest.raises(ValueError, match=r"column winner_price is not numeric \(row 2 holds 'NA'\)"):
        read(tmp_path, header, *rows)
    assert read(tmp_path, header, *rows, skip_bad=1).n_pairs == 1


@pytest.mark.parametrize(
    "header", ["winner_price,time", "winner_votes,loser_votes", "won_games,lost_games", "winner_id,loser_id"]
)
def test_columns_of_one_row_are_no_sides(tmp_path, header):
    with pytest.raises(ValueError, match="has no column chosen_<name>"):
        read(tmp_path, header, "1,2", "3,4")
