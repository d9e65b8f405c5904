"""A linear reward, fitted anew to the current embeddings of all pairs, and the weight that it gives each pair."""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from robust_rlhf_jax.io import RewardHead
from robust_rlhf_jax.rewards import RewardModel, RobustFit, Streaming, fit_reward
from robust_rlhf_jax.row_order import check_rows

from .embedded_pairs import Embed, embedded_pairs


@dataclasses.dataclass(frozen=True)
class Refit:
    """What `refit_head` found.

    | field | meaning |
    |---|---|
    | `model` | the `RewardModel` of the embeddings |
    | `head` | θ of it as a `RewardHead`, which other programs read as safetensors |
    | `weights` [N] | the chance that each pair is honest, in the order of the pairs; below ½ where it is left out |
    | `moved` | the mean change of the weights since the last refit; None where there was none |

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.heads import refit_head
    >>> inputs = np.random.default_rng(0).normal(size=(200, 2))
    >>> refit_head(np.tanh, inputs, inputs[::-1]).message
    'No evidence of corruption: maximum likelihood on all 200 pairs.'
    """

    model: RewardModel
    head: RewardHead
    weights: Float[np.ndarray, " N"]
    moved: float | None

    @property
    def message(self) -> str:
        """One or two sentences on what the fit found."""
        return self.model.message


def refit_head(
    embed: Embed,
    chosen: Any,
    rejected: Any,
    *,
    before: Float[np.ndarray, " N"] | None = None,
    batch: int = 1024,
    epsilon: float | None = None,
    groups: Any = None,
    config: RobustFit | None = None,
    streaming: Streaming | None = None,
    folder: str | os.PathLike | None = None,
) -> Refit:
    """`fit_reward` on the embeddings of all pairs.

    **Arguments:**

    - `embed`: a batch of inputs → [m, d], the input of the model's last layer; NumPy, JAX or torch.
    - `chosen`, `rejected`: N inputs each, arrays, lists or a `datasets.Dataset`, or whatever has a length and gives
      slices.
    - `before` [N]: the weights before, for `moved`.
    - `batch`: how many inputs `embed` is given at once.
    - `epsilon`, `groups`, `config`, `streaming`: as `fit_reward` takes them; `streaming` says how much memory.
    - `folder`: where the embeddings are kept while the fit reads them, for more than fit into memory; removed then.

    **Raises:** ValueError for sides or `before` of other lengths, a `folder` that is a file, embeddings that are not
    finite [m, d], and as `fit_reward`.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.heads import refit_head
    >>> rng = np.random.default_rng(0)
    >>> first, second = rng.normal(size=(2, 900, 4))
    >>> margins = 3 * (np.tanh(first) - np.tanh(second)).sum(1)
    >>> wrong = np.abs(margins) > np.quantile(np.abs(margins), 0.93)  # the surest labels the wrong way round
    >>> wins = (margins + rng.logistic(size=900) > 0)[:, None] ^ wrong[:, None]
    >>> found = refit_head(np.tanh, np.where(wins, first, second), np.where(wins, second, first))
    >>> bool(found.weights[wrong].mean() < 0.1), bool(found.weights[~wrong].mean() > 0.9)
    (True, True)
    """
    check_sides(chosen, rejected, batch, groups=groups, before=before)
    if before is not None and np.shape(before) != (len(chosen),):
        raise ValueError(
            f"before has shape {np.shape(before)}: give a weight for each of {len(chosen)} pairs."
        )
    place = None if folder is None else Path(folder)
    if place is not None and place.exists() and not place.is_dir():
        raise ValueError(f"{place} is no folder: give one for the embeddings.")
    with embedded_pairs(embed, chosen, rejected, batch, place) as source:
        model = fit_reward(source, epsilon, groups=groups, config=config, streaming=streaming)
        names = tuple(f"e{i}" for i in range(source.n_features))
    weights = np.asarray(model.weights)
    facts = {"pairs": len(weights), "share_left_out": float(model.epsilon), "said": model.message}
    moved = None if before is None else mean_change(before, weights)
    return Refit(model, RewardHead(names, np.asarray(model.theta), None, facts), weights, moved)


def mean_change(before: Float[np.ndarray, " N"], after: Float[np.ndarray, " N"]) -> float:
    """The mean of |after − before|."""
    return float(np.abs(np.asarray(after) - np.asarray(before)).mean())


def check_sides(chosen: Any, rejected: Any, batch: int, **beside: Any) -> None:
    """**Raises:** ValueError for sides of other lengths, without numbered rows or with them in another order, or in
    another one than what stands `beside` them, for no pair, and for batches of no input.
    """
    check_rows(chosen=chosen, rejected=rejected, **beside)
    for name, side in (("chosen", chosen), ("rejected", rejected)):
        if isinstance(side, Mapping):
            raise ValueError(
                f"{name} is a {type(side).__name__} of columns, whose rows have no numbers: give a list, an array or "
                "a datasets.Dataset."
            )
        if not (hasattr(side, "__len__") and hasattr(side, "__getitem__")):
            raise ValueError(
                f"{name} is of the type {type(side).__name__}, without numbered rows: give a list, an array or a "
                "datasets.Dataset."
            )
    if len(chosen) != len(rejected) or not len(chosen):
        raise ValueError(
            f"{len(chosen)} chosen inputs and {len(rejected)} rejected ones: give as many of both, at least one."
        )
    if not isinstance(batch, int | np.integer) or batch < 1:
        raise ValueError(f"batch={batch!r}: give a whole number of at least 1.")
