"""One choice a row; `test_wild.py` and its neighbours read the files of `CASES`, too."""

import numpy as np
import pytest
from wild import stores, worlds
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import Columns, describe, load_pairs

FEATURES = ("price", "time", "changes", "comfort", "delay")
VOTED = {"world": worlds.voted_vectors, "facts": ("row",)}


def _both(item, name):
    """The features of both options, bus and car, whose columns `name` calls."""
    both = (("bus", item.a), ("car", item.b))
    return {name(feature, option): values[k] for k, feature in enumerate(FEATURES) for option, values in both}


@each
def by_name(i, item):
    return {"trip": i} | _both(item, "{}_{}".format) | {"choice": "bus" if item.vote > 0 else "car"}


@each
def by_name_before(i, item):
    named = _both(item, lambda feature, option: f"{option.upper()}.{feature}")
    return named | {"CHOICE": "Bus" if item.vote > 0 else "Car"}


@each
def by_number(i, item):
    return {"choice": 1 if item.vote > 0 else 2} | _both(item, "{} {}".format)


CASES = (
    Case("wide_choices", by_name, stores.table(), **VOTED),
    Case("wide_choices_before", by_name_before, stores.table(), **VOTED),
    Case(
        "wide_choices_by_number", by_number, stores.table(), **VOTED, refused="--alternatives bus car",
        flags={"alternatives": ("bus", "car")},
    ),
)  # fmt: skip


