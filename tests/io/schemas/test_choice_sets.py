"""Choices of one option a row; `test_wild.py` and its neighbours read the files of `CASES`, too."""

import numpy as np
import pytest
from wild import stores, worlds
from wild.case import Case

from robust_rlhf_jax.io import Columns, describe, load_pairs

FEATURES = ("price", "time", "changes", "comfort", "delay")
VOTED = {"world": worlds.voted_vectors, "facts": ()}


def _options(i, item):
    """Two rows: an option is a feature's numbers, and its number among the options is none."""
    both = zip((1, 2), (item.a, item.b), (item.vote > 0, item.vote < 0), strict=True)
    for alt, option, chosen in both:
        yield {"task": i, "alt": alt} | dict(zip(FEATURES, option, strict=True)) | {"chosen": int(chosen)}


def by_task(items):
    return [row for i, item in enumerate(items) for row in _options(i, item)]


def by_person_and_task(items):
    """Tasks are numbered anew for each person, whose age is the same in all rows; rows stand in no order."""
    rows = [
        {"respondent": f"p{i // 4}", "age": 30 + i // 4}
        | row
        | {"task": i % 4, "chosen": bool(row["chosen"])}
        for i, item in enumerate(items)
        for row in _options(i, item)
    ]
    order = np.random.default_rng(0).permutation(len(rows))
    return [rows[place] for place in order]


def by_name(items):
    """The chosen option stands in all rows of its task."""
    for i, item in enumerate(items):
        for row in _options(i, item):
            yield {name: value for name, value in row.items() if name != "chosen"} | {
                "choice": 1 if item.vote > 0 else 2
            }


CASES = (
    Case("choice_sets", by_task, stores.table(), **VOTED),
    Case("choice_sets_by_name", lambda items: list(by_name(items)), stores.table(), **VOTED),
)


def _written(tmp_path, lines, name="choices.csv"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return path


def test_each_option_that_was_not_chosen_makes_a_pair(tmp_path):
    rows = ["set,price,chosen", "a,3,0", "a,2,1", "a,5,0", "b,1,1", "b,4,0"]
    pairs = load_pairs(_written(tmp_path, rows))
    assert pairs.names == ("price",)
    np.testing.assert_array_equal(pairs.differences()[:, 0], [-1, -3, -3])
    np.testing.assert_array_equal(pairs.rows, [1, 1, 3])
    np.testing.assert_array_equal(pairs.second_rows, [0, 2, 4])
    # Pairs of one choice are dependent.
    assert pairs.groups[0] == pairs.groups[1] != pairs.groups[2]


def test_who_chose_is_the_rater_and_what_both_options_share_is_no_feature():
    pairs = load_pairs(by_person_and_task(CASES[0].items()))
    assert pairs.names == FEATURES
    assert set(pairs.raters) == {f"p{i}" for i in range(len(set(pairs.raters)))}
    assert pairs.unused["age"] == "is the same for all options of a choice"


def test_a_person_beside_a_choice_that_is_numbered_throughout_is_the_rater(tmp_path):
    rows = ["id,chid,cost,choice"] + [
        f"{n // 2},{n},{cost},{int(cost < 2)}" for n in range(6) for cost in (1, 2)
    ]
    pairs = load_pairs(_written(tmp_path, rows))
    assert pairs.raters is not None
    assert pairs.raters.tolist() == ["0", "0", "1", "1", "2", "2"]


NAMED = [f"{n},{a},{n + a},{1 + n % 2}" for n in range(40) for a in (1, 2)]
MARKED = [f"{n},{p},{int(p == 1)}" for n in range(40) for p in (1, 2)]


@pytest.mark.parametrize(
    "rows",
    [
        ["task,price,chosen", *MARKED, "40,1,0", "40,2,0", "41,1,1", "41,2,1"],
        ["task,alt,price,choice", *NAMED, "40,1,3,9", "40,2,4,9", "41,1,3,", "41,2,4,"],
    ],
    ids=["marked", "named"],
)
def test_choices_without_one_chosen_option_make_no_pair_and_are_told_of(rows, tmp_path):
    path = _written(tmp_path, rows)
    assert load_pairs(path).n_pairs == 40
    assert "2 choices without exactly one chosen option make no pair." in describe(path).notes


@pytest.mark.parametrize("chosen", ["True,False", "yes,no", "1.0,0.0", "1,0"])
def test_yes_and_no_are_written_in_many_ways(chosen, tmp_path):
    yes, no = chosen.split(",")
    rows = ["task,price,selected"] + [f"{n},{p},{yes if p == 1 else no}" for n in range(5) for p in (1, 2)]
    assert load_pairs(_written(tmp_path, rows)).differences()[:, 0].tolist() == [-1.0] * 5


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("task,alt,price,choice", "1,2"),
        ("task,option,price,chosen_alt", "A,B"),
        ("id,mode,price,choice", "bus,car"),
        ("task,vehicle,price,choice", "sedan,truck"),
    ],
)
def test_the_chosen_option_may_be_named_in_every_row_of_its_choice(header, names, tmp_path):
    names = names.split(",")
    rows = [header] + [
        f"{n},{name},{n + 2 * place},{names[n % 2]}" for n in range(12) for place, name in enumerate(names)
    ]
    path = _written(tmp_path, rows)
    assert load_pairs(path).differences()[:, 0].tolist() == [-2.0, 2.0] * 6
    assert load_pairs(path).names == ("price",)
    told = describe(path)
    label, option = header.split(",")[3], header.split(",")[1]
    assert told.roles["label"] == f"{label}: the {option} of the chosen row"


