"""The cases of named schemas, in the containers in which they are published."""

from . import arenas, chosen, published, ranked, sides, stores, tools, worlds
from .case import Case
from .truths import by_item, by_vote, every_pair, every_pair_of_rows

TIES = {"ties": True}
GRADED = {"ties": True, "strengths": (1.0, 2.0, 3.0)}
RATER = ("prompt", "row", "rater")

CHOSEN = (
    Case("trl_explicit", chosen.explicit),
    Case("trl_implicit", chosen.implicit, facts=(), loose=True),
    Case("trl_conversational", chosen.conversational),
    Case("trl_conversational_parquet", chosen.conversational, stores.parquet()),
    Case("trl_conversational_implicit", chosen.conversational_implicit, stores.parquet()),
    Case("one_message_as_dict", chosen.one_message),
    Case("margin", chosen.with_margin, stores.parquet()),
    Case("bookkeeping", chosen.with_bookkeeping),
    Case("bookkeeping_parquet", chosen.with_bookkeeping, stores.parquet()),
    Case("hh_rlhf", published.hh, stores.jsonl("train.jsonl.gz"), facts=("row",)),
    Case("hh_rlhf_long", published.hh_long, stores.jsonl("harmless-base.jsonl.gz"), facts=("row",)),
    Case("ultrafeedback_h4", published.h4_ultrafeedback, stores.parquet("train_prefs.parquet")),
    Case("ultrafeedback_argilla_cleaned", published.argilla_cleaned, stores.parquet()),
    Case("ultrafeedback_argilla", published.argilla_binarized, stores.parquet()),
    Case("distilabel_orca", published.distilabel_orca, stores.parquet()),
    Case("intel_orca", published.intel_orca),
    Case("reward_bench", published.reward_bench, stores.parquet()),
    Case("reward_bench_output", published.reward_bench_output),
    Case("llama_factory_sharegpt", published.llama_factory_sharegpt, stores.json_array("dpo_en_demo.json")),
    Case("llama_factory_alpaca", published.llama_factory_alpaca, stores.json_array(indent=2)),
    Case("openai_preference", published.openai),
    Case("tool_calls", chosen.tool_calls, facts=(), loose=True, truth=lambda items: _called(by_item(items))),
    Case("skywork", published.skywork),
    Case("preferred_dispreferred", chosen.preferred, stores.table()),
    Case("annotated", chosen.annotated, facts=RATER),
    Case("annotated_twice", chosen.annotated_twice, options={"votes": 3}, truth=by_vote, facts=RATER),
    Case("annotated_twice_parquet", chosen.annotated_twice, stores.parquet(), options={"votes": 2}, truth=by_vote,
         facts=RATER),
)  # fmt: skip

SIDES = (
    Case("arena_33k", arenas.arena_33k, stores.parquet(), options=TIES, facts=RATER),
    Case("arena_33k_jsonl", arenas.arena_33k, options=TIES, facts=RATER),
    Case("arena_140k", arenas.arena_140k, stores.parquet(), options=TIES),
    Case("lmsys_55k", arenas.lmsys_55k, stores.table("train.csv"), options=TIES),
    Case("lmsys_55k_two_turns", arenas.lmsys_two_turns, stores.table("train.csv"), options=TIES, facts=(),
         loose=True),
    Case("wsdm", arenas.wsdm, stores.parquet("train.parquet")),
    Case("winner_by_name", arenas.winner_by_name, stores.table(), options=TIES),
    Case("winner_by_name_jsonl", arenas.winner_by_name, options=TIES),
    Case("mt_bench_human", arenas.mt_bench, stores.parquet(), options=TIES, facts=RATER),
    Case("helpsteer3", sides.helpsteer3, stores.jsonl("train.jsonl.gz"), options=GRADED | {"votes": 3}),
    Case("helpsteer3_overall", sides.helpsteer3_overall, stores.parquet(), options=GRADED,
         facts=("prompt", "row", "strength")),
    Case("helpsteer2_preference", sides.helpsteer2_preference, stores.jsonl("preference.jsonl.gz"), options=GRADED,
         distinct=True),
    Case("multipref", sides.multipref, stores.parquet(), options=GRADED | {"votes": 4}, facts=RATER),
    Case("multipref_jsonl", sides.multipref, stores.jsonl("MultiPref-Train.jsonl"), options=GRADED | {"votes": 4},
         facts=RATER),
    Case("multipref_long", sides.multipref_long, stores.table(), options=GRADED | {"votes": 3}, truth=by_vote,
         facts=RATER),
    Case("summarize_from_feedback", sides.summarize_from_feedback, stores.jsonl("comparisons.json"), facts=RATER),
    Case("summarize_from_feedback_parquet", sides.summarize_from_feedback, stores.parquet(), facts=RATER),
    Case("shp", sides.shp, stores.jsonl("train.json")),
    Case("shp_parquet", sides.shp, stores.parquet()),
    Case("alpaca_eval", sides.alpaca_eval, stores.json_array("annotations.json", indent=4), options=TIES),
    Case("safe_rlhf", sides.safe_rlhf, stores.jsonl("train.jsonl.xz")),
    Case("webgpt", sides.webgpt, options=TIES),
)  # fmt: skip

