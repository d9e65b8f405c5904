"""The input of a PyTorch reward model's score, for pairs of token numbers."""

from typing import Any

from .trl_packages import needed


def last_states(model: Any, ids: list[list[int]]) -> Any:
    """What the layer `score` of a sequence classification model of transformers is given, at each last token.

    **Arguments:** `ids`: the token numbers of each text, without padding; the model's configuration names that token.

    **Returns:** [m, d], a tensor of torch. The model is left in the mode in which it was.

    **Raises:** ImportError without torch; ValueError for a model without a layer named `score`.

    **Example:**

    >>> from robust_rlhf_jax.heads import last_states
    >>> states = last_states(model, [[5, 3, 1], [7, 1]])  # doctest: +SKIP
    """
    torch = needed("torch")
    device = next(model.parameters()).device
    pad = model.config.get_text_config().pad_token_id
    longest = max(map(len, ids))
    tokens = torch.tensor([[*row, *[pad] * (longest - len(row))] for row in ids], device=device)
    lengths = torch.tensor([len(row) for row in ids], device=device)
    mask = (torch.arange(longest, device=device) < lengths[:, None]).long()
    states = _given_to_score(torch, model, {"input_ids": tokens, "attention_mask": mask, "use_cache": False})
    return states[torch.arange(len(ids), device=device), lengths - 1]


def _given_to_score(torch: Any, model: Any, inputs: dict[str, Any]) -> Any:
    """[m, T, d]. A hook sees it in any architecture, also where an adapter wraps the model."""
    seen: list[Any] = []
    hook = _score(model).register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            model(**inputs)
    finally:
        hook.remove()
        model.train(training)
    return seen[0]


def _score(model: Any) -> Any:
    found = [module for name, module in model.named_modules() if name.split(".")[-1] == "score"]
    if not found:
        raise ValueError(
            f"{type(model).__name__} has no layer named score: give embed(model, ids), which returns the input of its "
            "last layer."
        )
    return found[0]
