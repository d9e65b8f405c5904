"""`Pairs`: which of two options was preferred, by whom, and in which row of which file."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Int

from robust_rlhf_jax.checks import check_known, check_labels, is_traced
from robust_rlhf_jax.row_order import check_rows
from robust_rlhf_jax.terminal import counted

from .bad_cells import BadCell
from .featurisers import Featuriser
from .frames import aligned_frames, column_names, usual_names
from .given_arrays import array_of, as_floats, of_numbers, same, traced_or_host, where
from .table import Source
from .texts import Texts
from .unnamed_raters import each_named

if TYPE_CHECKING:
    from .descriptions import Description

# Groups below which folds that split none would leave too little to fit.
FEWEST_GROUPS = 10
BY_PAIR = ("swapped", "strength", "raters", "weights", "ids", "groups", "rows", "second_rows")
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
    | `ids`, `groups` | [N] or None | the name of each pair (or ""); which pairs are dependent (one ranking, one id) |
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
        check_rows(**{name: getattr(self, name) for name in ("chosen", "rejected", *BY_PAIR)})
        rejected, columns = aligned_frames(self.chosen, self.rejected)
        object.__setattr__(self, "names", _listed(self.names))
        _check_order(self.names, columns)
        object.__setattr__(self, "rejected", rejected)
        for name in ("chosen", "rejected", *BY_PAIR):
            object.__setattr__(self, name, array_of(getattr(self, name), name))
        for name in ("chosen", "rejected", "strength", "weights"):
            object.__setattr__(self, name, of_numbers(getattr(self, name)))
        for name in ("strength", "weights"):
            _check_numbers(getattr(self, name), name)
        for name in ("raters", "groups"):
            if getattr(self, name) is not None and not is_traced(getattr(self, name)):
                object.__setattr__(self, name, each_named(getattr(self, name)))
        n, p = (*np.shape(self.chosen), 0, 0)[:2]
        alike = np.ndim(self.chosen) == 2 and np.shape(self.chosen) == np.shape(self.rejected)
        if alike and self.names is not None and len(self.names) != p:
            raise ValueError(f"names has length {len(self.names)}: give one for each of the {p} features.")
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
        x, signs = map(traced_or_host, (differences, labels))
        if x.dtype.kind in "biu":  # whole numbers of few bits hold no −1, or not all that a sign turns round
            x = as_floats(x)
        if signs.shape != x.shape[:1]:
            raise ValueError(f"labels has shape {signs.shape}: give one label for each of {len(x)} pairs.")
        check_labels(signs)
        float_type = jax.dtypes.canonicalize_dtype(x.dtype) if is_traced(signs) else x.dtype
        chosen = x * signs.astype(float_type)[:, None]
        nothing = np.broadcast_to(np.zeros((), x.dtype), x.shape)
        names = column_names(differences) or None
        rest: dict[str, Any] = {"kind": "arrays", "swapped": signs < 0, "names": names} | fields
        return cls(chosen, nothing, **rest)

    @property
    def __jax_array__(self) -> Any:
        """JAX looks for this where `jax.jit` or the like is given what it does not know.

        **Raises:** ValueError, always: of a TypeError it would say something else.
        """
        raise ValueError(
            "Pairs cannot go into jax.jit, jax.vmap or functions of arrays, since they hold texts and names: call "
            "fit_reward(pairs) and the like as they are, which compile what they do, or give the arrays "
            "pairs.differences() and pairs.labels, of which Pairs.of_differences makes Pairs inside."
        )

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
        return all(same(getattr(self, name), getattr(other, name)) for name in compared)

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
        pairs, features = counted(self.n_pairs, "pair"), counted(len(self.names), "feature")
        return f"Pairs({pairs}{origin} of {features} ({some}){beside})"

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
        return where(self.ties, 0, where(self.swapped, -1, 1))

    def differences(self) -> Float[np.ndarray, "N p"]:
        """x = φ(first) − φ(second), in the features' own precision: what `labels` speak about."""
        x = self.preferred_differences()
        if is_traced(self.swapped) or self.swapped.any():
            return where(self.swapped[:, None], -x, x)
        return x

    def preferred_differences(self) -> Float[np.ndarray, "N p"]:
        """φ(chosen) − φ(rejected), in the features' own precision."""
        with np.errstate(over="ignore"):
            return as_floats(self.chosen) - as_floats(self.rejected)

    @property
    def clusters(self) -> np.ndarray | None:
        """Groups of dependent labels: those of one ranking or pair, else of one rater; None where nobody says, or they
        are too few to be told apart.

        **Raises:** ValueError for traced groups or raters.
        """
        return clusters_of(self.groups, self.raters)

    @property
    def fitted(self) -> Bool[np.ndarray, " N"]:
        """Which pairs a fit can use: no tie, weight above 0.

        **Raises:** ValueError for strengths or weights of another number, or traced ones.
        """
        check_known(strength=self.strength, weights=self.weights)
        # NumPy would spread one weight, or a column of them, over all pairs.
        for name in ("strength", "weights"):
            check_length(getattr(self, name), name, self.n_pairs)
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
        names = ("chosen", "rejected", *BY_PAIR)
        parts: dict[str, Any] = {
            name: part[rows] for name in names if (part := getattr(self, name)) is not None
        }
        return dataclasses.replace(self, **parts, texts=self.texts and self.texts.take(rows))


def given_names(pairs: Pairs) -> tuple[str, ...]:
    """What the features are called; () where nobody named them."""
    return () if pairs.names == usual_names(len(pairs.names)) else pairs.names


def _listed(names: Any) -> tuple | None:
    """The names as a tuple, since a generator is read once.

    **Raises:** ValueError for a set, a text, and what is no list.
    """
    if isinstance(names, set | frozenset):
        raise ValueError("names is a set, which has no order: give a list, in the order of the columns.")
    if isinstance(names, str | bytes) or not isinstance(names, Iterable | None):
        raise ValueError(f"names is {names!r}: give a list with a name for each column, such as ['price'].")
    return None if names is None else tuple(names)


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
    check_known(groups=groups, raters=raters)
    for found in (groups, raters):
        if found is not None and len(np.unique(found)) >= FEWEST_GROUPS:
            return found
    return None


def _check_numbers(values: Any, name: str) -> None:
    """**Raises:** ValueError for what is neither None nor numbers, before it is asked which are above 0."""
    if values is not None and getattr(values, "dtype", np.asarray(0).dtype).kind not in "biufV":
        raise ValueError(f"{name} has dtype {values.dtype}: give a number for each pair.")


def check_length(values: Any, name: str, n: int) -> None:
    """**Raises:** ValueError for what is neither None nor [n]."""
    if values is not None and np.shape(values) != (n,):
        raise ValueError(f"{name} has shape {np.shape(values)}: give one for each of the {n} pairs.")
