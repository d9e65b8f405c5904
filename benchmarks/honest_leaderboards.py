"""How often does an honest leaderboard lose votes? `python benchmarks/honest_leaderboards.py [--seeds 30]`.

Votes on 4, 8 or 20 models: by Bradley and Terry, by raters with tastes of their own, and with normal instead of
logistic noise. Prints of how many leaderboards `leaderboard.believed` leaves any vote out. Exits with 1 above 1 in 20.
"""

import argparse
import sys

import numpy as np

from robust_rlhf_jax.leaderboard import Votes, believed
from robust_rlhf_jax.outputs import environment

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


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=30)
    seeds = parser.parse_args().seeds
    lost = {kind: sum(float(believed(honest(kind, s)).epsilon) > 0 for s in range(seeds)) for kind in KINDS}
    for kind, number in lost.items():
        print(f"{kind}: {number} of {seeds} lost votes")
    print(environment())
    return int(sum(lost.values()) > 0.05 * seeds * len(KINDS))


if __name__ == "__main__":
    sys.exit(main())
