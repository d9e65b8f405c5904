"""The cases of what hands do to the schemas."""

from . import arenas, chosen, odd, sheets, stores, tools, variants, worlds
from .case import Case
from .truths import by_item, by_vote

TIES = {"ties": True}
CSV = stores.table()
SPACED = ("Answer A", "Answer B")
RATER = ("prompt", "row", "rater")
GRADED = {"ties": True, "strengths": (1.0, 2.0, 3.0)}
ONE_TWO = ("response_1", "response_2")
OUTPUTS = ("output_1", "output_2")

NAMES = (
    Case("sheet_of_a_person", variants.sheet_of_a_person, CSV, options=TIES),
    Case("model_a_in_words", sheets.words("Model A", "Model B", "Tie", column="winner"), CSV, options=TIES),
    Case("answer_with_blank", sheets.words("Answer A", "Answer B", "Neither", column="choice", sides=SPACED),
         CSV, options=TIES),
    Case("capitals_and_blanks", sheets.words(" A", "B ", "TIE", column="Winner"), CSV, options=TIES),
    Case("equally_good", sheets.words("A", "B", "equally good", column="preference"), CSV, options=TIES),
    Case("no_preference", sheets.words("response_a", "response_b", "no preference", column="preference"),
         options=TIES),
    Case("both_good", sheets.words("model_a", "model_b", "both good", column="winner"), options=TIES),
    Case("output_1", sheets.words("output_1", "output_2", column="winner", sides=OUTPUTS), options=TIES),
    Case("output_number", sheets.words(1, 2, column="preferred", sides=OUTPUTS), CSV),
    Case("output_zero_is_a_tie", sheets.words(1, 2, 0, column="preference", sides=OUTPUTS), CSV, options=TIES,
         refused="--tie-is|--scale|--first-is", flags={"--first-is": "1", "--tie-is": "0"}, either=True),
    Case("summary_a", sheets.words("A", "B", column="preference", sides=("summary_a", "summary_b")), CSV,
         options=TIES),
    Case("candidates", sheets.words("A", "B", column="label", sides=("candidate_a", "candidate_b")), CSV,
         refused="--chosen",
         flags={"--chosen": "candidate_a", "--rejected": "candidate_b", "--label": "label"}, either=True),
    Case("y_w_y_l", variants.renamed(chosen.explicit, prompt="x", chosen="y_w", rejected="y_l"), refused="--chosen",
         flags={"--chosen": "y_w", "--rejected": "y_l", "--prompt": "x"}, either=True),
    Case("better_worse", variants.renamed(chosen.explicit, chosen="better", rejected="worse"), CSV,
         refused="--chosen",
         flags={"--chosen": "better", "--rejected": "worse"}, either=True),
    Case("accepted", variants.renamed(chosen.explicit, chosen="accepted"), CSV, refused="--chosen",
         flags={"--chosen": "accepted", "--rejected": "rejected"}, either=True),
    Case("win_lose", variants.renamed(chosen.explicit, chosen="win", rejected="lose"), refused="--chosen",
         flags={"--chosen": "win", "--rejected": "lose"}, either=True),
    Case("first_column_reversed", variants.renamed(sheets.words("A", "B", column="winner"), response_a="response_b",
         response_b="response_a"), CSV, options=TIES, truth=lambda items: by_item(worlds.swapped(items))),
    Case("overall_of_a_b", sheets.labelled(lambda v: int(-v), column="overall_preference"), options=GRADED,
         refused="--scale",
         flags={"--scale": (-3.0, 3.0)}),
    Case("helpsteer2_bare", sheets.labelled(lambda v: int(-v), column="preference_strength", sides=ONE_TWO),
         options=GRADED),
    Case("labelled_chosen", variants.labelled_chosen, CSV, refused="--label", flags={"--label": "label",
         "--first-is": "1"}),
    Case("safe_rlhf_safer", variants.safe_rlhf, stores.parquet()),
    Case("arena_as_text", variants.arena_as_text, CSV, options=TIES),
    Case("one_message_parquet", chosen.one_message, stores.parquet()),
    Case("shp_without_scores", variants.renamed(sheets.words(1, 0, column="labels", sides=("human_ref_A",
         "human_ref_B")),
         prompt="history"), stores.jsonl()),
)  # fmt: skip

