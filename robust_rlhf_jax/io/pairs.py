"""`Pairs`: which of two options was preferred, by whose word, and where a file says so."""

import dataclasses
import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Int

from robust_rlhf_jax.checks import check_labels, is_traced
from robust_rlhf_jax.terminal import counted

from .bad_cells import BadCell
from .featurisers import Featuriser
from .frames import aligned_frames, check_rows, column_names, is_arrow, unmasked, usual_names
from .nobody import each_named
from .table import Source
from .texts import Texts

if TYPE_CHECKING:
    from .descriptions import Description

# Groups below which folds that split none would leave too little to fit.
FEWEST_GROUPS = 10
_BY_PAIR = ("swapped", "strength", "raters", "weights", "ids", "groups", "rows", "second_rows")
_BLOCK = 4096
# Names of features that a representation lists.
SHOWN = 6
# What `__post_init__` puts there, where nobody says.
_USUAL: Any = None


@dataclasses.dataclass(frozen=True, repr=False)
class Pairs:
    """N labelled pairs of options, the preferred one called chosen (of a tie: the first). It needs no table.

    | field | shape | meaning |
    |---|---|---|
    | `chosen`, `rejected` | [N, p] | features of the two options, NumPy or JAX |
    | `swapped` | [N] | whether the chosen option is the second one; by default never |
    | `strength` | [N] | how strong the preference is, 0 a tie; 1 where nobody says; fits tell ties from others alone |
    | `names` | | of the features; by default the columns of data frames, else f0, f1, … |
    | `raters`, `weights` | [N] or None | who labelled each pair (None, NaN: nobody knows); 0 for no part in a \
fit: other weights go on to exports, and fits count every pair as 1 |
    | `ids`, `groups` | [N] or None | the name of each pair; which pairs are dependent (one ranking, one id) |
    | `texts` | or None | prompt, chosen and rejected text of each pair |
    | `kind` | | what the features are made of; "arrays" where only their differences are known |
    | `path`, `format`, `schema` | | the file, its container, and the way in which its preferences are written |
    | `rows`, `n_rows` | [N], | the file's row of each pair, from 0, several times for several pairs; how many it has |
    | `second_rows` | [N] or None | the file's row of each pair's second option, where it is another |
    | `featuriser` | or None | what made features of texts |
    | `columns` | | all columns of the file |
    | `unused`, `bad` | | columns that were not used, with the reason; cells of rows that were skipped |
    | `source`, `description` | or None | what an export needs; what was understood, to be shown |

    `Pairs(chosen, rejected)` is enough. Texts, raters and ids stay on the host: fits see arrays alone. `check_pairs`
    says what is wrong with one.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import Pairs
    >>> pairs = Pairs(np.array([[3.0, 1.0], [0.0, 2.0]]), np.array([[1.0, 1.0], [1.0, 0.0]]), names=("price", "time"))
    >>> pairs.differences().tolist(), pairs.labels.tolist()
    ([[2.0, 0.0], [-1.0, 2.0]], [1, 1])
    """

    chosen: Float[np.ndarray, "N p"]
    rejected: Float[np.ndarray, "N p"]
    _: dataclasses.KW_ONLY
    swapped: Bool[np.ndarray, " N"] = _USUAL
    strength: Float[np.ndarray, " N"] = _USUAL
    names: tuple[str, ...] = _USUAL
    raters: np.ndarray | None = None
    weights: Float[np.ndarray, " N"] | None = None
    ids: np.ndarray | None = None
    groups: Int[np.ndarray, " N"] | None = None
    texts: Texts | None = None
    kind: str = "numeric"
    path: Path = Path("pairs")
    format: str = "arrays"
    schema: str = "columns"
    rows: Int[np.ndarray, " N"] = _USUAL
    n_rows: int = _USUAL
    second_rows: Int[np.ndarray, " N"] | None = None
    featuriser: Featuriser | None = dataclasses.field(default=None, compare=False)
    columns: tuple[str, ...] = ()
    unused: dict[str, str] = dataclasses.field(default_factory=dict)
    bad: tuple[BadCell, ...] = ()
    source: Source | None = dataclasses.field(default=None, compare=False)
    description: "Description | None" = dataclasses.field(default=None, compare=False)

    def __post_init__(self):
        check_rows(**{name: getattr(self, name) for name in ("chosen", "rejected", *_BY_PAIR)})
        rejected, columns = aligned_frames(self.chosen, self.rejected)
        if isinstance(self.names, set | frozenset):
            raise ValueError("names is a set, which has no order: give a list, in the order of the columns.")
        _check_order(self.names, columns)
        object.__setattr__(self, "rejected", rejected)
        for name in ("chosen", "rejected", *_BY_PAIR):
            object.__setattr__(self, name, _array(getattr(self, name), name))
        for name in ("chosen", "rejected", "strength", "weights"):
            object.__setattr__(self, name, _of_numbers(getattr(self, name)))
        for name in ("strength", "weights"):
            _check_numbers(getattr(self, name), name)
        for name in ("raters", "groups"):
            if getattr(self, name) is not None and not is_traced(getattr(self, name)):
                object.__setattr__(self, name, each_named(getattr(self, name)))
        n, p = (*np.shape(self.chosen), 0, 0)[:2]
        usual = {
            "swapped": lambda: np.zeros(n, bool),
            "strength": lambda: np.ones(n),
            "names": lambda: columns or usual_names(p),
            "rows": lambda: np.arange(n),
            "n_rows": lambda: n,
        }
        for name, make in usual.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, make())
        object.__setattr__(self, "names", tuple(map(str, self.names)))

    @classmethod
    def of_differences(
        cls, differences: Float[ArrayLike, "N p"], labels: Float[ArrayLike, " N"], **fields: Any
    ) -> "Pairs":
        """Pairs of which only x = φ(first) − φ(second) is known; `labels` +1 where the first is preferred, −1 the
        second, with further `fields`.

        **Raises:** ValueError for labels other than ±1, another number of them, or columns whose rows have the same
        index as those of others in another order.

        **Example:**

        >>> import numpy as np
        >>> from robust_rlhf_jax import Pairs
        >>> Pairs.of_differences(np.array([[2.0], [1.0]]), np.array([1, -1])).preferred_differences().tolist()
        [[2.0], [-1.0]]
        """
        check_rows(differences=differences, labels=labels, **fields)
        x, signs = map(_traced_or_host, (differences, labels))
        if x.dtype.kind in "biu":  # whole numbers of few bits hold no −1, or not all that a sign turns round
            x = _floats(x)
        if signs.shape != x.shape[:1]:
            raise ValueError(f"labels has shape {signs.shape}: give one label for each of {len(x)} pairs.")
        check_labels(signs)
        chosen = x * signs.astype(x.dtype)[:, None]
        nothing = np.broadcast_to(np.zeros((), x.dtype), x.shape)
        names = column_names(differences) or None
        rest: dict[str, Any] = {"kind": "arrays", "swapped": signs < 0, "names": names} | fields
        return cls(chosen, nothing, **rest)

    @property
    def n_pairs(self) -> int:
        return len(self.rows)

    def __len__(self) -> int:
        return self.n_pairs

    def __eq__(self, other: object) -> bool:
        """Whether all fields are the same but for how a file was read: `featuriser`, `source`, `description`."""
        if not isinstance(other, Pairs):
            return NotImplemented
        compared = [field.name for field in dataclasses.fields(self) if field.compare]
        return all(_same(getattr(self, name), getattr(other, name)) for name in compared)

    def __repr__(self) -> str:
        """How many pairs, of which features, from where."""
        some = ", ".join(self.names[:SHOWN]) + (", …" if len(self.names) > SHOWN else "")
        known = [
            name
            for name in ("raters", "weights", "ids", "groups", "texts")
            if getattr(self, name) is not None
        ]
        beside = f"; with {', '.join(known)}" if known else ""
        origin = "" if self.path == Path("pairs") else f" of {self.path}"
        return (
            f"Pairs({self.n_pairs:,} pairs{origin} of {counted(len(self.names), 'feature')} ({some}){beside})"
        )

    @property
    def n_skipped(self) -> int:
        """How many rows of the file were skipped because they are unusable."""
        return len({cell.row for cell in self.bad})

    @property
    def ties(self) -> Bool[np.ndarray, " N"]:
        return self.strength == 0

    @property
    def labels(self) -> Int[np.ndarray, " N"]:
        """+1 where the first option is preferred, −1 the second, 0 a tie."""
        return _where(self.ties, 0, _where(self.swapped, -1, 1))

    def differences(self) -> Float[np.ndarray, "N p"]:
        """x = φ(first) − φ(second), in the features' own precision: what `labels` speak about."""
        x = self.preferred_differences()
        if is_traced(self.swapped) or self.swapped.any():
            return _where(self.swapped[:, None], -x, x)
        return x

    def preferred_differences(self) -> Float[np.ndarray, "N p"]:
        """φ(chosen) − φ(rejected), in the features' own precision."""
        with np.errstate(over="ignore"):
            return _floats(self.chosen) - _floats(self.rejected)

    @property
    def clusters(self) -> np.ndarray | None:
        """Groups of dependent labels: those of one ranking or pair, else of one rater; None where nobody says, or they
        are too few to be told apart."""
        return clusters_of(self.groups, self.raters)

    @property
    def fitted(self) -> Bool[np.ndarray, " N"]:
        """Which pairs a fit can use: no tie, weight above 0.

        **Raises:** ValueError for strengths or weights of another number.
        """
        # NumPy would spread one weight, or a column of them, over all pairs.
        for name in ("strength", "weights"):
            _check_length(getattr(self, name), name, self.n_pairs)
        return ~self.ties if self.weights is None else ~self.ties & (self.weights > 0)

    def decided(self) -> "Pairs":
        """The pairs that a fit can use."""
        return self if self.fitted.all() else self.take(np.flatnonzero(self.fitted))

    def take(self, rows: Int[ArrayLike, " M"]) -> "Pairs":
        """The pairs at `rows`, in that order, or those where `rows` [N] is true.

        **Raises:** ValueError for other rows than those of the pairs.
        """
        rows, n = np.asarray(rows), self.n_pairs
        if rows.dtype == bool and rows.shape == (n,):
            rows = np.flatnonzero(rows)
        rows = rows if rows.size else rows.astype(int)
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or ((rows < -n) | (rows >= n)).any():
            raise ValueError(f"rows must be numbers of pairs, from 0 to {n - 1}, or {n} times true or false.")
        names = ("chosen", "rejected", *_BY_PAIR)
        parts: dict[str, Any] = {
            name: part[rows] for name in names if (part := getattr(self, name)) is not None
        }
        return dataclasses.replace(self, **parts, texts=self.texts and self.texts.take(rows))


