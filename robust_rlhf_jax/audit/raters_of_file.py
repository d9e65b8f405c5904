"""Who labelled the file: what each rater is like, and how far raters of the same pair agree."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.io.unnamed_raters import has_name
from robust_rlhf_jax.raters import Agreement, RaterTable, krippendorff_alpha, rate_raters
from robust_rlhf_jax.raters.kinds import BAD
from robust_rlhf_jax.raters.rating import MOST_AXES
from robust_rlhf_jax.terminal import counted, harmless, some_of

# Axes of a file with too many features in which the taste of a rater is told: those along which pairs differ most.
KEPT_AXES = 32
# Raters times the square of axes, and pairs, above which rating them takes many minutes and gigabytes.
MOST_NUMBERS, MOST_PAIRS = 20_000_000, 200_000


class RatersOfFile(NamedTuple):
    """`table` of the raters of the pairs that a fit can use (`Pairs.decided`), or `why_not`: the sentence that says why
    there is none; `agreement` among raters of the same pair, None where no pair has two.
    """

    table: RaterTable | None
    why_not: str
    agreement: Agreement | None

    def sentences(self) -> list[str]:
        """What an audit prints of the raters."""
        said = [self.why_not] if self.table is None else [_kinds(self.table)]
        if self.agreement is not None:
            a = self.agreement
            said.append(
                f"Raters of the same pair agree with Krippendorff's α = {a.alpha:.2f} (95 % interval {a.low:.2f} to "
                f"{a.high:.2f}; {a.units:,} pairs)."
            )
        return said

    def weights_of(self, pairs: Pairs) -> Float[np.ndarray, " N"]:
        """What the rater of each pair counts: 1 where nobody is named, or there is no table."""
        if self.table is None or pairs.raters is None:
            return np.ones(pairs.n_pairs)
        weights = {row.name: row.weight for row in self.table.rows}
        return np.array([weights.get(str(name), 1.0) for name in pairs.raters])

    def of_bad_raters(self, pairs: Pairs) -> Bool[np.ndarray, " N"]:
        """The pairs of raters whose kind is called bad."""
        if self.table is None or pairs.raters is None:
            return np.zeros(pairs.n_pairs, bool)
        return np.isin(pairs.raters.astype(str), self._bad())

    def dropped(self, pairs: Pairs) -> str:
        """What `--drop-raters` leaves out, and of whom."""
        bad, lost = self._bad(), int(self.of_bad_raters(pairs).sum())
        if not bad:
            return "--drop-raters: no rater looks random, contrary, or a habit."
        return (
            f"--drop-raters: left out {counted(lost, 'pair')} of {counted(len(bad), 'rater')}{_named(bad)}."
        )

    def may_drop(self, pairs: Pairs) -> list[str]:
        """How to leave bad raters out, where there are any."""
        lost = int(self.of_bad_raters(pairs).sum())
        said = (
            f"To leave out the {counted(lost, 'pair')} of raters in brackets, add --clean FILE --drop-raters."
        )
        return [said] if lost else []

    def _bad(self) -> list[str]:
        return [] if self.table is None else [row.name for row in self.table.rows if row.kind in BAD]


def rate_file(pairs: Pairs) -> RatersOfFile | None:
    """Raters of a file; None where it names none."""
    if pairs.raters is None:
        return None
    told = pairs.fitted & has_name(pairs.raters)
    decided = pairs.take(np.flatnonzero(told))
    n_raters, axes = len(np.unique(pairs.raters[told])), len(pairs.names)
    why_not = ""
    if n_raters < 2:
        whole = (
            "All pairs have one rater"
            if decided.n_pairs == pairs.fitted.sum()
            else "Fewer than two raters have names"
        )
        why_not = f"{whole}: there is nobody to compare them with."
    elif n_raters * min(axes, KEPT_AXES) ** 2 > MOST_NUMBERS:
        why_not = f"{n_raters:,} raters are too many to tell the taste of each."
    elif decided.n_pairs > MOST_PAIRS:
        why_not = (
            f"Raters are rated in files of up to {MOST_PAIRS:,} pairs; this one has {decided.n_pairs:,}."
        )
    table = None if why_not else _rated(decided)
    return RatersOfFile(table, why_not, agreement_in(pairs))


def _rated(pairs: Pairs) -> RaterTable:
    x = np.asarray(pairs.differences(), np.float32)
    names = pairs.names
    if x.shape[1] > MOST_AXES:
        x, names = _main_axes(x), tuple(f"principal component {i + 1}" for i in range(KEPT_AXES))
    seen = Pairs.of_differences(x, pairs.labels, names=names)
    return rate_raters(seen, pairs.raters, chose_first=_chose_first(pairs), chose_longer=_chose_longer(pairs))


def _main_axes(x: Float[np.ndarray, "N k"]) -> Float[np.ndarray, "N r"]:
    """x along the axes of largest second moment; columns without units first."""
    size = np.sqrt(np.mean(x**2, axis=0))
    x = x / np.where(size > 0, size, 1.0)
    _, axes = np.linalg.eigh(x.T @ x)
    return x @ axes[:, ::-1][:, :KEPT_AXES]


def _chose_first(pairs: Pairs) -> Int[np.ndarray, " N"] | None:
    """±1 by the place of the chosen option; None if it is the same in all pairs: the file's order, not a habit."""
    return np.where(pairs.swapped, -1, 1) if len(np.unique(pairs.swapped)) == 2 else None