TOOLS = (
    Case("argilla1_label", tools.argilla1_label, stores.parquet(), options=TIES | {"votes": 3}, facts=RATER),
    Case("argilla1_ranking", tools.argilla1_ranking, options=TIES | {"votes": 2}, facts=RATER),
    Case("argilla1_discarded", tools.argilla1_discarded, options=TIES | {"votes": 2}, facts=RATER),
    Case("argilla1_ranking_of_k", ranked.argilla1_ranking_of_k, world=worlds.rankings, truth=every_pair),
    Case("argilla2_flat", tools.argilla2_flat, stores.parquet(), options=TIES | {"votes": 3}, facts=RATER),
    Case("argilla2_nested", tools.argilla2_nested, stores.json_array(), options=TIES | {"votes": 2}, facts=RATER),
    Case("label_studio_json", tools.label_studio, stores.json_array("project-83.json"), options={"votes": 2},
         truth=lambda items: by_item(tools.labelled_users(items)), facts=RATER),
    Case("label_studio_json_min", tools.label_studio_min, stores.json_array("project-83-min.json"),
         options={"votes": 2}, truth=lambda items: by_vote(tools.labelled_users(items)), facts=RATER),
    Case("label_studio_csv", tools.label_studio_min, stores.table("project-83.csv"), options={"votes": 2},
         truth=lambda items: by_vote(tools.labelled_users(items)), facts=RATER),
    Case("long_table", tools.long_table, stores.table(), options=TIES | {"votes": 3}, truth=by_vote, facts=RATER),
    Case("rater_columns", tools.rater_columns, stores.table(), options=TIES | {"votes": 3}),
    Case("label_columns", tools.label_columns, stores.table(), options=TIES | {"votes": 2}),
)  # fmt: skip

RANKED = (
    Case("nectar", ranked.nectar, stores.parquet("rlaif.parquet"), world=worlds.rankings, truth=every_pair,
         facts=("row",)),
    Case("nectar_jsonl", ranked.nectar, world=worlds.rankings, options={"k": 7, "n": 6}, truth=every_pair,
         facts=("row",)),
    Case("ultrafeedback_raw", ranked.ultrafeedback, stores.jsonl("evol_instruct.jsonl"), world=worlds.rankings,
         truth=every_pair),
    Case("ultrafeedback_raw_parquet", ranked.ultrafeedback, stores.parquet(), world=worlds.rankings,
         truth=every_pair),
    Case("helpsteer2_rows", ranked.helpsteer2, stores.jsonl("train.jsonl.gz"), world=worlds.rankings,
         options={"k": 2, "n": 16},
         truth=every_pair_of_rows, facts=("prompt",)),
    Case("helpsteer1_rows", ranked.helpsteer2, stores.jsonl("train.jsonl.gz"), world=worlds.rankings,
         truth=every_pair_of_rows, facts=("prompt",)),
    Case("scored_rows", ranked.scored_rows, stores.table(), world=worlds.rankings, truth=every_pair_of_rows,
         facts=("prompt",)),
    Case("best_of_n", ranked.best_of_n, world=worlds.rankings, truth=every_pair),
    Case("best_of_n_parquet", ranked.best_of_n, stores.parquet(), world=worlds.rankings, truth=every_pair),
    Case("completions_rewards", ranked.completions_rewards, world=worlds.rankings, options={"k": 3},
         truth=every_pair),
    Case("distilabel", ranked.distilabel, stores.parquet(), world=worlds.rankings, truth=every_pair),
    Case("ranks", ranked.ranks, world=worlds.rankings, truth=every_pair),
    Case("llama_factory_outputs", ranked.llama_factory_outputs, stores.json_array(), world=worlds.rankings,
         options={"k": 2, "n": 16}, truth=every_pair),
)  # fmt: skip


def _called(votes):
    """Of an answer that calls a tool, the argument."""
    import dataclasses

    def last(text):
        return text.split()[-1]

    return [dataclasses.replace(v, chosen=last(v.chosen), rejected=last(v.rejected)) for v in votes]
