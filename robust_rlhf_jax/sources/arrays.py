"""Pairs that are in memory already."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float, Shaped

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.io.frames import aligned_frames, column_names, unmasked
from robust_rlhf_jax.io.pairs import given_names
from robust_rlhf_jax.row_order import check_rows as check_rows_of_frames

from ._recut import check_rows
from ._shown import Shown
from .beside import groups_and_raters, second_won
from .differences import part, preferred
from .fingerprints import fingerprint_of
from .floats import as_block, block_type, check_shape


class ArraySource(Shown):
    """Pairs of arrays, NumPy or JAX.

    **Arguments:** `chosen` [N, k]: features of the first options, or, where `rejected` is None, differences, first
    less second. `labels` [N]: ±1 or 0/1, 1 where the first option is preferred; by default everywhere. `groups` [N]:
    any values, by default the `raters` [N]: who labelled each pair. `names` are those of a data frame's columns, or of
    the features of `Pairs`; () where nobody named them.

    **Raises:** ValueError for arrays that do not match, hold no numbers or no pair, for other labels, and for columns
    whose rows have the same index as those of others in another order.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.sources import ArraySource
    >>> source = ArraySource(np.array([[3.0], [0.0], [5.0]]), np.array([[1.0], [1.0], [1.0]]), labels=[1, -1, 1])
    >>> [block.ravel().tolist() for block in source.blocks(2)]
    [[2.0, 1.0], [4.0]]
    """

    def __init__(
        self,
        chosen: Float[ArrayLike, "N k"],
        rejected: Float[ArrayLike, "N k"] | None = None,
        labels: Shaped[ArrayLike, " N"] | None = None,
        groups: Any = None,
        raters: Any = None,
    ):
        check_rows_of_frames(chosen=chosen, rejected=rejected, labels=labels, groups=groups, raters=raters)
        rejected, names = aligned_frames(chosen, rejected)
        self.names = column_names(chosen) if rejected is None else names
        self._first = _checked(chosen, "chosen")
        self._second = None if rejected is None else _checked(rejected, "rejected")
        if self._second is not None and self._second.shape != self._first.shape:
            raise ValueError(
                f"chosen has shape {self._first.shape} and rejected {self._second.shape}: both must be the same [N, k]."
            )
        self.n_pairs, self.n_features = self._first.shape
        self._second_won = second_won(labels, self.n_pairs)
        self.groups, self.raters = groups_and_raters(groups, raters, self.n_pairs)

    @classmethod
    def of_pairs(cls, pairs: Pairs) -> "ArraySource":
        """The same of `Pairs`; their clusters, which are groups or raters, are the groups.

        **Raises:** ValueError for ties and pairs of weight 0, and as for arrays.

        **Example:**

        >>> import numpy as np
        >>> from robust_rlhf_jax import Pairs
        >>> from robust_rlhf_jax.sources import ArraySource
        >>> source = ArraySource.of_pairs(Pairs(np.array([[3.0], [0.0]]), np.array([[1.0], [1.0]])))
        >>> source.n_pairs, source.n_features
        (2, 1)
        """
        if not pairs.fitted.all():
            raise ValueError(
                f"{pairs.path} has {int((~pairs.fitted).sum())} ties or pairs of weight 0, which say nothing: give "
                "pairs.decided()."
            )
        source = cls(pairs.chosen, pairs.rejected, groups=pairs.clusters)
        source.raters, source.names = pairs.raters, given_names(pairs)
        return source

    def blocks(self, rows: int) -> Iterator[Float[np.ndarray, "m k"]]:
        """Differences in blocks of `rows`; without labels, those given are not copied, and cannot be written to.

        **Raises:** ValueError for `rows` below 1.
        """
        return self.blocks_from(0, rows)

    def blocks_from(self, begin: int, rows: int) -> Iterator[Float[np.ndarray, "m k"]]:
        """The same of pair `begin` and all that follow it."""
        check_rows(rows)
        return (self._block(slice(i, i + rows)) for i in range(begin, self.n_pairs, rows))

    def fingerprint(self) -> str:
        """A short hash of shapes, types, labels, and a sample of the rest."""
        won = None if self._second_won is None else np.packbits(self._second_won).tobytes()
        return fingerprint_of("arrays", self._first, self._second, won, self.groups)

    def _block(self, cut: slice) -> np.ndarray:
        won = part(self._second_won, cut)
        if self._second is None and won is None:
            block = as_block(self._first[cut]).view()
            block.flags.writeable = False
            return block
        return preferred(self._first[cut], part(self._second, cut), won)


def _checked(values: Any, name: str) -> np.ndarray:
    values = np.asarray(unmasked(values))
    block_type(values.dtype, name)
    check_shape(values.shape, name)
    return values