def test_a_price_names_no_option(tmp_path):
    """`choice` is the place, 1 or 2, which is some price, too."""
    rows = ["task,price,place,choice"]
    rows += [f"{n},{place},{place},{1 + n % 2}" for n in range(12) for place in (1, 2)]
    with pytest.raises(ValueError, match="with one option a row"):
        load_pairs(_written(tmp_path, rows))


@pytest.mark.parametrize(
    "names", [{"label": "y"}, {"label": "y", "pair_id": "obs"}, {"label": "y", "pair_id": "trip"}]
)
def test_the_caller_may_name_the_columns(names, tmp_path):
    rows = ["obs,trip,price,y"] + [f"{n},{n},{p},{int(p == 1)}" for n in range(6) for p in (1, 2)]
    path = _written(tmp_path, rows)
    with pytest.raises(
        ValueError,
        match=r"(?s)with one option a row.*Columns\(chosen=…, rejected=…, label=…, pair_id=",
    ):
        load_pairs(path)
    assert load_pairs(path, columns=Columns(**names)).differences()[:, 0].tolist() == [-1.0] * 6


def test_a_label_that_is_no_choice_is_refused(tmp_path):
    rows = ["task,price,chosen,good"] + [f"{n},{p},{int(p == 1)},1" for n in range(5) for p in (1, 2)]
    path = _written(tmp_path, rows)
    with pytest.raises(ValueError, match="good neither is 1 in one row of each choice"):
        load_pairs(path, columns=Columns(label="good"))
    assert load_pairs(path, columns=Columns(label="chosen", pair_id="task")).n_pairs == 5


def test_rows_of_which_none_are_choices_are_no_choice_sets(tmp_path):
    rows = ["task,price,chosen"] + [f"{n},{n + 1},{n % 2}" for n in range(8)]
    with pytest.raises(ValueError, match="lacks the column rejected"):
        load_pairs(_written(tmp_path, rows))


def _with_a_gap(chosen):
    """Eight choices, in the first of which an option has no price: row 2 of the file."""
    rows = ["task,price,chosen", f"1,1,{1 - chosen}", f"1,,{chosen}"]
    return rows + [f"{n},{p},{int(p == 1)}" for n in range(2, 9) for p in (1, 2)]


