"""What a benchmark runs (`BenchmarkConfig`)."""

import dataclasses

from robust_rlhf_jax.checks import check_epsilon, check_seed
from robust_rlhf_jax.collected import told_in_help
from robust_rlhf_jax.lab.pair_attacks import PAIR_ATTACKS

from .contestant import contestants
from .problems import FOLDS

# The attack's name on honest pairs.
CLEAN = "none"


@told_in_help({"names in `PAIR_ATTACKS`": PAIR_ATTACKS, "names of `contestants`": contestants()})
@dataclasses.dataclass(frozen=True)
class BenchmarkConfig:
    """Every attack at every ε on every file, and every estimator on what is left.

    Args:
        attacks: any of these: names in `PAIR_ATTACKS`; all if none is given.
        epsilons: shares of corrupted pairs.
        estimators: any of these: names of `contestants`; all if none is given.
        folds: how many of the five parts of a file are held out, each once.
        pairs: number of pairs that are drawn at random from a larger file.
        seed: seed of the draw, the parts and the attacks.

    **Example:**

    >>> from robust_rlhf_jax.lab.benchmark import BenchmarkConfig
    >>> BenchmarkConfig(attacks=("near",)).epsilons
    (0.05, 0.1, 0.2)
    """

    attacks: tuple[str, ...] = ()
    epsilons: tuple[float, ...] = (0.05, 0.1, 0.2)
    estimators: tuple[str, ...] = ()
    folds: int = 1
    pairs: int = 5_000
    seed: int = 0

    def check(self, attacks: dict, estimators: dict) -> None:
        """**Raises:** ValueError in one sentence for a wrong value; `attacks`, `estimators`: what there is."""
        for kind, given, known in (
            ("attack", self.attacks, {CLEAN: None} | attacks),
            ("estimator", self.estimators, estimators),
        ):
            unknown = [name for name in given if name not in known]
            if unknown:
                raise ValueError(f"{kind} {unknown[0]} is unknown: there are {', '.join(known)}.")
        for epsilon in self.epsilons:
            check_epsilon(epsilon)
        for kind in ("attacks", "epsilons", "estimators"):
            given = getattr(self, kind)
            twice = next((value for value in given if given.count(value) > 1), None)
            if twice is not None:
                raise ValueError(f"{kind}: {twice} is given twice: name each once.")
        if not self.epsilons or min(self.epsilons) <= 0:
            raise ValueError("give epsilons above 0, and leave 0 out: honest pairs are run in any case.")
        if not 1 <= self.folds <= FOLDS:
            raise ValueError(f"folds={self.folds} must be 1 to {FOLDS}.")
        if self.pairs < 100:
            raise ValueError(f"pairs={self.pairs} is too few: give 100 or more.")
        check_seed(self.seed)


QUICK = BenchmarkConfig(
    attacks=("confident", "near", "random_flips"),
    epsilons=(0.1,),
    estimators=("fit_reward", "fit_reward_untold", "maximum_likelihood", "sever", "majority"),
    pairs=1_500,
)
