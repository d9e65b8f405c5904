"""The weights of pairs through a training: refitted after each epoch, whatever the loop is."""

import dataclasses
import os
from typing import Any

import numpy as np
from jaxtyping import Float

from robust_rlhf_jax.checks import check_epsilon
from robust_rlhf_jax.preferences import group_numbers
from robust_rlhf_jax.rewards import RobustFit, Streaming
from robust_rlhf_jax.terminal import counted

from .embedded_pairs import Embed
from .refit import Refit, check_sides, mean_change, refit_head


class RobustHead:
    """A weight for each pair, by a reward head that is fitted anew after each epoch of your training.

    The loop is yours: call `after_epoch(embed)` at the end of an epoch, and weigh the next one's loss by `weights`, as
    Σ w·softplus(−margin) / Σ w.

    A weight never rises: what one refit has left out stays out. A network learns to set apart whatever it is trained
    on, so that later embeddings no longer tell what contradicted the rest before (`docs/heads.md`).

    **Arguments:** as `refit_head`; `warm_up`: epochs after which nothing is refitted yet, all weights being 1;
    `forgive`: the weights are those of the last refit alone, and may rise.

    **Raises:** ValueError for sides or `groups` of other lengths, ε outside [0, ½), and for `batch` and `warm_up` that
    are no number of them.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.heads import RobustHead
    >>> inputs = np.random.default_rng(0).normal(size=(200, 2))
    >>> head = RobustHead(inputs, inputs[::-1], warm_up=1)
    >>> float(head.after_epoch(lambda x: x).sum()), head.last is None  # the epoch of the warm-up
    (200.0, True)
    >>> head.after_epoch(lambda x: x).shape, head.last.moved
    ((200,), 0.0)
    """

    def __init__(
        self,
        chosen: Any,
        rejected: Any,
        *,
        warm_up: int = 0,
        forgive: bool = False,
        batch: int = 1024,
        epsilon: float | None = None,
        groups: Any = None,
        config: RobustFit | None = None,
        streaming: Streaming | None = None,
        folder: str | os.PathLike | None = None,
    ):
        check_sides(chosen, rejected, batch, groups=groups)
        if not isinstance(warm_up, int | np.integer) or warm_up < 0:
            raise ValueError(f"warm_up={warm_up!r}: give a whole number of at least 0.")
        if epsilon is not None:
            check_epsilon(epsilon)
        if groups is not None:
            group_numbers(groups, len(chosen))
        self._chosen, self._rejected = chosen, rejected
        self._warm_up, self._forgive = warm_up, forgive
        self._options: dict[str, Any] = {
            "batch": batch, "epsilon": epsilon, "groups": groups, "config": config, "streaming": streaming,
            "folder": folder,
        }  # fmt: skip
        self.epochs = 0
        self.weights: Float[np.ndarray, " N"] = np.ones(len(chosen), np.float32)
        self.last: Refit | None = None

    def __repr__(self) -> str:
        """How many pairs, how many epochs they were trained for, and what they weigh."""
        pairs, epochs = counted(len(self.weights), "pair"), counted(self.epochs, "epoch")
        return f"RobustHead({pairs} after {epochs}; they weigh {self.weights.mean():.2f} on average)"

    def after_epoch(self, embed: Embed) -> Float[np.ndarray, " N"]:
        """The new weights [N], by the embeddings that the model gives now.

        **Raises:** as `refit_head`.
        """
        if self.epochs >= self._warm_up:
            found = refit_head(embed, self._chosen, self._rejected, **self._options)
            kept = found.weights if self._forgive else np.minimum(self.weights, found.weights)
            self.last = dataclasses.replace(found, weights=kept, moved=mean_change(self.weights, kept))
            self.weights = kept
        # Last: an epoch whose refit failed does not count, and can be given again.
        self.epochs += 1
        # The caller's own: what they do to it must not reach the next epoch.
        return self.weights.copy()
