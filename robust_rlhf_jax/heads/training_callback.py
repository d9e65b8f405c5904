"""A callback of transformers' Trainer, which TRL's RewardTrainer is: a refit at the end of each epoch."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .robust_head import RobustHead
from .score_inputs import last_states
from .trl_packages import needed

# The column of the data set by which a weighted trainer numbers its pairs.
PLACE = "pair_number"


def trl_callback(
    *, embed: Callable[[Any, list[list[int]]], Any] = last_states, batch: int = 32, **options: Any
) -> Any:
    """A `transformers.TrainerCallback` for `trl.RewardTrainer` that refits a `RobustHead` after each epoch.

    All pairs of the trainer's `train_dataset`, tokenised and within its `max_length`, are embedded then. Trainers take
    no weights: `weighted_trainer` and `resampling_trainer` read those of this callback.

    | attribute | meaning |
    |---|---|
    | `weights` [N] | in the order of `trainer.train_dataset`; None before the training |
    | `last` | the last `Refit`, None before one |
    | `head` | the `RobustHead`, None before the training |

    **Arguments:** `embed`: (model, token numbers of m texts) → [m, d]; `batch`: m; `options`: those of `RobustHead`,
    `warm_up` among them.

    **Raises:** ImportError without transformers; while training ValueError for a data set that is streamed or has no
    `chosen_ids`, and as `refit_head`.

    **Example:**

    >>> from robust_rlhf_jax.heads import trl_callback
    >>> callback = trl_callback(warm_up=1)  # doctest: +SKIP
    """
    base = needed("transformers").TrainerCallback

    class RefitCallback(base):
        head: RobustHead | None = None
        # The number that a weighted trainer gave each pair, in the order of `weights`.
        places: np.ndarray | None = None

        @property
        def weights(self) -> np.ndarray | None:
            return None if self.head is None else self.head.weights

        @property
        def last(self) -> Any:
            return None if self.head is None else self.head.last

        def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            rows = check_tokens(check_length(given["train_dataloader"].dataset))
            self.places = np.asarray(rows[PLACE]) if PLACE in rows.column_names else None
            self.head = RobustHead(rows["chosen_ids"], rows["rejected_ids"], batch=batch, **options)

        def on_epoch_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            assert self.head is not None
            self.head.after_epoch(lambda ids: embed(given["model"], ids))

    return RefitCallback()


def check_length(rows: Any) -> Any:
    """The rows, which have a length.

    **Raises:** ValueError for a data set that is streamed.
    """
    if not hasattr(rows, "__len__"):
        raise ValueError(
            "The training set is streamed, and a weight for each pair needs its length: give a datasets.Dataset."
        )
    return rows


def check_tokens(rows: Any) -> Any:
    """The rows, which have the token numbers of both sides.

    **Raises:** ValueError for a data set without the token numbers of both sides.
    """
    if not {"chosen_ids", "rejected_ids"} <= {*rows.column_names}:
        raise ValueError(
            f"The training set has columns {', '.join(rows.column_names)}, and neither chosen_ids nor rejected_ids: "
            "take trl.RewardTrainer, of a version that writes them (1.16 does)."
        )
    return rows