def _written(tmp_path, lines, name="choices.csv"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return path


THREE = ["time_1,time_2,time_3,cost_1,cost_2,cost_3,choice", "1,2,3,30,20,10,2", "4,5,6,60,50,40,3"]


@pytest.mark.parametrize(
    "named",
    [lambda o, f: f"{f}_{o}", lambda o, f: f"{f}{o}", lambda o, f: f"{f} {'xyz'[o - 1]}", lambda o, f: f"alt{o}_{f}"],
)  # fmt: skip
def test_each_option_that_was_not_chosen_makes_a_pair(named, tmp_path):
    header = ",".join(named(o, f) for f in ("time", "cost") for o in (1, 2, 3))
    names = [named(o, "").strip("_ ") for o in (1, 2, 3)]
    rows = [",".join([*row.split(",")[:6], names[int(row[-1]) - 1]]) for row in THREE[1:]]
    found = load_pairs(_written(tmp_path, [header + ",choice", *rows]))
    assert [name.strip("_ ") for name in found.names] == ["time", "cost"]
    assert found.chosen.tolist() == [[2, 20], [2, 20], [6, 40], [6, 40]]
    assert found.rejected.tolist() == [[1, 30], [3, 10], [4, 60], [5, 50]]
    assert np.asarray(found.rows).tolist() == [0, 0, 1, 1]
    assert len(set(np.asarray(found.groups)[[0, 1]])) == 1


@pytest.mark.parametrize("first", [0, 1])
def test_numbers_of_named_options_are_asked_about(first, tmp_path):
    rows = [f"{t},{t + 5},{t % 7},{2 * t},3,4,{first + t % 3}" for t in range(12)]
    path = _written(tmp_path, ["CAR_TT,BUS_TT,RAIL_TT,CAR_CO,BUS_CO,RAIL_CO,CHOICE", *rows])
    with pytest.raises(ValueError, match="by --alternatives CAR BUS RAIL"):
        load_pairs(path)
    found = load_pairs(path, columns=Columns(alternatives=("CAR", "BUS", "RAIL")))
    assert found.names == ("TT", "CO")
    assert found.chosen[:4].tolist() == [[0, 0], [0, 0], [6, 3], [6, 3]]
    other = load_pairs(path, columns=Columns(alternatives=("RAIL", "BUS", "CAR")))
    assert other.chosen[0].tolist() == [0, 4]


def test_alternatives_are_those_that_columns_are_called_after(tmp_path):
    rows = [f"{t},{t + 5},{t % 7},1,{1 + t % 2}" for t in range(30)]
    path = _written(tmp_path, ["car_time,bus_time,car_cost,bus_cost,choice", *rows])
    assert load_pairs(path, columns=Columns(alternatives=("Car", "BUS"))).chosen[1, 0] == 6
    with pytest.raises(ValueError, match="--alternatives car plane is for columns that are called after all"):
        load_pairs(path, columns=Columns(alternatives=("car", "plane")))
    path = _written(tmp_path, ["chosen_time,rejected_time", "1,2", "3,4"])
    with pytest.raises(ValueError, match="here columns are not called so"):
        load_pairs(path, columns=Columns(alternatives=("car", "bus")))


def test_zero_may_mean_that_none_was_chosen(tmp_path):
    rows = [f"{t},{t + 5},{t % 7},1,2,{int(t != 5) * (1 + t % 2)}" for t in range(30)]
    path = _written(tmp_path, ["car_time,bus_time,car_cost,bus_cost,bus_wait,choice", *rows])
    found = load_pairs(path, columns=Columns(alternatives=("car", "bus")))
    assert found.n_pairs == 29
    assert found.chosen[:2, 0].tolist() == [0, 6]


def test_an_option_that_was_not_offered_makes_no_pair(tmp_path):
    rows = ["av_car,av_bus,av_rail,time_car,time_bus,time_rail,cost_car,cost_bus,cost_rail,choice"]
    rows += ["1,1,0,1,2,0,3,4,0,car", "0,1,1,0,2,3,0,5,6,rail", "1,1,1,1,2,3,4,5,6,bus"]
    found = load_pairs(_written(tmp_path, rows))
    assert found.names == ("time", "cost")
    assert np.asarray(found.rows).tolist() == [0, 1, 2, 2]
    # Without columns that say so, one of which nothing is known was not offered.
    rows = [
        "time_car,time_bus,time_rail,cost_car,cost_bus,cost_rail,choice",
        "1,2,,3,4,,car",
        "1,2,3,4,5,6,bus",
    ]
    assert np.asarray(load_pairs(_written(tmp_path, rows)).rows).tolist() == [0, 1, 1]


@pytest.mark.parametrize("named", ["{}_alt{}", "{}_{}", "{}{}"])
def test_a_numbered_option_that_was_not_offered_makes_no_pair(named, tmp_path):
    columns = [named.format(feature, o) for feature in ("cost", "time", "av") for o in (1, 2, 3)]
    rows = [",".join([*columns, "choice"]), "1,2,3,6,5,4,1,1,0,1", "3,2,1,4,5,6,1,1,0,2"]
    found = load_pairs(_written(tmp_path, rows))
    assert found.names == ("cost", "time")
    assert found.rejected.tolist() == [[2, 5], [3, 4]]


def test_what_an_option_lacks_counts_as_zero_and_is_told_of(tmp_path):
    rows = ["time_car,time_bus,wait_bus,time_rail,wait_rail,choice"]
    rows += [f"{t},{t + 1},{t % 3},{t + 2},1,{('car', 'bus', 'rail')[t % 3]}" for t in range(9)]
    path = _written(tmp_path, rows)
    found = load_pairs(path)
    assert found.names == ("time", "wait")
    assert found.chosen[0].tolist() == [0, 0]
    assert "car without wait: counted as 0" in str(describe(path))


def test_who_chose_is_the_rater_and_the_options_are_features_of_words(tmp_path):
    rows = ["person,age,time.car,time.bus,price.car,price.bus,choice"]
    rows += [f"p{t // 3},{t},{t},{t % 4},{t % 5},2,{('car', 'bus')[t % 2]}" for t in range(12)]
    path = _written(tmp_path, rows)
    found = load_pairs(path)
    assert list(found.raters)[:4] == ["p0", "p0", "p0", "p1"]
    assert "The name of the option is a feature only with --words" in str(describe(path))
    words = load_pairs(path, columns=Columns(words=True))
    assert words.names == ("time", "price", "option_name=car")
    assert (words.chosen[:, 2] - words.rejected[:, 2]).tolist() == [1.0, -1.0] * 6


def test_a_bad_cell_is_named_by_the_files_row_and_column(tmp_path):
    rows = ["time_car,time_bus,cost_car,cost_bus,choice"]
    rows += [f"{t},{t + 1},{'x' if t == 3 else t},7,{('car', 'bus')[t % 2]}" for t in range(30)]
    path = _written(tmp_path, rows)
    with pytest.raises(ValueError, match=r"column cost_car is not numeric \(row 4 holds 'x'\)"):
        load_pairs(path)
    assert load_pairs(path, skip_bad=1).n_pairs == 29


def test_a_choice_of_nothing_that_has_columns_makes_no_pair(tmp_path):
    rows = ["time_car,time_bus,cost_car,cost_bus,choice"]
    rows += [f"{t},{t + 1},{t % 5},7,{'neither' if t == 3 else ('car', 'bus')[t % 2]}" for t in range(30)]
    path = _written(tmp_path, rows)
    assert load_pairs(path).n_pairs == 29
    assert "1 choice without exactly one chosen option makes no pair" in str(describe(path))


def test_three_lettered_sides_are_no_two(tmp_path):
    """A and B of three were once read as the two sides of a pair."""
    rows = ["time_A,cost_A,time_B,cost_B,time_C,cost_C,choice"]
    rows += [f"{t},1,2,{t},3,4,{'ABC'[t % 3]}" for t in range(12)]
    assert load_pairs(_written(tmp_path, rows)).n_pairs == 24


def test_a_label_of_other_words_is_refused(tmp_path):
    rows = ["time_a,cost_a,time_b,cost_b,choice"] + [f"{t},1,2,{t},{'xy'[t % 2]}" for t in range(12)]
    with pytest.raises(ValueError, match="holds 'x', 'y', which name no side"):
        load_pairs(_written(tmp_path, rows))


def test_a_column_that_is_asked_for_and_not_there_is_named(tmp_path):
    rows = ["time_car,time_bus,cost_car,cost_bus,choice"]
    rows += [f"{t},{t + 1},3,7,{('car', 'bus')[t % 2]}" for t in range(8)]
    for names in ({"pair_id": "trip"}, {"label": "mode"}, {"rater": "who"}):
        with pytest.raises(ValueError, match=f"has no column {next(iter(names.values()))}"):
            load_pairs(_written(tmp_path, rows), columns=Columns(**names))


NAMED = "time_car,time_bus,time_rail,cost_car,cost_bus,cost_rail,choice"


def _numbered(labels):
    return [NAMED] + [
        f"{t},{t + 1},{t + 2},{t % 5},{t % 7},{t % 3},{label}" for t, label in enumerate(labels)
    ]


@pytest.mark.parametrize(
    ("labels", "first"),
    [
        ([0, 1, 2], 0),
        ([1, 2, 3], 1),
        ([0, 1, 2, 3], 1),
        ([1, 2], 1),
        (["", 0, 1, 2], 0),
        ([0, 1, 2, "nan"], 0),
    ],
)
def test_what_numbers_stand_for_is_told_and_not_moved_by_others(labels, first, tmp_path):
    path = _written(tmp_path, _numbered([label for label in labels for _ in range(20)]))
    told = Columns(alternatives=("car", "bus", "rail"))
    clear = [label for label in labels if isinstance(label, int) and 0 <= label - first < 3]
    found = load_pairs(path, columns=told)
    assert found.n_pairs == 2 * 20 * len(clear)
    assert found.chosen[0, 0] == found.rows[0] + clear[0] - first
    numbers = f"In choice, {first} means car, {first + 1} means bus, {first + 2} means rail"
    assert numbers in str(describe(path, columns=told))


def test_a_zero_that_may_be_an_option_or_none_is_asked_about(tmp_path):
    path = _written(tmp_path, _numbered([0, 1] * 20))
    with pytest.raises(ValueError, match="where 0 may be car or none: write the names"):
        load_pairs(path, columns=Columns(alternatives=("car", "bus", "rail")))


def test_numbers_in_names_are_what_they_say_unless_the_label_is_said_to_count_from_zero(tmp_path):
    """Read untold, a label that counts from 0 where columns count from 1 would be one option off."""
    rows = ["time_1,time_2,time_3,cost_1,cost_2,cost_3,choice"]
    rows += [f"{t},100,200,{t % 5},4,5,{t % 3}" for t in range(30)]
    path = _written(tmp_path, rows)
    with pytest.raises(
        ValueError, match=r"choice holds numbers from 0 to 2, and .* from 1 to 3: .*--first-is 0"
    ):
        load_pairs(path)
    with pytest.raises(ValueError, match="choice"):
        load_pairs(path, columns=Columns(alternatives=("1", "2", "3")))
    found = load_pairs(path, columns=Columns(first_is="0"))
    assert found.chosen[:, 0].tolist() == [v for t in range(30) for v in [(t, 100, 200)[t % 3]] * 2]
    assert "choice: names the option that was chosen, counted from 0" in str(
        describe(path, columns=Columns(first_is="0"))
    )
    with pytest.raises(ValueError, match="--first-is changes nothing"):
        load_pairs(_written(tmp_path, THREE), columns=Columns(first_is="0"))


@pytest.mark.parametrize("alternatives", [(), ("car",), ("car", "Car", "bus")])
def test_alternatives_are_two_or_more_once_each(alternatives, tmp_path):
    with pytest.raises(ValueError, match="two or more names of options, each once"):
        load_pairs(_written(tmp_path, _numbered([1, 2] * 9)), columns=Columns(alternatives=alternatives))


def test_a_feature_is_one_whatever_its_first_cell(tmp_path):
    rows = _numbered(["car", "bus", "rail"] * 10)
    rows[1] = rows[1].replace("0,", "NA,", 1)
    path = _written(tmp_path, rows)
    with pytest.raises(ValueError, match=r"time_car is not numeric \(row 1 holds 'NA'\)"):
        load_pairs(path)
    assert load_pairs(path, skip_bad=2).names == ("time", "cost")


def test_columns_that_are_not_used_are_named_with_their_reason(tmp_path):
    rows = ["time_car,time_bus,kind_car,kind_bus,class_bus,same_car,same_bus,note,choice"]
    rows += [f"{t},2,{'ab'[t % 2]},b,{'xy'[t % 2]},1,1,n{t},{('car', 'bus')[t % 3 % 2]}" for t in range(30)]
    told = describe(_written(tmp_path, rows))
    assert {name: why.split(" ")[0] for name, why in told.ignored.items()} == {
        "kind_car": "holds", "kind_bus": "holds", "class_bus": "no", "same_car": "is", "same_bus": "is", "note": "no",
    }  # fmt: skip


def test_words_that_an_option_lacks_are_no_feature(tmp_path):
    rows = ["time_car,time_bus,time_rail,class_bus,class_rail,choice"]
    rows += [
        f"{t},2,{t % 5},{'xy'[t % 2]},{'xy'[t % 3 % 2]},{('car', 'bus', 'rail')[t % 3]}" for t in range(30)
    ]
    path = _written(tmp_path, rows)
    assert load_pairs(path).names == ("time",)
    assert describe(path).ignored["class_bus"] == "is of words, which car lacks"
    words = load_pairs(path, columns=Columns(words=True))
    assert words.names == ("time", "option_name=car", "option_name=rail")


def test_what_is_computed_from_the_options_and_copies_of_the_answer_are_none(tmp_path):
    rows = [
        "time_car,time_bus,time_total,cost_car,cost_bus,cost_total,selected_car,selected_bus,selected_none,choice"
    ]
    rows += [
        f"{t},2,{t + 2},{t % 5},{t % 3},9,{int(t % 2 == 0)},{int(t % 2)},0,{('car', 'bus')[t % 2]}"
        for t in range(30)
    ]
    found = load_pairs(_written(tmp_path, rows))
    assert found.names == ("time", "cost")
    assert found.n_pairs == 30
    rows[5] = rows[5].replace("car", "none")
    assert load_pairs(_written(tmp_path, rows)).n_pairs == 29


def test_options_are_one_whatever_the_size_of_their_letters(tmp_path):
    rows = ["time_Car,time_Bus,cost_car,cost_bus,choice"] + [
        f"{t},1,2,3,{'car' if t % 2 else 'BUS'}" for t in range(9)
    ]
    assert load_pairs(_written(tmp_path, rows)).names == ("time", "cost")


@pytest.mark.parametrize("name", ["alt{}.{}", "alt{}_{}", "Option{} {}"])
@pytest.mark.parametrize("options", [2, 3])
def test_options_that_a_number_follows_are_numbered(tmp_path, name, options):
    """As Ngene names them; there are as many features as options."""
    features = ("price", "time", "comfort")[:options]
    rows = [
        {
            name.format(k + 1, of): 10 * k + i % (3 + j)
            for k in range(options)
            for j, of in enumerate(features)
        }
        | {"choice": 1 + i % options}
        for i in range(12)
    ]
    pairs = load_pairs(rows)
    assert (pairs.names, pairs.n_pairs) == (features, 12 * (options - 1))
    assert pairs.chosen[:, 0].tolist()[:: options - 1] == [10 * (i % options) + i % 3 for i in range(12)]


def test_features_are_not_proposed_as_options():
    rows = [
        {
            f"{who}_{of}": i % 3 + k
            for k, who in enumerate(("CAR", "BUS", "RAIL"))
            for of in ("AV", "TT", "CO")
        }
        | {"CHOICE": 1 + i % 3}
        for i in range(12)
    ]
    with pytest.raises(ValueError, match="by --alternatives CAR BUS RAIL"):
        load_pairs(rows)
    rows = [{name: cell for name, cell in row.items() if not name.endswith("AV")} for row in rows]
    rows = [row | {f"{who}_HE": 3 for who in ("CAR", "BUS", "RAIL")} for row in rows]
    with pytest.raises(ValueError, match="--alternatives TT CO HE, or --alternatives CAR BUS RAIL"):
        load_pairs(rows)


def test_two_options_may_be_counted_from_0():
    rows = [{"price1": i % 3, "price2": 1, "time1": 2, "time2": i % 4, "choice": i % 2} for i in range(12)]
    with pytest.raises(ValueError, match="--first-is 0"):
        load_pairs(rows)
    assert load_pairs(rows, columns=Columns(first_is="0")).chosen[:3].tolist() == [[0, 2], [1, 1], [2, 2]]


def test_answers_called_after_models_are_named_by_flags():
    rows = [
        {
            "prompt": f"p{i}",
            "gpt_response": f"x {i}",
            "llama_response": f"y {i}",
            "winner": ("gpt", "llama")[i % 2],
        }
        for i in range(8)
    ]
    with pytest.raises(
        ValueError, match="if they are answers, name two columns by --chosen and --rejected, with --l"
    ):
        load_pairs(rows, featuriser="format")
    named = Columns(chosen="gpt_response", rejected="llama_response", label="winner")
    assert load_pairs(rows, columns=named, featuriser="format").swapped.tolist() == [False, True] * 4


def test_numbers_with_marks_are_named_by_their_column():
    rows = [
        {"fare_car": f"{i},5", "fare_bus": f"{9 - i},5", "choice": ("car", "bus")[i % 2]} for i in range(8)
    ]
    with pytest.raises(
        ValueError, match="column fare_car holds '0,5' and the like: write numbers with a decimal point"
    ):
        load_pairs(rows)


@pytest.mark.parametrize("chosen", [0, 1, 2])
def test_three_options_with_letters_at_the_end_of_names_are_no_two(chosen):
    """priceA, priceB and priceC."""
    made = [
        {f"{what}{letter}": 3 * i % 7 + k for what in ("price", "time") for k, letter in enumerate("ABC")}
        | {"choice": "ABC"[(chosen + i) % 3]}
        for i in range(12)
    ]
    found = load_pairs(made)
    assert found.names == ("price", "time")
    first = [i for i, row in enumerate(found.rows.tolist()) if row == 0]
    assert sorted(found.differences()[first, 0].tolist()) == sorted(
        float(chosen - k) for k in range(3) if k != chosen
    )