def _check_order(names: Any, columns: tuple[str, ...]) -> None:
    """**Raises:** ValueError for names that are those of the columns in another order: each would name another one."""
    given = columns if names is None else tuple(map(str, names))
    if columns and given != columns and sorted(given) == sorted(columns):
        raise ValueError(
            f"names are those of the columns, {', '.join(columns)}, in another order: leave them out, or order the "
            "columns."
        )


def clusters_of(groups: np.ndarray | None, raters: np.ndarray | None) -> np.ndarray | None:
    """`Pairs.clusters` of these, each pair named (`each_named`)."""
    for found in (groups, raters):
        if found is not None and len(np.unique(found)) >= FEWEST_GROUPS:
            return found
    return None


def _same(one: Any, other: Any) -> bool:
    arrays = any(hasattr(value, "shape") for value in (one, other))
    return np.array_equal(one, other) if arrays else bool(one == other)


def _traced_or_host(values: Any) -> Any:
    """Values that only the compiler knows as they are, others as an array of NumPy."""
    return values if is_traced(values) else np.asarray(unmasked(values))


def _where(condition: Any, one: Any, other: Any) -> Any:
    """`np.where`, also of what only the compiler knows."""
    return (jnp if any(map(is_traced, (condition, one, other))) else np).where(condition, one, other)