def _chose_longer(pairs: Pairs) -> list[bool | None] | None:
    """Whether the chosen side is longer, None if both are equal: booleans, since 0 and 1 could be taken for such."""
    if pairs.texts is None:
        return None
    both = zip(pairs.texts.chosen, pairs.texts.rejected, strict=True)
    ahead = (len(chosen.split()) - len(rejected.split()) for chosen, rejected in both)
    return [None if words == 0 else words > 0 for words in ahead]


def agreement_in(pairs: Pairs) -> Agreement | None:
    """Krippendorff's α of the labels of pairs with the same two options, in either order; a tie is a third value.

    A rater counts once in a pair, however many rows repeat it, and not at all where these contradict each other: how
    far somebody agrees with themselves is not how far raters agree.
    """
    units, values = [], []
    for i, (chosen, rejected) in enumerate(_sides(pairs)):
        units.append((chosen, rejected) if chosen <= rejected else (rejected, chosen))
        values.append("tie" if pairs.ties[i] else "first" if chosen <= rejected else "second")
    said = _once(pairs, units, values)
    number = {unit: k for k, unit in enumerate(dict.fromkeys(unit for unit, _ in said))}
    exchanged = {"first": "second", "second": "first", "tie": "tie"}
    numbers = np.array([number[unit] for unit, _ in said])
    return krippendorff_alpha(numbers, np.array([value for _, value in said]), opposite=exchanged)


def _once(pairs: Pairs, units: list[tuple], values: list[str]) -> list[tuple[tuple, str]]:
    """(unit, value) of each rater; a pair that names none is a rater of its own."""
    said: dict[tuple, tuple[tuple, set[str]]] = {}
    named = np.zeros(len(units), bool) if pairs.raters is None else has_name(pairs.raters)
    for i, (unit, value) in enumerate(zip(units, values, strict=True)):
        who = str(pairs.raters[i]) if pairs.raters is not None and named[i] else i
        said.setdefault((unit, who), (unit, set()))[1].add(value)
    return [(unit, next(iter(found))) for unit, found in said.values() if len(found) == 1]


def _sides(pairs: Pairs) -> list[tuple]:
    """What tells the two options of each pair apart from others: their texts with the prompt, else their features."""
    if pairs.texts is not None:
        t = pairs.texts
        return [((p, a), (p, b)) for p, a, b in zip(t.prompt, t.chosen, t.rejected, strict=True)]
    if pairs.kind == "arrays":
        differences = np.asarray(pairs.preferred_differences()) + 0.0
        return [(row.tobytes(), (0.0 - row).tobytes()) for row in differences]
    chosen, rejected = np.asarray(pairs.chosen) + 0.0, np.asarray(pairs.rejected) + 0.0
    return [(a.tobytes(), b.tobytes()) for a, b in zip(chosen, rejected, strict=True)]


def _kinds(table: RaterTable) -> str:
    """How many are of each kind, and who is of those that `--drop-raters` leaves out."""
    names = {kind: [row.name for row in table.rows if row.kind == kind] for kind in table.counts()}
    counts = [
        f"{len(who):,} {kind}{_named(who) if kind in BAD else ''}" for kind, who in names.items() if who
    ]
    return f"Raters: {', '.join(counts)}."


def _named(names: list[str]) -> str:
    return some_of([harmless(name) for name in names])