ODD = (
    Case("answers_in_json", odd.answers_in_json, truth=odd.as_written(odd.answers_in_json)),
    Case("answers_in_json_parquet", odd.answers_in_json, stores.parquet(),
         truth=odd.as_written(odd.answers_in_json)),
    Case("tsv_unquoted", odd.begun_by_quotes, odd.unquoted, truth=odd.as_written(odd.begun_by_quotes)),
    Case("alpaca_eval_weighted", odd.alpaca_eval_weighted, stores.json_array("annotations.json")),
    Case("three_sides", odd.three_sides, CSV, options=TIES, truth=odd.best_of_three),
    Case("ranks_of_sides", odd.ranks_of_sides, CSV, refused="--label", flags=None, either=True),
    Case("chosen_names_sides", odd.chosen_names_sides, CSV, refused="--label", flags=None, either=True),
    Case("chosen_names_models", odd.chosen_names_models, refused="--label", flags=None, either=True),
    Case("chosen_against_label", odd.chosen_against_label, refused="--label", flags={"--label": "preference"}),
    Case("experiment", odd.experiment, CSV, refused="--label", flags=None),
    Case("messages_as_repr", variants.messages_as_repr, CSV),
    Case("arena_expert", variants.arena_as_text, stores.parquet(), options=TIES),
    Case("losses_of_sides", odd.losses_of_sides, CSV, refused="--label", flags=None),
)  # fmt: skip

GAPS = (
    Case("missing_label", variants.emptied(sheets.words("A", "B", column="winner"), "winner", 24),
         refused="--skip-bad",
         flags={"--skip-bad": 1}, lost=1),
    Case("empty_label", variants.emptied(sheets.words("A", "B", column="winner"), "winner", 24, ""), CSV,
         refused="--skip-bad", flags={"--skip-bad": 1}, lost=1),
    Case("missing_text", variants.emptied(chosen.explicit, "rejected", 24), stores.parquet(), refused="--skip-bad",
         flags={"--skip-bad": 1}, lost=1),
    Case("unknown_label", variants.emptied(sheets.words("A", "B", column="winner"), "winner", 24, "?"), CSV,
         refused="--skip-bad", flags={"--skip-bad": 1}, lost=1),
    Case("ragged", variants.ragged),
    Case("some_raters", variants.some_raters, CSV, options=TIES | {"votes": 2}),
    Case("argilla2_pending", lambda items: variants.argilla2_pending(variants.thinned(items)), stores.parquet(),
         options={"votes": 2}, truth=lambda items: by_item(variants.thinned(items)), facts=RATER),
    Case("label_studio_cancelled", lambda items: variants.label_studio_cancelled(variants.thinned(items)),
         stores.json_array(), options={"votes": 2}, facts=RATER,
         truth=lambda items: by_item(tools.labelled_users(variants.thinned(items)))),
    Case("decimal_commas", variants.decimal_commas, stores.table(sep=";"), options=TIES, refused="--|number",
         flags=None,
         either=True),
)  # fmt: skip

PLACES = (
    Case("bom_and_blank_lines", chosen.conversational, variants.bom_and_blank_lines),
    Case("quoted", sheets.words("A", "B", column="winner"), variants.quoted, options=TIES),
    Case("workbook", chosen.explicit, variants.workbook, refused="workbook|xlsx", flags=None),
    Case("snapshot", chosen.explicit, variants.snapshot),
    Case("two_splits", chosen.explicit, variants.two_splits, refused="--split", flags={"--split": "train"}),
    Case("jsonl_shards", chosen.explicit, variants.jsonl_shards),
    Case("gzip_called_jsonl", chosen.explicit, lambda folder, rows: stores.jsonl("a.jsonl.gz")(folder, rows).rename(
         folder / "pairs.jsonl"), refused="gzip", flags=None, either=True),
    Case("twice_judged", tools.long_table, stores.parquet(), options=TIES | {"votes": 4}, truth=by_vote, facts=RATER),
    Case("arena_feather", arenas.arena_140k, stores.feather, options=TIES),
    Case("wsdm_csv_index", arenas.wsdm, stores.table(index=True)),
)  # fmt: skip

VARIANTS = (*NAMES, *ODD, *GAPS, *PLACES)
