"""How often does an honest leaderboard lose votes? `python benchmarks/honest_leaderboards.py [--seeds 30]`.

Votes on 4, 8 or 20 models: by Bradley and Terry, by raters with tastes of their own, and with normal instead of
logistic noise; and the bundled votes of people on which of two arguments convinces, a board for each side of a debate.
Prints of how many leaderboards `leaderboard.believed` leaves any vote out. Exits with 1 above 1 in 20.
"""

import argparse
import sys

import numpy as np

from robust_rlhf_jax.leaderboard import Votes, believed, fewest_changes
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.preferences import argument_pairs

# (models, votes)
SIZES = ((4, 500), (8, 2_000), (20, 6_000))
KINDS = ("Bradley-Terry", "own tastes", "normal noise")


def honest(kind: str, seed: int) -> Votes:
    rng = np.random.default_rng(seed)
    models, n = SIZES[seed % len(SIZES)]
    skill = 0.6 * rng.normal(size=models)
    first, second = rng.integers(0, models, (2, n))
    kept = first != second
    first, second = first[kept], second[kept]
    raters = rng.integers(0, len(first) // 15, len(first))
    gap = skill[first] - skill[second]
    if kind == "own tastes":
        own = skill + 0.5 * rng.normal(size=(raters.max() + 1, models))
        gap = own[raters, first] - own[raters, second]
    noise = 1.7 * rng.normal(size=len(first)) if kind == "normal noise" else rng.logistic(size=len(first))
    return Votes(first, second, np.where(noise < gap, 1, -1), tuple(map(str, range(models))), raters)


def debates() -> list[Votes]:
    """Votes of people: the arguments for one side of a debate are the models of a board."""
    pairs = argument_pairs("format")
    turned = np.random.default_rng(0).random(pairs.n_pairs) < 0.5
    found = []
    for side in sorted(set(pairs.texts.prompt)):
        rows = np.flatnonzero([prompt == side for prompt in pairs.texts.prompt])
        both = np.array([(pairs.texts.chosen[i], pairs.texts.rejected[i]) for i in rows], object).astype(str)
        names, numbers = np.unique(both, return_inverse=True)
        numbers = numbers.reshape(-1, 2)
        first, second = np.where(turned[rows, None], numbers[:, ::-1], numbers).T
        outcome = np.where(pairs.ties[rows], 0, np.where(turned[rows], -1, 1))
        kept = first != second
        found.append(Votes(first[kept], second[kept], outcome[kept], tuple(names), pairs.raters[rows][kept]))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=30)
    seeds = parser.parse_args().seeds
    lost = {kind: sum(float(believed(honest(kind, s)).epsilon) > 0 for s in range(seeds)) for kind in KINDS}
    for kind, number in lost.items():
        print(f"{kind}: {number} of {seeds} lost votes")
    boards = debates()
    real = sum(float(believed(votes).epsilon) > 0 for votes in boards)
    few = [change.votes for votes in boards if (change := fewest_changes(votes.wins())) is not None]
    print(
        f"debates: {real} of {len(boards)} lost votes; dropped votes that change the first place: {sorted(few)}"
    )
    print(environment())
    return int(sum(lost.values()) + real > 0.05 * (seeds * len(KINDS) + len(boards)))


if __name__ == "__main__":
    sys.exit(main())
