"""Tables of choices between two options that have no texts; `test_wild.py` and its neighbours read these files, too."""

import pytest
from wild import stores, worlds
from wild.arenas import word
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import Columns, load_pairs

FEATURES = ("price", "time", "changes", "comfort", "delay")
VOTED = {"world": worlds.voted_vectors, "facts": ("row",)}


def _both(item, name, first, second):
    """The features of both sides, whose columns `name` calls."""
    columns = {}
    for k, feature in enumerate(FEATURES):
        columns |= {name(feature, first): item.a[k], name(feature, second): item.b[k]}
    return columns


@each
def numbered(i, item):
    """An age is of the person, and of no side; trip_1 and trip_2 are no features."""
    sides = _both(item, lambda feature, side: f"{feature}_{side}", 1, 2)
    return (
        {"person_age": 20 + i} | sides | {"trip_id_1": i, "trip_id_2": i, "choice": 1 if item.vote > 0 else 2}
    )


@each
def by_place(i, item):
    sides = _both(item, lambda feature, side: f"{side} {feature}", "left", "right")
    return sides | {"preference": word(item.vote, "left", "right", "both")}


@each
def embedded(i, item):
    return {"emb_a": list(item.a), "emb_b": list(item.b), "winner": word(item.vote, "A", "B", "tie")}


@each
def in_zeros_and_ones(i, item):
    sides = _both(item, lambda feature, side: f"{feature}.{side}", "a", "b")
    return sides | {"y": int(item.vote > 0)}


@each
def with_ties(i, item):
    """Whoever saw no difference had to answer, and ticked a box."""
    sides = _both(item, lambda feature, side: f"{feature}_{side}", "a", "b")
    return sides | {"choice": word(item.vote, "a", "b", "a"), "is_tie": int(item.vote == 0)}


CASES = (
    Case("choices_with_ties", with_ties, stores.table(), **VOTED),
    Case("choices_numbered", numbered, stores.table(), **VOTED),
    Case("choices_by_place", by_place, stores.table("choices.tsv", "\t"), **VOTED),
    Case("choices_embedded", embedded, stores.parquet(), **VOTED),
    Case("choices_in_zeros_and_ones", in_zeros_and_ones, **VOTED, refused="column y holds 0 and 1 alone",
         flags={"--label": "y", "--first-is": "1"}),
)  # fmt: skip


def test_features_are_named_without_their_side():
    pairs = load_pairs(numbered(CASES[0].items()))
    assert pairs.names == FEATURES
    assert set(pairs.unused) == {"person_age", "trip_id_1", "trip_id_2"}
    assert pairs.description.roles["label"] == "choice: 1 is option 1, 2 is option 2"


def test_no_label_is_asked_for():
    rows = [{("won" if name == "y" else name): cell for name, cell in row.items()}
            for row in in_zeros_and_ones(CASES[0].items())]  # fmt: skip
    with pytest.raises(
        ValueError, match=r"has price.a and price.b, but no label: name its column by --label"
    ):
        load_pairs(rows)


def test_one_side_may_have_won_always():
    from robust_rlhf_jax.io import Columns

    pairs = load_pairs(in_zeros_and_ones(CASES[0].items()), columns=Columns(label="none"))
    assert not pairs.swapped.any()


@pytest.mark.parametrize(
    "row",
    [
        {"x_1": 1.0, "x_2": 2.0, "label": 1},  # two features of a difference, perhaps
        {"x_1": 1.0, "x_2": 2.0, "x_3": 0.5, "y_1": 1.0, "y_2": 0.0, "label": 1},
        {"price_1": 1.0, "price_2": 2.0, "time_a": 1.0, "time_b": 0.0, "label": 1},
        {"price_1": 1.0, "price_2": 2.0, "1_time": 1.0, "2_time": 0.0, "label": 1},
        {"alpha": 1.0, "alphb": 2.0, "label": "a"},
    ],
    ids=["one feature", "three numbers", "two kinds of sides", "two places", "no separator"],
)
def test_what_could_be_something_else_is_refused(row):
    with pytest.raises(ValueError, match="has no column chosen_<name>"):
        load_pairs([row] * 5)


@pytest.mark.parametrize(("sides", "neither"), [("AB", "none"), ("12", "neither"), ("12", "0"), ("12", "3")])
def test_neither_option_is_asked_about(sides, neither):
    """In files of answers it is a tie; of a choice it may be that nothing was wanted."""
    labels = [*sides, neither] * 4
    rows = [
        {
            f"price_{sides[0]}": i,
            f"time_{sides[0]}": 1,
            f"price_{sides[1]}": 2,
            f"time_{sides[1]}": i,
            "choice": label,
        }
        for i, label in enumerate(labels)
    ]
    with pytest.raises(ValueError, match=f"(?s)holds {neither} beside the two options.*tie_is"):
        load_pairs(rows)
    found = load_pairs(rows, columns=Columns(tie_is=neither))
    assert found.n_pairs == 12
    assert int(found.ties.sum()) == 4


