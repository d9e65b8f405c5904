"""Pairs that a function makes anew for every pass."""

import contextlib
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from robust_rlhf_jax.io.frames import column_names

from ._counted import counted
from ._recut import recut
from ._shown import Shown
from .beside import groups_and_raters
from .fingerprints import fingerprint_of
from .floats import as_block, block_type


class GeneratedSource(Shown):
    """Differences that `make` gives in blocks of any length, the same in every pass.

    **Arguments:** `make`: called for every pass; returns an iterator of new arrays [m, k], the preferred option's
    features less the other's. `n_pairs`: N, by default counted in a pass of its own. `groups` [N]: any values, by
    default the `raters` [N]. `names` are those of the columns of data frames; () where nobody named them.

    **Raises:** ValueError for blocks that are no numbers [m, k], and, in a later block or pass, for another number of
    rows, another number, type or order of features, and an iterator that has been used before.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.sources import GeneratedSource
    >>> def make():
    ...     rng = np.random.default_rng(0)
    ...     for _ in range(3):
    ...         yield rng.normal(size=(4, 2))
    >>> source = GeneratedSource(make)
    >>> source.n_pairs, [block.shape for block in source.blocks(5)]
    (12, [(5, 2), (5, 2), (2, 2)])
    """

    def __init__(
        self,
        make: Callable[[], Iterator[np.ndarray]],
        n_pairs: int | None = None,
        groups: Any = None,
        raters: Any = None,
    ):
        if n_pairs is not None and (not isinstance(n_pairs, int | np.integer) or n_pairs < 1):
            raise ValueError(
                f"n_pairs={n_pairs!r}: give a whole number of at least 1, or None to count them."
            )
        self._make = make
        self._used: Any = None
        self._form: tuple[int, np.dtype] | None = None
        self.names: tuple[str, ...] = ()
        blocks = self._pass()
        first = next(blocks, None)
        if first is None:
            raise ValueError("make() gave no rows: return an iterator of blocks [m, k].")
        self.n_features = first.shape[1]
        self._sample = fingerprint_of(first)
        self.n_pairs = len(first) + sum(map(len, blocks)) if n_pairs is None else n_pairs
        blocks.close()
        self.groups, self.raters = groups_and_raters(groups, raters, self.n_pairs)

    def blocks(self, rows: int) -> Iterator[Float[np.ndarray, "m k"]]:
        """Differences in blocks of `rows`.

        **Raises:** ValueError for `rows` below 1; while reading, for a pass that differs from the first.
        """
        return recut(self._counted(), rows)

    def fingerprint(self) -> str:
        """A short hash of sizes, the type, and a sample of the first block and of the groups."""
        return fingerprint_of("generated", self.n_pairs, self.n_features, self._sample, self.groups)

    def __getstate__(self) -> dict[str, Any]:
        # A pass that was begun stays in its process; each calls make() anew.
        return vars(self) | {"_used": None}

    def _counted(self) -> Iterator[np.ndarray]:
        """The blocks of a pass of N rows.

        **Raises:** ValueError for another number of rows.
        """

        def wrong(found: int) -> ValueError:
            gave = f"{found} rows and no more" if found < self.n_pairs else f"at least {found} rows"
            return ValueError(
                f"make() gave {gave} in a pass, and there are {self.n_pairs} pairs: give the same in every pass."
            )

        with contextlib.closing(self._pass()) as given:
            yield from counted(given, self.n_pairs, wrong)

    def _pass(self) -> Generator[np.ndarray, None, None]:
        given = self._started()
        try:
            for block in given:
                block = self._checked(block)
                if len(block):
                    yield block
                del block
        finally:
            if hasattr(given, "close"):
                given.close()

    def _started(self) -> Any:
        try:
            given = iter(self._make())
        except TypeError as error:
            raise ValueError(
                f"make() gave no blocks ({error}): return an iterator of arrays [m, k]."
            ) from error
        if given is self._used:
            raise ValueError(
                "make() returned the iterator that it had returned before: return a new one at every call, as a "
                "generator function does."
            )
        self._used = given
        return given

    def _checked(self, block: Any) -> np.ndarray:
        named = column_names(block)
        if self._form is None:
            self.names = named
        if named != self.names:
            raise ValueError(
                f"make() gave a block with the columns {_listed(named)}, and one with {_listed(self.names)} before: "
                "give all alike."
            )
        block = np.asarray(block)
        if block.ndim != 2 or not block.shape[1]:
            raise ValueError(f"make() gave a block of shape {block.shape}: give [m, k], with k ≥ 1 features.")
        form = block.shape[1], block_type(block.dtype, "A block of make()")
        if self._form is None:
            self._form = form
        if form != self._form:
            raise ValueError(
                f"make() gave a block of {form[0]} features in {form[1]}, and one of {self._form[0]} in "
                f"{self._form[1]} before: give all alike."
            )
        return as_block(block)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "no names"
