"""What a reward fit sees of either kind of preferences: checked differences and labels as arrays."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.io.nobody import each_named

from .data import PreferenceData
from .table_check import believed, off_table
from .validation import check_decided, check_preferences


class Labelled(NamedTuple):
    """`x` [N, k]: P(label o_n) = σ(o_nθᵀx_n); `labels` [N], ±1; `off` [N]: pairs that a table contradicts; `groups`
    [N]: which labels are dependent, as numbers from 0, or None.

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
    if isinstance(data, Pairs):
        check_decided(data)
        x = jnp.asarray(data.preferred_differences())
        labels, off = jnp.ones(len(x), x.dtype), jnp.zeros(len(x), bool)
        groups = data.clusters if groups is None else groups
    else:
        x = data.differences()
        labels = data.labels.astype(x.dtype)
        off = believed(off_table(data)) if ask_table else jnp.zeros(data.n_pairs, bool)
    return Labelled(x, labels, off, None if groups is None else group_numbers(groups, data.n_pairs))


def group_numbers(groups: Any, n_pairs: int, name: str = "group") -> Int[Array, " N"]:
    """Groups of any values as numbers from 0, which fits take; `name`: what a message calls one.

    **Raises:** ValueError for groups of another length than `n_pairs`.

    **Example:**

    >>> from robust_rlhf_jax.preferences import group_numbers
    >>> group_numbers(["Ann", "Ben", "Ann"], n_pairs=3).tolist()
    [0, 1, 0]
    """
    groups = groups if isinstance(groups, jax.Array) else each_named(groups)
    if groups.shape != (n_pairs,):
        raise ValueError(
            f"{name}s has shape {groups.shape}: give one {name} for each of the {n_pairs} pairs."
        )
    return jnp.asarray(np.unique(groups, return_inverse=True)[1].astype(np.int32))