def test_places_and_profiles_are_no_features():
    places = {"profile_a": 7, "profile_b": 3, "position_a": 1, "position_b": 2}
    rows = [{"price_a": i, "price_b": 2, "choice": "ab"[i % 2], **places} for i in range(9)]
    assert load_pairs(rows).names == ("price",)


@pytest.mark.parametrize(
    "header",
    [
        "priceA,priceB,timeA,timeB", "price (A),price (B),time (A),time (B)",
        "Option A price,Option B price,Option A time,Option B time",
    ],
)  # fmt: skip
def test_the_side_stands_in_the_name_as_studies_write_it(tmp_path, header):
    file = tmp_path / "choices.csv"
    file.write_text(f"{header},choice\n1,2,9,3,A\n6,4,8,5,B\n7,3,8,2,A\n")
    pairs = load_pairs(file)
    assert (pairs.names, pairs.labels.tolist()) == (("price", "time"), [1, -1, 1])
    assert pairs.preferred_differences()[0].tolist() == [-1, 6]


@pytest.mark.parametrize("cells", [("1,5", "2,0"), ("$3", "$4")])
def test_numbers_with_marks_are_not_left_out(cells):
    rows = [
        {"price_a": cells[i % 2], "price_b": cells[0], "time_a": i, "time_b": 3, "choice": "ab"[i % 2]}
        for i in range(8)
    ]
    with pytest.raises(ValueError, match=r"column price_a holds .* write numbers with a decimal point"):
        load_pairs(rows)


def test_ties_of_a_box_beside_the_choice():
    rows = [
        {"price_a": i, "price_b": 3, "time_a": 1, "time_b": i, "choice": "a", "tie": i % 2} for i in range(8)
    ]
    assert load_pairs(rows).strength.tolist() == [1.0, 0.0] * 4


@pytest.mark.parametrize("cell", ["{} min", "{}.5kg", "{} EUR", "−{}", "{}:30", "{}m", "{} k"])
def test_numbers_with_units_are_not_left_out(cell):
    rows = [
        {
            "price_a": i,
            "price_b": 3,
            "time_a": cell.format(10 + i),
            "time_b": cell.format(9),
            "choice": "ab"[i % 2],
        }
        for i in range(30)
    ]
    with pytest.raises(ValueError, match=r"column time_a holds .* write numbers with a decimal point"):
        load_pairs(rows)
    chosen = [
        {"chosen_price": i, "rejected_price": 3, "chosen_time": row["time_a"], "rejected_time": row["time_b"]}
        for i, row in enumerate(rows)
    ]
    with pytest.raises(ValueError, match=r"column chosen_time holds .* or leave the column out"):
        load_pairs(chosen)


def test_codes_of_a_number_and_a_letter_are_no_numbers():
    rows = [
        {"chosen_route": f"{i}A", "rejected_route": f"{i}B", "chosen_price": i, "rejected_price": 3}
        for i in range(60)
    ]
    assert load_pairs(rows).names == ("price",)


def test_a_few_words_with_units_are_words():
    rows = [
        {"price_a": i, "price_b": 3, "size_a": "64 GB", "size_b": "128 GB", "choice": "ab"[i % 2]}
        for i in range(30)
    ]
    found = load_pairs(rows)
    assert found.names == ("price",)
    assert "numbers with units, such as 64 GB: written without them it is a feature" in found.unused["size_a"]
    assert len(load_pairs(rows, columns=Columns(words=True)).names) == 2


def test_columns_that_say_which_option_was_chosen_are_no_features():
    rows = [
        {"price_a": i, "price_b": 3, "won_a": 1 - i % 2, "won_b": i % 2, "eco_a": i % 3 % 2, "eco_b": i % 2,
         "choice": "ab"[i % 2]}
        for i in range(30)
    ]  # fmt: skip
    found = load_pairs(rows)
    assert found.names == ("price", "eco")
    assert found.unused["won_a"] == "says which option was chosen"
    with pytest.raises(ValueError, match="differ in no column but those that say which one was chosen"):
        load_pairs([{name: row[name] for name in ("won_a", "won_b", "choice")} for row in rows])


