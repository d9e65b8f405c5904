"""TRL's RewardTrainer with a weight for each pair in its loss."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from .training_callback import PLACE, check_length
from .trl_packages import needed

# The column of the data set that says how much each pair counts.
WEIGHT = "weight"


def weighted_trainer(callback: Any = None) -> type:
    """A `trl.RewardTrainer` whose loss is the mean of w·−log σ(margin), w of mean 1.

    w is what the column `weight` of the training set says, where it has one (`audit --export` writes it), times what
    the `callback` says now. Everything else, evaluation and metrics among it, is TRL's.

    **Arguments:** `callback`: of `trl_callback`, which the trainer takes by itself; None for the column alone.

    **Returns:** a class, made and used as `RewardTrainer` is.

    **Raises:** ImportError without torch or trl; when it is made, ValueError for a data set that is streamed, and
    for a `weight` that is missing, negative or not finite, or 0 in every row; in training, where column and callback
    together leave no pair.

    **Example:**

    >>> from robust_rlhf_jax.heads import trl_callback, weighted_trainer
    >>> callback = trl_callback()  # doctest: +SKIP
    >>> trainer = weighted_trainer(callback)(model=model, args=args, train_dataset=rows)  # doctest: +SKIP
    """
    torch, base = needed("torch"), needed("trl").RewardTrainer

    class WeightedRewardTrainer(base):
        def __init__(self, *options: Any, **named: Any):
            super().__init__(*options, **named)
            rows: Any = check_length(self.train_dataset)
            rows = rows.remove_columns(PLACE) if PLACE in rows.column_names else rows
            given = WEIGHT in rows.column_names
            self._columns = checked_weights(rows[WEIGHT]) if given else np.ones(len(rows))
            self.train_dataset = rows.add_column(PLACE, np.arange(len(rows)))
            self.data_collator = carrying(torch, self.data_collator)
            if callback is not None and callback not in self.callback_handler.callbacks:
                self.add_callback(callback)

        def _set_signature_columns_if_needed(self) -> None:
            super()._set_signature_columns_if_needed()
            self._signature_columns = [*dict.fromkeys([*self._signature_columns, PLACE])]

        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            places = inputs.pop(PLACE, None)
            loss, outputs = super().compute_loss(model, inputs, True, num_items_in_batch)
            if places is not None:
                weights = torch.as_tensor(self._weights()[places.cpu().numpy()], device=loss.device)
                loss = loss + weights_less_1(torch, outputs.logits, inputs.get("margin", 0.0), weights)
            return (loss, outputs) if return_outputs else loss

        def _weights(self) -> np.ndarray:
            """All weights as they are now, of mean 1."""
            if callback is None:
                return of_mean_1(self._columns, None)
            return placed_weights(self._columns, callback.weights, callback.places)

    return WeightedRewardTrainer


def checked_weights(column: Any) -> Float[np.ndarray, " N"]:
    """The column `weight` as numbers.

    **Raises:** ValueError where one is missing, negative or not finite, and where none is above 0.
    """
    try:
        weights = np.asarray([*column], np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"The column {WEIGHT} holds more than numbers: give each pair a number.") from None
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise ValueError(
            f"The column {WEIGHT} has {weights[bad[0]]:g} in row {bad[0]}: give finite numbers of at least 0."
        )
    if not weights.any():
        raise ValueError(f"The column {WEIGHT} is 0 in every row: no pair would be learnt from.")
    return weights


def of_mean_1(
    column: Float[np.ndarray, " N"], now: Float[np.ndarray, " N"] | None
) -> Float[np.ndarray, " N"]:
    """The weights of the column times those of a callback, of mean 1.

    **Raises:** ValueError where every pair has weight 0 in one of the two.
    """
    found = column if now is None else column * now
    if not found.any():
        raise ValueError(
            f"Each pair is 0 in the column {WEIGHT} or left out by the callback: no pair would be learnt from."
        )
    return (found / found.mean()).astype(np.float32)


def placed_weights(
    column: Float[np.ndarray, " N"], now: Float[np.ndarray, " M"] | None, places: Int[np.ndarray, " M"] | None
) -> Float[np.ndarray, " N"]:
    """`of_mean_1` of the pairs at `places`, which a callback's weights `now` are about, in their order; 0 for others,
    which are not trained on. None: of all pairs.

    **Raises:** as `of_mean_1`.
    """
    if places is None:
        return of_mean_1(column, now)
    found = np.zeros(len(column), np.float32)
    found[places] = of_mean_1(column[places], now)
    return found


def carrying(torch: Any, collator: Callable[[list], dict]) -> Callable[[list], dict]:
    """`collator`, and the places of the pairs in its batches."""

    def collate(examples: list) -> dict:
        batch = collator(examples)
        if PLACE in examples[0]:
            batch[PLACE] = torch.tensor([example[PLACE] for example in examples])
        return batch

    return collate


def weights_less_1(torch: Any, logits: Any, margin: Any, weights: Any) -> Any:
    """What weights add to TRL's mean loss: the mean of (w − 1)·−log σ(chosen − rejected − margin)."""
    chosen, rejected = torch.chunk(logits.squeeze(-1), 2)
    return -((weights - 1.0) * torch.nn.functional.logsigmoid(chosen - rejected - margin)).mean()
