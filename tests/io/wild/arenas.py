"""Battles of two models: Chatbot Arena, both of Kaggle's competitions, MT-bench; and how a vote is put in words.

Sources: the data cards of lmsys/chatbot_arena_conversations, lmarena-ai/arena-human-preference-140k,
lmsys/lmsys-arena-human-preference-55k and lmsys/mt_bench_human_judgments, Kaggle's pages of the two competitions.
"""

import json

from .chosen import dialogue, each

MODELS = ("model-x", "model-y", "model-z")


def word(value: float, first: str, second: str, tie: str) -> str:
    return tie if value == 0 else first if value > 0 else second


def models(i: int) -> dict:
    return {"model_a": MODELS[i % 3], "model_b": MODELS[(i + 1) % 3]}


@each
def arena_33k(i, item):
    winner = word(item.vote, "model_a", "model_b", ("tie", "tie (bothbad)")[i % 2])
    return {
        "question_id": f"{i:032x}", **models(i), "winner": winner, "judge": item.votes[0][0],
        "conversation_a": dialogue(item.prompt, item.a), "conversation_b": dialogue(item.prompt, item.b), "turn": 1,
        "anony": True, "language": "English", "tstamp": 1682352000.0 + i,
        "openai_moderation": {"flagged": False}, "toxic_chat_tag": {"roberta-large": {"flagged": False}},
    }  # fmt: skip


def _parts(messages: list[dict]) -> list[dict]:
    parts = {"type": "text", "image": None, "mimeType": None}
    return [m | {"content": [parts | {"text": m["content"]}]} for m in messages]


@each
def arena_140k(i, item):
    """Contents are lists of parts."""
    sides = {f"conversation_{s}": _parts(dialogue(item.prompt, getattr(item, s))) for s in "ab"}
    return {
        "id": f"{i:08x}-0000", **models(i), "winner": word(item.vote, "model_a", "model_b", ("tie", "both_bad")[i % 2]),
        "evaluation_session_id": f"s{i // 2}", "evaluation_order": 1 + i % 2, **sides, "language": "en",
        "is_code": False, "timestamp": f"2025-07-0{1 + i % 9} 10:00:00",
    }  # fmt: skip


@each
def lmsys_55k(i, item):
    """Kaggle's first competition: lists of turns as JSON texts, three columns of 0 and 1."""
    row = {"id": 30192 + i, **models(i), "prompt": json.dumps([item.prompt])}
    row |= {f"response_{s}": json.dumps([getattr(item, s)]) for s in "ab"}
    won = {"winner_model_a": item.vote > 0, "winner_model_b": item.vote < 0, "winner_tie": item.vote == 0}
    return row | {name: int(value) for name, value in won.items()}


@each
def lmsys_two_turns(i, item):
    row = lmsys_55k([item])[0] | {"id": i, "prompt": json.dumps(["Hello", item.prompt])}
    return row | {f"response_{s}": json.dumps(["Yes?", getattr(item, s)]) for s in "ab"}


@each
def wsdm(i, item):
    """Kaggle's second competition: model_a or model_b, no ties."""
    return {
        "id": f"{i:064x}", "prompt": item.prompt, "response_a": item.a, "response_b": item.b,
        "winner": word(item.vote, "model_a", "model_b", ""), **models(i), "language": "English",
    }  # fmt: skip


@each
def winner_by_name(i, item):
    """The winner is a model's name, and sides change from row to row."""
    names = models(i)
    winner = word(item.vote, names["model_a"], names["model_b"], "tie")
    return {"prompt": item.prompt, **names, "response_a": item.a, "response_b": item.b, "winner": winner}


@each
def mt_bench(i, item):
    conversations = {f"conversation_{s}": dialogue(item.prompt, getattr(item, s)) for s in "ab"}
    winner = word(item.vote, "model_a", "model_b", "tie")
    return {
        "question_id": 81 + i,
        **models(i),
        "winner": winner,
        "judge": item.votes[0][0],
        **conversations,
        "turn": 1,
    }
