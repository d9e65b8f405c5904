"""Published sets and trainers that name the chosen side: hh-rlhf, UltraFeedback, LLaMA-Factory, OpenAI, RewardBench.

Sources: the data cards of Anthropic/hh-rlhf, HuggingFaceH4/ultrafeedback_binarized,
argilla/ultrafeedback-binarized-preferences(-cleaned), argilla/distilabel-intel-orca-dpo-pairs and
allenai/reward-bench, LLaMA-Factory's data/README.md, OpenAI's guide to direct preference optimization.
"""

from .chosen import conversational_implicit, dialogue, each, message


@each
def hh(i, item):
    """Anthropic/hh-rlhf: the whole dialogue in one string."""
    return {
        side: f"\n\nHuman: {item.prompt}\n\nAssistant: {getattr(item, side)}"
        for side in ("chosen", "rejected")
    }


@each
def hh_long(i, item):
    start = f"\n\nHuman: Hello\n\nAssistant: What is it about?\n\nHuman: {item.prompt}\n\nAssistant: "
    return {side: start + getattr(item, side) for side in ("chosen", "rejected")}


@each
def h4_ultrafeedback(i, item):
    """HuggingFaceH4/ultrafeedback_binarized; its scores now and then disagree with which side is called chosen."""
    sides = {side: dialogue(item.prompt, getattr(item, side)) for side in ("chosen", "rejected")}
    return {
        "prompt": item.prompt, "prompt_id": f"{i:064x}", **sides, "messages": sides["chosen"],
        "score_chosen": 8.0 - (i % 7 == 3) * 5, "score_rejected": 5.0,
    }  # fmt: skip


@each
def argilla_cleaned(i, item):
    """argilla/ultrafeedback-binarized-preferences-cleaned: hyphens in the names."""
    row = {"source": "evol_instruct", "prompt": item.prompt}
    for side, rating in (("chosen", 4.75), ("rejected", 3.5)):
        row |= {
            side: dialogue(item.prompt, getattr(item, side)),
            f"{side}-rating": rating,
            f"{side}-model": f"model-{i % 3}",
        }
    return row


@each
def argilla_binarized(i, item):
    """argilla/ultrafeedback-binarized-preferences."""
    return {
        "source": "sharegpt", "instruction": item.prompt,
        "chosen_response": item.chosen, "rejected_response": item.rejected,
        "chosen_avg_rating": 4.5, "rejected_avg_rating": 2.0 + i % 2, "chosen_model": f"model-{i % 3}",
    }  # fmt: skip


@each
def distilabel_orca(i, item):
    """argilla/distilabel-intel-orca-dpo-pairs: a list of both generations and their ratings beside the sides."""
    both = [item.a, item.b]
    return {
        "system": "", "input": item.prompt, "chosen": item.chosen, "rejected": item.rejected, "generations": both,
        "order": ["chosen", "rejected"] if item.vote > 0 else ["rejected", "chosen"], "labelling_model": "judge-1",
        "rating": [9.0, 7.0] if item.vote > 0 else [7.0, 9.0], "status": "unchanged", "chosen_score": 9.0,
        "in_gsm8k_train": False,
    }  # fmt: skip


@each
def intel_orca(i, item):
    return {"system": "", "question": item.prompt, "chosen": item.chosen, "rejected": item.rejected}


@each
def reward_bench(i, item):
    """allenai/reward-bench: ids that repeat between subsets."""
    return {
        "prompt": item.prompt, "chosen": item.chosen, "chosen_model": f"model-{i % 4}", "rejected": item.rejected,
        "rejected_model": f"model-{(i + 1) % 4}", "subset": f"subset-{i % 2}", "id": i // 2,
    }  # fmt: skip


@each
def reward_bench_output(i, item):
    """What RewardBench writes beside its scores."""
    return {
        "prompt": item.prompt, "results": int(i % 4 != 1),
        "scores_chosen": 0.5 + i % 3, "scores_rejected": 0.25 + i % 4,
        "text_chosen": item.chosen, "text_rejected": item.rejected,
    }  # fmt: skip


@each
def llama_factory_sharegpt(i, item):
    """ "ranking": true with ShareGPT's names."""
    sides = {side: {"from": "gpt", "value": getattr(item, side)} for side in ("chosen", "rejected")}
    return {"conversations": [{"from": "human", "value": item.prompt}], **sides}


@each
def llama_factory_alpaca(i, item):
    return {"instruction": item.prompt, "input": "", "chosen": item.chosen, "rejected": item.rejected}


@each
def openai(i, item):
    return {
        "input": {"messages": [message("user", item.prompt)], "tools": [], "parallel_tool_calls": True},
        "preferred_output": [message("assistant", item.chosen)],
        "non_preferred_output": [message("assistant", item.rejected)],
    }


@each
def skywork(i, item):
    return conversational_implicit([item])[0] | {"source": "made-up"}
