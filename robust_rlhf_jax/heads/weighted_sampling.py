"""TRL's RewardTrainer with pairs drawn by their weights, for losses that take none."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from .training_callback import check_length
from .trl_packages import needed


def resampling_trainer(callback: Any, base: type | None = None) -> type:
    """A trainer each of whose epochs draws its pairs anew, in proportion to the weights that `callback` has now.

    An epoch has as many pairs as ever. Where all weights are the same it has each pair once.

    **Arguments:** `callback`: of `trl_callback`, which the trainer takes by itself; `base`: a class of trainers whose
    data set has a row for each pair, `trl.RewardTrainer` by default.

    **Returns:** a class, made and used as `base` is.

    **Raises:** ImportError without trl; while training ValueError for a data set that is streamed.

    **Example:**

    >>> from robust_rlhf_jax.heads import resampling_trainer, trl_callback
    >>> callback = trl_callback()  # doctest: +SKIP
    >>> trainer = resampling_trainer(callback)(model=model, args=args, train_dataset=rows)  # doctest: +SKIP
    """
    parent: Any = needed("trl").RewardTrainer if base is None else base

    class ResamplingTrainer(parent):
        def __init__(self, *given: Any, **named: Any):
            super().__init__(*given, **named)
            if callback not in self.callback_handler.callbacks:
                self.add_callback(callback)

        def _get_train_sampler(self, train_dataset: Any = None) -> Any:
            rows = check_length(self.train_dataset if train_dataset is None else train_dataset)
            return ByWeight(callback, len(rows), self.args.seed)

    return ResamplingTrainer


class ByWeight:
    """Places of pairs by the weights of `callback` at the beginning of each epoch."""

    def __init__(self, callback: Any, n: int, seed: int):
        self._callback, self._n, self._seed, self._epoch = callback, n, seed, 0

    def __len__(self) -> int:
        return self._n

    def set_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def __iter__(self) -> Iterator[int]:
        weights = self._callback.weights
        weights = np.ones(self._n) if weights is None else weights
        # The same in every process.
        rng = np.random.default_rng((self._seed, self._epoch))
        self._epoch += 1
        return iter(drawn(rng, weights).tolist())


def drawn(rng: np.random.Generator, weights: Float[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
    """N places in random order; place i stands ⌊e⌋ or ⌈e⌉ times there, e = N·wᵢ/Σw.

    **Source:** systematic resampling, Carpenter, Clifford & Fearnhead 1999.
    """
    share, n = np.cumsum(np.asarray(weights, np.float64)), len(weights)
    ends = np.minimum(np.floor(share * (n / share[-1]) + rng.random()).astype(int), n)
    # Rounding moves no end past the last pair that has weight, nor loses that pair.
    ends[share == share[-1]] = n
    return rng.permutation(np.repeat(np.arange(n), np.diff(ends, prepend=0)))