def _array(values: Any, name: str) -> Any:
    """Lists, and columns and frames of pandas, Arrow and the like, as arrays; arrays and None as they are.

    **Raises:** ValueError for a list of lists of several lengths.
    """
    if isinstance(values, list | tuple):
        try:
            return np.asarray([unmasked(value) for value in values])
        except ValueError:
            raise ValueError(
                f"{name} is a list whose entries have several lengths: give entries of one length."
            ) from None
    if is_arrow(values):  # a column of words goes into NumPy by a copy alone, which its `to_numpy` refuses
        return np.asarray(values)
    return values.to_numpy() if hasattr(values, "to_numpy") else unmasked(values)


def _of_numbers(side: Any) -> Any:
    """Options that are columns of lists as a matrix, and true, false and numbers of several types as floats."""
    if not isinstance(side, np.ndarray) or side.dtype != object or not side.size:
        return side
    if side.ndim == 1 and len({np.shape(row) for row in side}) == 1 and np.ndim(side[0]) == 1:
        side = np.stack(list(side))
    if side.dtype == object and all(
        isinstance(cell, int | float | np.number | np.bool_) for cell in side.flat
    ):
        return side.astype(float)
    return side


def _check_numbers(values: Any, name: str) -> None:
    """**Raises:** ValueError for what is neither None nor numbers, before it is asked which are above 0."""
    if values is not None and getattr(values, "dtype", np.asarray(0).dtype).kind not in "biufV":
        raise ValueError(f"{name} has dtype {values.dtype}: give a number for each pair.")


