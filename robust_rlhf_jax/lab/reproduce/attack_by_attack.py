"""Attack by attack: how far the best rival is ahead of the best of ours."""

from typing import Any, NamedTuple

from robust_rlhf_jax.lab.sweeps.programs import REFERENCE

from .robustness import best_of
from .worst_case import WorstCase, worst_cases

# A lead below this is within the spread of five data sets.
COUNTS = 0.02


class Duel(NamedTuple):
    """Under one attack at one ε: the names with the highest median return over data sets, and those returns."""

    attack: str
    rival: str
    rival_return: float
    ours: str
    our_return: float

    @property
    def lead(self) -> float:
        """How far the rival is ahead; negative if ours is."""
        return self.rival_return - self.our_return


def duels(rows: list[dict[str, Any]], ours: tuple[str, ...]) -> dict[tuple[str, float], list[Duel]]:
    """(family, ε) → a `Duel` per attack; the oracle that is shown the clean data takes no part."""
    returns: dict[tuple[str, float], dict[str, dict[str, float]]] = {}
    for attack in dict.fromkeys(row["attack"] for row in rows):
        under = [row for row in rows if row["attack"] == attack and row["algorithm"] != REFERENCE]
        for (family, name, epsilon), case in worst_cases(under).items():
            returns.setdefault((family, epsilon), {}).setdefault(attack, {})[name] = case.quartiles[1]
    return {
        cell: [_duel(attack, by_name, ours) for attack, by_name in attacks.items()]
        for cell, attacks in returns.items()
    }


def _duel(attack: str, returns: dict[str, float], ours: tuple[str, ...]) -> Duel:
    rivals = {name: value for name, value in returns.items() if name not in ours}
    mine = {name: value for name, value in returns.items() if name in ours}
    rival, best = max(rivals, key=rivals.__getitem__), max(mine, key=mine.__getitem__)
    return Duel(attack, rival, rivals[rival], best, mine[best])


def duel_table(rows: list[dict[str, Any]], ours: tuple[str, ...]) -> str:
    """Markdown: per family and ε > 0 the best worst cases of ours and of the rivals, and where a rival leads."""
    rivals = tuple(row["algorithm"] for row in rows if row["algorithm"] not in (*ours, REFERENCE))
    best, theirs = best_of(rows, ours), best_of(rows, rivals)
    lines = [
        f"| world | ε | best worst case of ours | of the rivals | attacks where a rival leads | by more than {COUNTS:g}"
        " | widest lead |",
        "|---|---|---|---|---|---|---|",
    ]
    for (family, epsilon), found in duels(rows, ours).items():
        if epsilon == 0:
            continue
        cell = family, epsilon
        ahead = [duel for duel in found if duel.lead > 0]
        widest = max(found, key=lambda duel: duel.lead)
        lines.append(
            f"| {family} | {epsilon:g} | {_case(*best[cell])} | {_case(*theirs[cell])} | {len(ahead)} of {len(found)} |"
            f" {sum(duel.lead > COUNTS for duel in ahead)} | {_widest(widest)} |"
        )
    return "\n".join(lines) + "\n"


def _case(name: str, case: WorstCase) -> str:
    return f"{case.text} `{name}`"


def _widest(duel: Duel) -> str:
    if duel.lead <= 0:
        return "none"
    return (
        f"{duel.lead:.3f} by `{duel.rival}` ({duel.attack}, {duel.rival_return:.3f} to {duel.our_return:.3f})"
    )
