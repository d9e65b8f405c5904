"""What a reward fit sees of either kind of preferences: checked differences and labels as arrays."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.checks import check_known, is_traced
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.io.unnamed_raters import each_named

from .comparisons import comparisons_of
from .data import PreferenceData
from .table_check import believed, off_table
from .validation import check_decided, check_preferences


class Labelled(NamedTuple):
    """`x` [N, k]: P(label o_n) = σ(o_nθᵀx_n); `labels` [N], ±1; `off` [N]: pairs that a table contradicts; `groups`
    [N]: which labels are dependent, as numbers from 0, or None; `comparisons` [N]: which two options each pair
    compares, as numbers from 0, or None where hardly any comparison recurs.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import Pairs, preferences
    >>> seen = preferences.as_labelled(Pairs(np.array([[3.0], [0.0]]), np.array([[1.0], [1.0]])))
    >>> seen.x.tolist(), seen.labels.tolist(), seen.off.tolist()
    ([[2.0], [-1.0]], [1.0, 1.0], [False, False])
    """

    x: Float[Array, "N k"]
    labels: Float[Array, " N"]
    off: Bool[Array, " N"]
    groups: Int[Array, " N"] | None
    comparisons: Int[Array, " N"] | None = None

    @property
    def believed_x(self) -> Float[Array, "N k"]:
        """x, 0 where a table contradicts the pair: a row of zeros says nothing about any reward."""
        return jnp.where(self.off[:, None], 0.0, self.x)


def as_labelled(
    data: Pairs | PreferenceData, groups: Int[np.ndarray, " N"] | None = None, *, ask_table: bool = True
) -> Labelled:
    """Checked arrays of `data`. Jit- and vmap-able.

    **Arguments:** `groups`: None for those that `Pairs` know; trajectories know none. `ask_table`: false for `off`
    nowhere.

    **Raises:** ValueError as `check_preferences`, for ties and pairs of weight 0, and for groups of another length.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import Pairs
    >>> from robust_rlhf_jax.preferences import as_labelled
    >>> pairs = Pairs(np.array([[3.0], [0.0]]), np.array([[1.0], [1.0]]))
    >>> as_labelled(pairs, groups=np.array(["Ann", "Ben"])).groups.tolist()
    [0, 1]
    """
    check_preferences(data)
    comparisons = None
    if isinstance(data, Pairs):
        check_decided(data)
        differences = data.preferred_differences()
        x, comparisons = jnp.asarray(differences), comparison_numbers(differences)
        labels, off = jnp.ones(len(x), x.dtype), jnp.zeros(len(x), bool)
        groups = data.clusters if groups is None else groups
    else:
        x = data.differences()
        labels = data.labels.astype(x.dtype)
        off = believed(off_table(data)) if ask_table else jnp.zeros(data.n_pairs, bool)
    numbers = None if groups is None else group_numbers(groups, data.n_pairs)
    return Labelled(x, labels, off, numbers, comparisons)


def comparison_numbers(x: Float[np.ndarray, "N k"]) -> Int[Array, " N"] | None:
    """Which two options each pair compares, by its differences and as numbers from 0, which fits take; None where
    hardly any comparison recurs, and under jit.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.preferences import comparison_numbers
    >>> first, second, again = comparison_numbers(np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0]]))
    >>> bool(first == again), bool(first == second)
    (True, False)
    """
    found = None if is_traced(x) else comparisons_of(x)
    return None if found is None else jnp.asarray(found)


def group_numbers(groups: Any, n_pairs: int, name: str = "group") -> Int[Array, " N"]:
    """Groups of any values as numbers from 0, which fits take; `name`: what a message calls one.

    **Raises:** ValueError for groups of another length than `n_pairs`, or traced ones.

    **Example:**

    >>> from robust_rlhf_jax.preferences import group_numbers
    >>> group_numbers(["Ann", "Ben", "Ann"], n_pairs=3).tolist()
    [0, 1, 0]
    """
    check_known(**{f"{name}s": groups})
    groups = each_named(groups)
    if groups.shape != (n_pairs,):
        raise ValueError(
            f"{name}s has shape {groups.shape}: give one {name} for each of the {n_pairs} pairs."
        )
    return jnp.asarray(np.unique(groups, return_inverse=True)[1].astype(np.int32))