@pytest.mark.parametrize("chosen", [0, 1])
def test_an_option_without_a_number_is_named_by_its_row_and_column(chosen, tmp_path):
    path = _written(tmp_path, _with_a_gap(chosen))
    with pytest.raises(ValueError, match="row 2, column price is missing"):
        load_pairs(path)
    found = load_pairs(path, skip_bad=1)
    assert found.n_pairs == 7
    assert [cell.sentence for cell in found.bad] == ["row 2, column price is missing"]


def test_an_option_without_a_word_is_named_by_its_row_and_column(tmp_path):
    rows = ["task,price,brand,chosen"] + [f"{n},{p},{'ab'[p]},{p}" for n in range(8) for p in (0, 1)]
    rows[1] = "0,0,,0"
    with pytest.raises(ValueError, match="row 1, column brand is missing"):
        load_pairs(_written(tmp_path, rows), columns=Columns(words=True))


@pytest.mark.parametrize(("choices", "read"), [(5, True), (4, False)])
def test_one_of_a_few_choices_may_be_unclear(choices, read, tmp_path):
    rows = ["task,price,chosen"] + [f"{n},{p},{int(p == 1)}" for n in range(choices) for p in (1, 2)]
    rows[-2] = rows[-2].replace(",1,1", ",1,0")
    path = _written(tmp_path, rows)
    if read:
        assert load_pairs(path).n_pairs == choices - 1
    else:
        with pytest.raises(ValueError, match="lacks the column rejected"):
            load_pairs(path)


def test_the_choice_is_known_by_its_cells_whatever_its_column_is_called(tmp_path):
    """Forty choices, numbered anew for each person."""
    rows = ["respID,screen,cost,chosen"]
    rows += [f"{n // 8},{n % 8},{n + 2 * place},{int(place == n % 2)}" for n in range(40) for place in (0, 1)]
    found = load_pairs(_written(tmp_path, rows))
    assert found.n_pairs == 40
    assert len(set(found.raters)) == 5
    # Few may be so by chance, and texts are no numbers of options.
    with pytest.raises(ValueError, match="rejected"):
        load_pairs(_written(tmp_path, rows[:31]))
    texts = [rows[0] + ",answer"] + [f"{row},{'a long text that answers ' * 4}" for row in rows[1:]]
    with pytest.raises(ValueError, match="rejected"):
        load_pairs(_written(tmp_path, texts))


def test_options_of_words_alone_need_a_flag(tmp_path):
    rows = ["task,color,size,chosen"]
    rows += [
        f"{n},{['red', 'blue'][(n + p) % 2]},{'SML'[n * (p + 1) % 3]},{p}" for n in range(30) for p in (0, 1)
    ]
    path = _written(tmp_path, rows)
    with pytest.raises(ValueError, match=r"differ in words alone, such as red in column color.*--words"):
        load_pairs(path)
    assert load_pairs(path, columns=Columns(words=True)).names == ("color=red", "size=M", "size=S")


def test_a_label_that_begins_with_chosen_is_no_feature(tmp_path):
    rows = ["contest_no,age,chosen_person"] + [f"{n},{n + p},{p}" for n in range(6) for p in (0, 1)]
    found = load_pairs(_written(tmp_path, rows), columns=Columns(label="chosen_person"))
    assert found.differences()[:, 0].tolist() == [1.0] * 6


def _choices(columns, options=3, many=30):
    """Lines of choices in which option n mod `options` was chosen, `columns(n, place)` beside its cells."""
    return [
        ",".join(
            str(cell) for cell in (n, *columns(n, place), n % 7 + place * (n % 3), int(place == n % options))
        )
        for n in range(many)
        for place in range(options)
    ]


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("profileID", lambda n, place: 7 * n % 31 + place),
        ("altNumber", lambda n, place: place + 1),
        ("Unnamed: 0", lambda n, place: 3 * n + place),
        ("X", lambda n, place: 3 * n + place + 1),
        ('""', lambda n, place: 3 * n + place),
        ("j", lambda n, place: place + 1),
        ("y", lambda n, place: int(place == n % 3)),
    ],
)
def test_ids_places_and_answers_are_no_features(name, cell, tmp_path):
    path = _written(tmp_path, [f"task,{name},cost,chosen", *_choices(lambda n, place: [cell(n, place)])])
    assert load_pairs(path).names == ("cost",)


