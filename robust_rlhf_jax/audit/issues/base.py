"""What an issue type gets, and what it returns about pairs."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Literal, Protocol

import numpy as np
from jaxtyping import Bool, Float

from robust_rlhf_jax.io import Pairs

from ..compared import ComparedByFields
from ..held_out import HeldOut
from ..shown_names import feature_words, shown_names
from .wordings import Wordings

# Words to which texts are cut where a trainer would: TRL and OpenRLHF train on about so many tokens.
TRUNCATED_AT = 512
# Reasons state no higher probability: a fit cannot be more certain of a label than this.
SURE = 0.999


@dataclasses.dataclass(frozen=True)
class Batch:
    """`pairs` as read; `held_out`: what fits say that did not see a pair; `truncate`: words that a trainer keeps;
    `said`: what the texts say, where that is known already.

    **Example:**

    >>> from robust_rlhf_jax import audit, preferences
    >>> pairs = preferences.rail_pairs().take(range(200))
    >>> batch = audit.Batch(pairs, audit.hold_out(pairs, folds=3, repeats=1))
    >>> batch.shown_names, batch.truncate
    (('price', 'time', 'change', 'comfort'), 512)
    """

    pairs: Pairs
    held_out: HeldOut
    truncate: int = TRUNCATED_AT
    said: Wordings | None = None

    @functools.cached_property
    def wordings(self) -> Wordings | None:
        """What the texts say; None without texts."""
        if self.said is not None or self.pairs.texts is None:
            return self.said
        return Wordings.read(self.pairs.texts)

    @functools.cached_property
    def feature_words(self) -> dict[str, dict[str, list[str]]]:
        """The words of each direction of hashed texts (`shown_names.feature_words`)."""
        return feature_words(self.pairs)

    @functools.cached_property
    def shown_names(self) -> tuple[str, ...]:
        """The features as people read them."""
        return shown_names(self.pairs, self.feature_words)


@dataclasses.dataclass(frozen=True, eq=False)
class Issue(ComparedByFields):
    """One kind of problem, pair by pair. Equal are two that say the same, whatever their sentences on pairs.

    | field | shape | meaning |
    |---|---|---|
    | `name` | | of the type |
    | `score` | [N] | in [0, 1], low is bad |
    | `flag` | [N] | whether the pair has the issue |
    | `explain` | row → str | one plain sentence on a flagged pair |
    | `certain` | | whether flags are facts of the file, not judgements of a fit |
    | `drop` | [N] or None | which pairs a cleaned copy leaves out; None: those flagged |
    | `summary` | | one sentence on the file |
    | `doubts` | | the pairs whose suspicion is at least 1 − score; "": none, since they merely teach nothing |
    | `suggests` | | what the label of flagged pairs is to be: "rejected" (flipped), "tie", "none"; "": as it is |
    | `weighs` | | whether the exported weight of flagged pairs is multiplied by the score, unless raters are rated |

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.audit import Issue
    >>> cheap = np.array([True, False])
    >>> issue = Issue("cheap", np.where(cheap, 0.2, 1.0), cheap, lambda row: "It costs little.", "1 of 2 is cheap.")
    >>> issue.dropped.tolist(), issue.explain(0)
    ([True, False], 'It costs little.')
    """

    name: str
    score: Float[np.ndarray, " N"]
    flag: Bool[np.ndarray, " N"]
    explain: Callable[[int], str] = dataclasses.field(compare=False)
    summary: str
    certain: bool = False
    drop: Bool[np.ndarray, " N"] | None = None
    doubts: Literal["every pair", "flagged pairs", ""] = ""
    suggests: Literal["rejected", "tie", "none", ""] = ""
    weighs: bool = False

    @property
    def dropped(self) -> Bool[np.ndarray, " N"]:
        return self.flag if self.drop is None else self.drop

    def __getstate__(self) -> dict[str, Any]:
        """The state with sentences on flagged pairs in place of the function, since pickle takes no local function."""
        told = {int(row): self.explain(int(row)) for row in np.flatnonzero(self.flag)}
        return {**self.__dict__, "explain": told.__getitem__}

    def checked(self, n: int) -> "Issue":
        """The issue, if it keeps the contract.

        **Raises:** ValueError for scores that are not [N] numbers in [0, 1], or flags that are not [N].
        """
        score, flag = np.asarray(self.score), np.asarray(self.flag)
        if score.shape != (n,) or flag.shape != (n,) or not np.all((score >= 0) & (score <= 1)):
            raise ValueError(
                f"issue {self.name!r} must give a score in [0, 1] and a flag for each of {n} pairs."
            )
        return self


class IssueType(Protocol):
    """batch → `Issue`, or None where the file cannot have it (no texts, no raters)."""

    def __call__(self, batch: Batch) -> Issue | None: ...


def as_chance(probability: float) -> str:
    """A chance in words, such as "97.3%", at most "more than 99.9%"."""
    return f"{probability:.1%}" if probability < SURE else f"more than {SURE:.1%}"


def counted(count: int, of: int, what: str) -> str:
    """A count in words, such as "12 of 3,000 pairs (0.4 %) have identical sides."."""
    return f"{count:,} of {of:,} pairs ({count / max(of, 1):.1%}) {what}."