def _check_length(values: Any, name: str, n: int) -> None:
    """**Raises:** ValueError for what is neither None nor [n]."""
    if values is not None and np.shape(values) != (n,):
        raise ValueError(f"{name} has shape {np.shape(values)}: give one for each of the {n} pairs.")


def _truths(values: np.ndarray) -> bool:
    """Whether they are true and false, or 0 and 1: −1 and words count as true."""
    if values.dtype == object:
        return all(isinstance(value, bool | np.bool_) for value in values.flat)
    return values.dtype.kind in "biuf" and bool(np.isin(values, (0, 1)).all())


def _floats(side: Any) -> Any:
    """Features as an array of at least float32; JAX arrays stay where they are."""
    side = side if isinstance(side, jax.Array) else np.asarray(side)
    if side.dtype in (np.float32, np.float64):
        return side
    # JAX has no longer floats than float64.
    wanted = np.float64 if side.dtype == np.longdouble else np.result_type(side.dtype, np.float32)
    return side.astype(wanted)


def check_pairs(pairs: Pairs) -> None:
    """Check shapes, dtypes and values of `pairs` on the host; return nothing. Traced features are taken as they are.

    **Raises:** ValueError that names the file, if any, and the first field that is wrong.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import Pairs, check_preferences
    >>> check_preferences(Pairs(np.ones((2, 1)), np.ones((2, 1))))
    Traceback (most recent call last):
    ValueError: Both options of every pair have the same features, or as good as the same in float32, so no direction \
of theta can be learnt: give pairs that differ.
    """
    try:
        _check_fields(pairs)
        if not is_traced(pairs.chosen) and not is_traced(pairs.rejected):
            _check_features(pairs)
    except ValueError as error:
        raise ValueError(str(error) if pairs.path == Path("pairs") else f"{pairs.path}: {error}") from None