@pytest.mark.parametrize("name", ["av", "avail", "available"])
def test_an_option_that_was_not_offered_makes_no_pair(name, tmp_path):
    offered = lambda n, place: [int(place == n % 3 or (n + place) % 4 > 0)]  # noqa: E731
    rows = [f"task,{name},cost,chosen", *_choices(offered)]
    found = load_pairs(_written(tmp_path, rows))
    assert found.names == ("cost",)
    assert found.n_pairs == sum(row.split(",")[1] == "1" for row in rows[1:]) - 30


def test_nothing_may_have_been_wanted_in_some_choices(tmp_path):
    rows = _choices(lambda n, place: [])
    unwanted = [row[:-1] + "0" if int(row.split(",")[0]) % 5 == 0 else row for row in rows]
    path = _written(tmp_path, ["task,cost,choice", *unwanted])
    assert load_pairs(path).n_pairs == 48
    assert "6 choices without exactly one chosen option make no pair." in describe(path).notes


def test_a_number_that_names_no_option_is_no_choice_of_nothing(tmp_path):
    """`choice` counts from 0 and `alt` from 1: what 0 means would be lost, and 1 and 2 would be other options."""
    rows = ["task,alt,cost,choice"] + [
        f"{n},{p + 1},{n % 7 + p},{n % 3}" for n in range(30) for p in range(3)
    ]
    with pytest.raises(ValueError, match="with one option a row"):
        load_pairs(_written(tmp_path, rows))


@pytest.mark.parametrize("cost", ["15,5", "$15.00", "15 €", "1,200.50"])
def test_numbers_with_marks_are_asked_about(cost, tmp_path):
    rows = ["task;time;cost;chosen"] + [f"{n};{n + p};{cost};{p}" for n in range(8) for p in (0, 1)]
    rows[1] = "0;0;1;0"
    rows[1:3] = ["0;0;2,5;0", "0;1;3,5;1"]
    rows[3::2] = [row.replace(cost, "7,25") for row in rows[3::2]]
    with pytest.raises(ValueError, match="write numbers with a decimal point and no other marks"):
        load_pairs(_written(tmp_path, rows))


def test_numbers_of_which_some_have_commas_are_not_left_out(tmp_path):
    rows = ["task;cost;time;chosen"]
    rows += [f"{n};{2 + p if n % 3 == 0 else f'{n + p},5'};{n * p + 1};{p}" for n in range(9) for p in (0, 1)]
    path = _written(tmp_path, rows)
    assert load_pairs(path).names == ("cost", "time")
    path.write_text(path.read_text().replace(",", "'"))
    with pytest.raises(ValueError, match='column cost holds "1\'5" and the like: write numbers'):
        load_pairs(path)


def test_who_chose_may_be_named_where_choices_are_numbered_anew(tmp_path):
    rows = ["memberNo,set,cost,chosen"]
    rows += [f"{n // 3},{n % 3},{n + p},{p}" for n in range(9) for p in (0, 1)]
    path = _written(tmp_path, rows)
    with pytest.raises(ValueError, match=r"--pair-id and.*--rater"):
        load_pairs(path)
    assert load_pairs(path, columns=Columns(rater="memberNo")).n_pairs == 9


def test_rows_without_a_choice_are_of_none(tmp_path):
    rows = ["task,cost,chosen", *_choices(lambda n, place: [], many=40)]
    rows += [",777,1", ",888,0"]
    path = _written(tmp_path, rows)
    found = load_pairs(path)
    assert found.n_pairs == 80
    assert 777 not in found.chosen
    assert "2 choices without exactly one chosen option make no pair." in describe(path).notes


