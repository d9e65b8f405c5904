"""The cases of spreadsheets and labels: read where words or names tell, refused where a number might mean either."""

from . import chosen, ranked, sheets, stores, worlds
from .case import Case
from .truths import every_pair

TIES = {"ties": True}
FIVE = {"ties": True, "strengths": (1.0, 2.0)}
CSV = stores.table()
AB, ONE_TWO, ZERO_ONE = (
    ("response_a", "response_b"),
    ("response_1", "response_2"),
    ("response_0", "response_1"),
)

WORDS = (
    Case("a_b", sheets.words("A", "B", column="preference"), CSV),
    Case("a_b_tie", sheets.words("a", "b", column="preference"), CSV, options=TIES),
    Case("a_b_ends_parquet", sheets.words("A", "B", column="winner"), stores.parquet(), options=TIES),
    Case("left_right", sheets.words("left", "right", column="choice", sides=("answer_a", "answer_b")), CSV,
         options=TIES),
    Case("first_second", sheets.words("first", "second", "equal", column="preference"), CSV, options=TIES),
    Case("named_by_column", sheets.words("response_a", "response_b", column="winner"), CSV, options=TIES),
    Case("named_by_number", sheets.words("response_1", "response_2", column="label", sides=ONE_TWO), CSV,
         options=TIES),
    Case("a_is_better", sheets.words("A is better", "B is better", column="preference"), CSV, options=TIES),
    Case("brackets", sheets.words("[[A]]", "[[B]]", "[[C]]", column="winner"), options=TIES),
    Case("greater", sheets.words("A>B", "B>A", "A=B", column="preference"), CSV, options=TIES),
    Case("questionnaire", sheets.graded("A is much better", "A is slightly better", "About the same",
         "B is slightly better", "B is much better", column="preference"), CSV, options=FIVE),
    Case("arena_hard_marks", sheets.graded("A>>B", "A>B", "A=B", "B>A", "B>>A", column="label"), options=FIVE),
    Case("one_two_of_1_2", sheets.words(1, 2, column="label", sides=ONE_TWO), CSV),
    Case("one_two_text_of_1_2", sheets.words("1", "2", column="preference", sides=ONE_TWO)),
    Case("zero_one_of_0_1", sheets.words(0, 1, column="label", sides=ZERO_ONE), CSV),
    Case("label_by_another_name", sheets.words("A", "B", column="verdict"), CSV, options=TIES),
    Case("stars", sheets.stars, CSV, options=TIES),
    Case("scores_of_sides", sheets.scores_of_sides, stores.parquet(), options=TIES),
)  # fmt: skip

REFUSED = (
    Case("one_two", sheets.words(1, 2), CSV, refused="--first-is", flags={"--first-is": "1"}),
    Case("one_two_text", sheets.words("1", "2"), refused="--first-is", flags={"--first-is": "1"}),
    Case("two_one", sheets.words(2, 1), stores.parquet(), refused="--first-is", flags={"--first-is": "2"}),
    Case("zero_one", sheets.words(0, 1), CSV, refused="--first-is", flags={"--first-is": "0"}),
    Case("one_zero_parquet", sheets.words(1, 0), stores.parquet(), refused="--first-is", flags={"--first-is": "1"}),
    Case("booleans", sheets.words(True, False), refused="--first-is", flags={"--first-is": "True"}),
    Case("zero_half_one", sheets.words(1.0, 0.0, 0.5), CSV, options=TIES, refused="--scale",
         flags={"--scale": (1.0, 0.0)}),
    Case("half_first_is_zero", sheets.words(0.0, 1.0, 0.5), stores.parquet(), options=TIES, refused="--scale",
         flags={"--scale": (0.0, 1.0)}),
    Case("minus_one_one", sheets.words(1, -1), CSV, refused="--first-is|--scale", flags={"--first-is": "1"}),
    Case("minus_one_zero_one", sheets.words(1, -1, 0), CSV, options=TIES, refused="--scale",
         flags={"--scale": (1.0, -1.0)}),
    Case("zero_one_two", sheets.words(1, 2, 0), CSV, options=TIES, refused="--first-is|--scale|--tie-is",
         flags={"--first-is": "1", "--tie-is": "0"}),
    Case("one_two_three", sheets.words(1, 2, 3), options=TIES, refused="--first-is|--scale|--tie-is",
         flags={"--first-is": "1", "--tie-is": "3"}),
    Case("probability", sheets.labelled(lambda v: 0.5 + 0.3 * v), CSV,
         options={"strengths": (0.5, 1.0, 1.5)}, refused="--scale",
         flags={"--scale": (1.0, 0.0)}),
    Case("likert_seven", sheets.labelled(lambda v: 4 - int(v)), CSV, options={"ties": True, "strengths": (1.0,
         2.0, 3.0)},
         refused="--scale", flags={"--scale": (1.0, 7.0)}),
    Case("strength_of_unknown_sign", sheets.labelled(lambda v: int(v), column="strength"),
         options={"ties": True, "strengths": (1.0, 2.0, 3.0)}, refused="--scale", flags={"--scale": (3.0, -3.0)}),
    Case("values_of_no_side", sheets.words("x", "y", column="verdict", sides=("output_left", "output_right")), CSV,
         refused="--first-is", flags={"--first-is": "x"}),
    Case("unknown_names", sheets.words("draft", "final", column="taken", sides=("draft", "final")), CSV, options=TIES,
         refused="--chosen", flags={"--chosen": "draft", "--rejected": "final", "--label": "taken"}),
    Case("two_labels", sheets.two_labels, CSV, refused="--label", flags={"--label": "human_verdict"}),
    Case("ranking_of_unknown_sense", ranked.ranking_of_unknown_sense, world=worlds.rankings, truth=every_pair,
         refused="--ranking", flags={"--ranking": "ranks"}),
    Case("kto", chosen.kto, refused="pair", flags=None),
    Case("only_messages", chosen.only_messages, refused="chosen|pair", flags=None),
    Case("dataset_dict", chosen.explicit, stores.saved("train", "test"), refused="--split",
         flags={"--split": "train"}),
    Case("truncated_line", chosen.explicit, stores.truncated_jsonl, refused="--skip-bad",
         flags={"--skip-bad": 1}, lost=1),
    Case("truncated_table", sheets.words("A", "B", column="winner"), stores.truncated_table, refused="--skip-bad",
         flags={"--skip-bad": 1}, lost=1),
    Case("truncated_gz", chosen.explicit, stores.truncated_gz,
         refused="damaged|truncated|cut|ends|incomplete", flags=None),
)  # fmt: skip