def _check_fields(pairs: Pairs) -> None:
    for side in ("chosen", "rejected"):
        values = getattr(pairs, side)
        if hasattr(values, "toarray"):
            raise ValueError(f"{side} is a sparse matrix: give {side}.toarray().")
        dtype, shape = getattr(values, "dtype", None) or np.asarray(values).dtype, np.shape(values)
        if dtype.kind not in "biuf" and not jnp.issubdtype(dtype, jnp.floating):
            raise ValueError(
                f"{side} has dtype {dtype}: give an array of numbers{_no_number(values, side, pairs.names)}."
            )
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"{side} has shape {shape}: give [N, p], with N ≥ 1 pairs of p ≥ 1 features.")
    shapes = np.shape(pairs.chosen), np.shape(pairs.rejected)
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"chosen has shape {shapes[0]} and rejected {shapes[1]}: both must be the same [N, p]."
        )
    if not is_traced(pairs.swapped) and not _truths(np.asarray(pairs.swapped)):
        raise ValueError("swapped must be true or false for each pair.")
    n, p = shapes[0]
    for name in _BY_PAIR:
        _check_length(getattr(pairs, name), name, n)
    if len(pairs.names) != p:
        raise ValueError(f"names has {len(pairs.names)} entries: give one for each of the {p} features.")
    for name in ("weights", "strength"):
        part = getattr(pairs, name)
        if part is not None and not np.all((part >= 0) & np.isfinite(part)):
            raise ValueError(f"{name} must be finite and not negative.")


def _no_number(values: Any, side: str, names: Sequence[str]) -> str:
    """Which entry of an array of objects is the first that is no number, for a message."""
    array = np.asarray(values)
    for at, cell in np.ndenumerate(array) if array.dtype == object else ():
        if not isinstance(cell, int | float | np.number | np.bool_):
            place = f"[{', '.join(map(str, at))}]" if at else ""
            column = f" ({names[at[1]]})" if len(at) == 2 and len(names) == array.shape[1] else ""
            return f"; {side}{place}{column} is {reprlib.repr(cell)}"
    return ""


def _check_features(pairs: Pairs) -> None:
    """Features, and what they differ by, fit into JAX's floats, somewhere they differ, and no column is lost there."""
    chosen, rejected = np.asarray(_floats(pairs.chosen)), np.asarray(_floats(pairs.rejected))
    for side, values in (("chosen", chosen), ("rejected", rejected)):
        wrong = np.argwhere(~np.isfinite(values))
        if len(wrong):
            at = tuple(wrong[0])
            raise ValueError(f"{side}[{at[0]}, {at[1]}] is {values[at]}: every entry must be finite.")
    x = np.asarray(pairs.preferred_differences())
    float_type = jax.dtypes.canonicalize_dtype(x.dtype)
    limits = jnp.finfo(float_type)
    for what, values in (("chosen_", chosen), ("rejected_", rejected), ("chosen − rejected ", x)):
        # Of another precision than their difference, a side may not hold the limit.
        with np.errstate(over="ignore"):
            wrong = np.argwhere(np.abs(values) > float(limits.max))
        if len(wrong):
            at = tuple(wrong[0])
            raise ValueError(
                f"column {what}{pairs.names[at[1]]} is {values[at]:g} in row {pairs.rows[at[0]] + 1}, more than a "
                f"float holds ({float(limits.max):.2g}): give the feature in a larger unit."
            )
    # Almost always the first block settles it, so that large data cost nothing here.
    blocks = (x[i : i + _BLOCK] for i in range(0, len(x), _BLOCK))
    if not any((np.abs(block) >= float(limits.tiny)).any() for block in blocks):
        raise ValueError(
            "Both options of every pair have the same features, or as good as the same in "
            f"{float_type}, so no direction of theta can be learnt: give pairs that differ."
        )
    check_columns_kept(x, "chosen − rejected", pairs.names)


def check_columns_kept(x: Float[np.ndarray, "N p"], what: str, names: Sequence[str]) -> None:
    """**Raises:** ValueError for a column of differences that JAX's floats make 0."""
    float_type = jax.dtypes.canonicalize_dtype(x.dtype)
    if x.dtype == float_type:
        return
    lost = np.flatnonzero(x.any(axis=0) & ~(np.abs(x) >= jnp.finfo(float_type).tiny).any(axis=0))
    if len(lost):
        raise ValueError(
            f"column {what} {names[lost[0]]} is as good as 0 in {float_type}: give the feature in a smaller unit."
        )