@pytest.mark.parametrize("answer", ["True,False", "yes,no", "1,0", "won,lost"])
def test_a_copy_of_the_answer_is_no_feature_of_words_either(answer, tmp_path):
    words = answer.split(",")
    rows = _choices(lambda n, place: [words[place != n % 3]])
    path = _written(tmp_path, ["task,outcome,cost,chosen", *rows])
    assert load_pairs(path).names == ("cost",)
    assert describe(path).ignored["outcome"] == "says which option was chosen"


def test_the_weight_is_no_feature(tmp_path):
    rows = _choices(lambda n, place: [1 + place])
    found = load_pairs(_written(tmp_path, ["task,w,cost,chosen", *rows]), columns=Columns(weight="w"))
    assert found.names == ("cost",)
    path = _written(tmp_path, ["task,cost,chosen", *_choices(lambda n, place: [])])
    with pytest.raises(ValueError, match="differ in no column that could be a feature"):
        load_pairs(path, columns=Columns(weight="cost"))


def test_a_number_is_one_whatever_its_first_cell(tmp_path):
    rows = ["task,cost,chosen", *_choices(lambda n, place: [])]
    rows[1] = rows[1].replace("0,0,", "0,NA,", 1)
    with pytest.raises(ValueError, match="column cost is not numeric"):
        load_pairs(_written(tmp_path, rows))


def chosen_beside(choice):
    """Three options a task; `choice` says of (task, option that was chosen, alt) what its column holds."""
    best = np.random.default_rng(1).integers(0, 3, 24)
    return [
        {
            "obs": i,
            "person": i // 3,
            "alt": j + 1,
            "price": (7 * i + 5 * j) % 11 + j,
            "chosen": int(j == best[i]),
        }
        | {"choice": choice(i, int(best[i]), j)}
        for i in range(24)
        for j in range(3)
    ]


@pytest.mark.parametrize(
    "choice",
    [lambda i, best, j: (best + (i == 5)) % 3 + 1, lambda i, best, j: int(j == (best + (i == 5)) % 3)],
)
def test_two_columns_that_name_other_options_are_asked_about(choice):
    rows = chosen_beside(choice)
    with pytest.raises(
        ValueError, match=r"chosen and choice both say .* disagree in the choice of row 16: give --label"
    ):
        load_pairs(rows)
    wins = {
        name: load_pairs(rows, columns=Columns(label=name)).rows.tolist() for name in ("chosen", "choice")
    }
    assert sum(a != b for a, b in zip(wins["chosen"], wins["choice"], strict=True)) == 2


def test_choices_may_be_numbered_in_another_order_for_each_person():
    orders = [np.random.default_rng(i).permutation(3) + 1 for i in range(8)]
    rows = chosen_beside(lambda i, best, j: int(orders[i // 3][i % 3]))
    assert load_pairs(rows).n_pairs == 48


@pytest.mark.parametrize(
    "choice", [lambda i, best, j: best + 1, lambda i, best, j: int(j == best), lambda i, best, j: i % 3 + 1]
)
def test_a_column_that_says_the_same_or_numbers_the_choices_is_no_other_answer(choice):
    assert load_pairs(chosen_beside(choice)).n_pairs == 48


def test_responses_of_numbers_to_tasks_are_no_answers_without_scores(tmp_path):
    """As Sawtooth writes choices: `Response` is the label."""
    path = tmp_path / "choices.csv"
    rows = [f"{i // 2},{i % 2 + 1},{i * 7 % 5},{(i + i // 2) % 2}" for i in range(40)]
    path.write_text("\n".join(("Task,Concept,price,Response", *rows)))
    with pytest.raises(
        ValueError, match="of choices, --label names the column that says which option was chosen"
    ):
        load_pairs(path)
    assert load_pairs(path, columns=Columns(label="Response")).n_pairs == 20