def test_where_the_first_side_always_won_no_column_says_so():
    rows = [{"price_a": i, "price_b": 3, "new_a": 1, "new_b": 0} for i in range(30)]
    assert load_pairs(rows, columns=Columns(label="none")).names == ("price", "new")


def answers(name, people):
    """Twelve choices between two prices and times, with a column of this name."""
    return [
        {name: who, "price_a": i, "price_b": 9 - i, "time_a": i % 5, "time_b": 2, "choice": "ab"[i % 2]}
        for i, who in enumerate(people)
    ]


@pytest.mark.parametrize("name", ["resp", "Subject", "household_id", "respnum", "RespondentID"])
def test_people_whose_rows_stand_together_are_raters(name):
    people = [100 + i // 4 for i in range(12)]
    assert load_pairs(answers(name, people)).raters.tolist() == [str(who) for who in people]


def test_answers_called_resp_are_no_raters():
    rows = answers("resp", [i % 5 for i in range(12)])
    assert load_pairs(rows).raters is None


@pytest.mark.parametrize(("who", "known"), [(["maths", "physics", "sport"], False), (["S1", "S2", ""], True)])
def test_words_called_subject_are_topics_and_codes_are_people(who, known):
    rows = answers("subject", [who[i // 4] for i in range(12)])
    assert (load_pairs(rows).raters is not None) == known


def test_a_column_whose_cells_name_sides_is_named_where_no_label_is_known():
    rows = [{"price_left": i, "price_right": 3, "time_left": 1, "time_right": i % 5} for i in range(12)]
    rows = [row | {"response": ("left", "right")[i % 2]} for i, row in enumerate(rows)]
    with pytest.raises(ValueError, match=r"no label known by its name \(the cells of response name sides\)"):
        load_pairs(rows)
    rows = [row | {"selected_option": ("left", "right")[i % 2]} for i, row in enumerate(rows)]
    assert load_pairs(rows).labels.tolist() == [1, -1] * 6


@pytest.mark.parametrize("stem", ["headline", "code", "poem"])
def test_sentences_beside_numbers_may_be_what_was_compared(stem):
    rows = [
        {f"{stem}_{side}": f"text {i} of the {side} kind" for side in "ab"}
        | {"chars_a": i % 5, "chars_b": i % 3, "winner": "ab"[i % 2]}
        for i in range(12)
    ]
    flags = f"--chosen {stem}_a --rejected {stem}_b --label winner"
    with pytest.raises(
        ValueError, match=rf"beside the numbers of chars: give {flags} if the texts were compared"
    ):
        load_pairs(rows)
    sides = {"chosen": f"{stem}_a", "rejected": f"{stem}_b"}
    texts = load_pairs(rows, columns=Columns(**sides, label="winner"), featuriser="format").texts
    assert texts.chosen[:2] == ["text 0 of the a kind", "text 1 of the b kind"]
    assert load_pairs(rows, columns=Columns(label="winner")).names == ("chars",)
    # The same few sentences describe products.
    of_products = [row | {f"{stem}_{side}": "a bag that holds a lot" for side in "ab"} for row in rows]
    assert load_pairs(of_products).names == ("chars",)


@pytest.mark.parametrize("store", [stores.jsonl(), stores.table()])
@pytest.mark.parametrize("n", [24, 500])
def test_a_single_numbered_feature_is_read_where_a_choice_counts_the_options(tmp_path, store, n):
    """Of few different numbers or of many, whatever the container."""
    rows = [{"price_1": i % 9, "price_2": 3 * i % n, "chosen": 1 + i % 2} for i in range(n)]
    found = load_pairs(store(tmp_path, rows))
    assert found.names == ("price",)
    assert found.labels[:4].tolist() == [1, -1, 1, -1]
    rows = [{"x_1": i % 5, "x_2": 3 * i % 7, "label": 1 + i % 2} for i in range(n)]
    with pytest.raises(ValueError, match="no column chosen_<name>"):
        load_pairs(store(tmp_path, rows))


@pytest.mark.parametrize("cell", ["2025-05-{}", "{}/05/2025", "({})", "0x{}f"])
def test_what_is_neither_a_number_nor_a_word_says_so(cell):
    rows = [
        {"price_a": i, "price_b": 9 - i, "left_on_a": cell.format(10 + i), "left_on_b": cell.format(40 - i)}
        | {"choice": "ab"[i % 2]}
        for i in range(20)
    ]
    found = load_pairs(rows)
    assert found.names == ("price",)
    assert found.unused["left_on_a"].startswith("holds ")
    assert "neither numbers nor a few words" in found.unused["left_on_b"]
