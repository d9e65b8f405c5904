"""Two sides and a label or scores: HelpSteer, MultiPref, summarize-from-feedback, SHP, AlpacaEval, SafeRLHF, WebGPT.

Sources: the data cards of nvidia/HelpSteer2 and HelpSteer3 (−3: the first response is much better), allenai/multipref,
stanfordnlp/SHP (labels: 1 where A is preferred), openai/summarize_from_feedback, PKU-Alignment/PKU-SafeRLHF and
openai/webgpt_comparisons, AlpacaEval's annotations (1: output_1, 2: output_2).
"""

from .arenas import models, word
from .chosen import each
from .worlds import Item

Rows = list[dict]


def _score(value: float) -> int:
    """HelpSteer's sign: below 0 the first response is better."""
    return int(-value)


@each
def helpsteer3(i, item):
    """`overall_preference` over two responses, and up to three annotators' own."""
    each_one = [
        {"score": _score(v), "reasoning": "-", "feedback1": "-", "feedback2": "-"} for _, v in item.votes
    ]
    overall = round(sum(one["score"] for one in each_one) / len(each_one))
    return {
        "domain": "general", "language": "english", "context": [{"role": "user", "content": item.prompt}],
        "response1": item.a, "response2": item.b, "overall_preference": overall, "individual_preference": each_one,
    }  # fmt: skip


@each
def helpsteer3_overall(i, item):
    """Without the annotators' own."""
    row = helpsteer3([item])[0]
    return {name: cell for name, cell in row.items() if name != "individual_preference"}


@each
def helpsteer2_preference(i, item):
    strength = _score(item.vote)
    return {
        "split": "train", "prompt": item.prompt, "response_1": item.a, "response_2": item.b,
        "preference_strength": strength, "preference_statement": "-", "preference_elaboration": "-",
        "three_most_similar_preferences": [{"statement": "-", "elaboration": "-", "strength": strength}] * 3,
        "all_preferences_unprocessed": [{"strength": strength, "statement": "-", "elaboration": "-"}] * 3,
    }  # fmt: skip


def _said(value: float) -> str:
    side = "A" if value > 0 else "B"
    return "Tie" if value == 0 else f"{side}-is-{'clearly' if abs(value) > 1 else 'slightly'}-better"


def _opposite(value: float) -> str:
    return _said(-value)


@each
def multipref(i, item):
    """Two normal workers and two experts; what they say of single aspects may be the opposite."""
    made = [
        {"evaluator": who, "overall_pref": _said(v), "overall_confidence": "fairly-confident",
         "helpful_pref": _said(v), "truthful_pref": "Tie", "harmless_pref": _opposite(v), "time_spent": 90 + i}
        for who, v in item.votes
    ]  # fmt: skip
    return {
        "comparison_id": f"c{i}", "prompt_id": f"p{i // 2}", "text": item.prompt, **models(i),
        "completion_a": item.a, "completion_b": item.b, "category": "Open QA", "source": "made-up",
        "normal_worker_annotations": made[:2], "expert_worker_annotations": made[2:],
    }  # fmt: skip


def multipref_long(items: list[Item]) -> Rows:
    """The same, an annotation a row."""
    return [
        {"comparison_id": f"c{i}", "text": item.prompt, "completion_a": item.a, "completion_b": item.b,
         "evaluator": who, "overall_pref": _said(value), "worker_type": "normal"}
        for i, item in enumerate(items) for who, value in item.votes
    ]  # fmt: skip


@each
def summarize_from_feedback(i, item):
    post = {
        "id": f"t3_{i}",
        "post": item.prompt,
        "title": "A question",
        "subreddit": "advice",
        "site": None,
        "article": None,
    }
    summaries = [{"text": text, "policy": p, "note": None} for text, p in ((item.a, "ref"), (item.b, "sup1"))]
    return {
        "info": post, "summaries": summaries, "choice": int(item.vote < 0), "worker": item.votes[0][0],
        "batch": f"batch{i % 3}", "split": "train", "extra": {"confidence": 1 + i % 9},
    }  # fmt: skip


@each
def shp(i, item):
    row = {"post_id": f"q{i}", "domain": "askculinary_train", "upvote_ratio": 0.98, "history": item.prompt}
    for k, side in enumerate("AB"):
        row |= {
            f"c_root_id_{side}": f"h{i}{k}",
            f"created_at_utc_{side}": 1_636_000_000 + i,
            f"score_{side}": 0,
        }
        row |= {f"human_ref_{side}": getattr(item, side.lower())}
    better, worse = ("A", "B") if item.vote > 0 else ("B", "A")
    row |= {f"score_{better}": 40 + i, f"score_{worse}": 3}
    return row | {"labels": int(item.vote > 0), "seconds_difference": 300.0, "score_ratio": (40 + i) / 3}


@each
def alpaca_eval(i, item):
    """1: the first output, 2: the second, 1.5 a tie."""
    return {
        "instruction": item.prompt, "output_1": item.a, "generator_1": "base", "dataset": "selfinstruct",
        "output_2": item.b, "generator_2": "other", "annotator": "judge-1",
        "preference": word(item.vote, 1.0, 2.0, 1.5), "price_per_example": 0.002, "time_per_example": 0.8,
    }  # fmt: skip


@each
def safe_rlhf(i, item):
    """`better_response_id` counts the responses from 0, as their names do."""
    return {
        "prompt": item.prompt, "response_0": item.a, "response_1": item.b, "is_response_0_safe": True,
        "is_response_1_safe": True, "better_response_id": int(item.vote < 0), "safer_response_id": int(item.vote < 0),
    }  # fmt: skip


@each
def webgpt(i, item):
    """Scores −1 … 1 that sum to 0: the higher one is preferred."""
    row = {"question": {"dataset": "eli5", "id": f"q{i}", "full_text": item.prompt}}
    for k, (answer, score) in enumerate(((item.a, item.vote), (item.b, -item.vote))):
        row |= {
            f"quotes_{k}": {"title": ["-"], "extract": ["-"]},
            f"answer_{k}": answer,
            f"score_{k}": score * 0.5,
        }
    return row
