"""Schemas of more than two answers: Nectar, UltraFeedback, HelpSteer's ratings, best-of-n, distilabel, Argilla.

Sources: the data cards of berkeley-nest/Nectar (rank 1 is the best), openbmb/UltraFeedback, nvidia/HelpSteer and
HelpSteer2 (consecutive rows share a prompt), distilabel's task UltraFeedback (generations, ratings).
"""

from .chosen import each
from .worlds import Ranking

Rows = list[dict]


def _rank(item: Ranking, j: int) -> int:
    """1 for the best."""
    return 1 + sum(score > item.scores[j] for score in item.scores)


@each
def nectar(i, item):
    """The answers of real Nectar are sorted by rank; here every other row is not."""
    answers = [
        {"answer": text, "model": f"model-{j}", "rank": float(_rank(item, j))}
        for j, text in enumerate(item.answers)
    ]
    answers = answers if i % 2 else sorted(answers, key=lambda one: one["rank"])
    return {
        "prompt": f"\n\nHuman: {item.prompt}\n\nAssistant: ", "answers": answers, "turns": 1,
        "num_responses": len(answers), "source": ["made-up"], "good_natured": True,
    }  # fmt: skip


@each
def ultrafeedback(i, item):
    """openbmb/UltraFeedback: completions with an overall score and four aspects."""
    completions = [
        {"model": f"model-{j}", "principle": "helpfulness", "custom_system_prompt": "-", "response": text,
         "annotations": {a: {"Rating": str(score), "Rationale": "-"} for a in ("helpfulness", "honesty")},
         "critique": "-", "fine-grained_score": float(score), "overall_score": 2.0 * score}
        for j, (text, score) in enumerate(zip(item.answers, item.scores, strict=True))
    ]  # fmt: skip
    return {
        "source": "evol_instruct", "instruction": item.prompt, "models": [c["model"] for c in completions],
        "completions": completions, "correct_answers": ["None"], "incorrect_answers": ["None"],
    }  # fmt: skip


def helpsteer2(items: list[Ranking]) -> Rows:
    """A response a row, with five ratings from 0 to 4; helpfulness is the overall one."""
    return [
        {"prompt": item.prompt, "response": text, "helpfulness": score - 1, "correctness": score - 1, "coherence": 4,
         "complexity": 1 + j % 2, "verbosity": (score + j) % 3}
        for item in items for j, (text, score) in enumerate(zip(item.answers, item.scores, strict=True))
    ]  # fmt: skip


def scored_rows(items: list[Ranking]) -> Rows:
    """A response a row, with one score."""
    return [
        {"prompt_id": i, "prompt": item.prompt, "response": text, "score": 0.5 * score}
        for i, item in enumerate(items) for text, score in zip(item.answers, item.scores, strict=True)
    ]  # fmt: skip


@each
def best_of_n(i, item):
    """Lists of responses and of a reward model's scores."""
    return {
        "prompt": item.prompt,
        "responses": list(item.answers),
        "scores": [0.3 * s - 1 for s in item.scores],
    }


@each
def completions_rewards(i, item):
    return {
        "prompt": item.prompt,
        "completions": list(item.answers),
        "rewards": [float(s) for s in item.scores],
    }


@each
def distilabel(i, item):
    return {
        "instruction": item.prompt, "generations": list(item.answers), "ratings": [float(s) for s in item.scores],
        "rationales": ["-"] * len(item.answers), "model_name": "judge-1",
    }  # fmt: skip


@each
def ranks(i, item):
    """Responses and the rank of each, 1 the best."""
    return {
        "prompt": item.prompt,
        "responses": list(item.answers),
        "ranks": [_rank(item, j) for j in range(len(item.answers))],
    }


@each
def ranking_of_unknown_sense(i, item):
    """A permutation called ranking: the rank of each response, or the order from the best? Nothing tells."""
    row = ranks([item])[0]
    return {"prompt": row["prompt"], "responses": row["responses"], "ranking": row["ranks"]}


@each
def argilla1_ranking_of_k(i, item):
    """A ranking question over k fields, by one user."""
    fields = {f"response-{j + 1}": text for j, text in enumerate(item.answers)}
    order = [{"rank": _rank(item, j), "value": name} for j, name in enumerate(fields)]
    answers = [{"user_id": "w-amber", "value": order, "status": "submitted"}]
    return {"prompt": item.prompt, **fields, "ranking": answers, "external_id": None, "metadata": "{}"}


@each
def llama_factory_outputs(i, item):
    """LLaMA-Factory's older files: a list of two outputs, the better one first."""
    best_first = sorted(range(len(item.answers)), key=lambda j: -item.scores[j])
    return {"instruction": item.prompt, "input": "", "output": [item.answers[j] for j in best_first]}
