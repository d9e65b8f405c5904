"""Why `fit_reward` does not lead: whether any method could have done better, by the certificate of two worlds."""

from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax.lab.diagnostics.two_worlds import Certificate, certificate, chance_of_wins
from robust_rlhf_jax.lab.pair_attacks import AttackedPairs
from robust_rlhf_jax.preferences import comparison_numbers
from robust_rlhf_jax.rewards import fit_differences
from robust_rlhf_jax.rewards.registry import DEFAULT

from .config import BenchmarkConfig
from .problems import Problem, Trial, trials
from .run import Attacks, Row, attack_on, clean_theta
from .summary import LEAD, Standing

# Honest labels drawn anew to learn what an attack on labels makes of each pair; attacks that take seconds get fewer.
DRAWS = 30


def explain(standing: Standing, problem: Problem, config: BenchmarkConfig, attacks: Attacks) -> str:
    """One sentence on who leads in the worst case, and why it is not `fit_reward` where that trails by `LEAD`."""
    where = f"in the worst case at {standing.where}"
    leads = f"leads{_level(standing, standing.leader)}"
    if not any(line.estimator == DEFAULT for line in standing.lines):
        return f"{standing.leader} {leads} {where}."
    if standing.behind == 0:
        return f"{DEFAULT} leads{_level(standing, DEFAULT)} {where}."
    if standing.behind <= LEAD:
        return f"fit_reward is within {standing.behind:.3f} of {standing.leader}, which {leads} {where}."
    said = (
        f"{standing.leader} {leads} {where}, by {standing.behind:.3f}: {standing.attack} at "
        f"ε = {standing.epsilon:g} is fit_reward's worst."
    )
    if standing.attack not in attacks:
        return said
    found = indistinguishable(problem, config, attacks, standing.attack, standing.epsilon)
    if found.holds(standing.epsilon):
        return (
            f"{said} Nobody can tell: another reward, under which fit_reward is right and the true reward loses "
            f"{found.stake:.3f} of accuracy, shows the same pairs with {found.cost:.3f} of them corrupt."
        )
    return f"{said} If its answer were the truth, {found.cost:.3f} of the pairs would be corrupt."


def unanswered(rows: Iterable[Row], file: str) -> str:
    """The sentence on estimators that gave no number for some pairs of `file`; "" where all did."""
    cells: dict[str, list[bool]] = {}
    for row in rows:
        if row["file"] == file:
            cells.setdefault(row["estimator"], []).append(row["unanswered"] > 0)
    said = [f"{name} in {sum(of)} of its {len(of)} cells" for name, of in cells.items() if any(of)]
    if not said:
        return ""
    return f"No number, but NaN, for held-out pairs, which then count as even chances: {', '.join(said)}."


def _level(standing: Standing, name: str) -> str:
    """ ", level with …,": who else has this worst case; "" where nobody has."""
    # Told ε and not, the default is one estimator.
    level = [other for other in standing.level_with(name) if not other.startswith(DEFAULT)]
    return f", level with {', '.join(level)}," if level else ""


def indistinguishable(
    problem: Problem, config: BenchmarkConfig, attacks: Attacks, name: str, epsilon: float
) -> Certificate:
    """The certificate of `fit_reward`'s answer in the first held-out part."""
    trial = next(trials(problem, config.folds, config.seed))
    theta = clean_theta(trial)
    seen = attack_on(attacks, name, trial, epsilon, theta, config.seed, fold=0)
    groups = None if seen.raters is None else jnp.asarray(seen.raters)
    x, labels = (jnp.asarray(part, jnp.float32) for part in (seen.x, seen.labels))
    same = comparison_numbers(seen.x)
    found = fit_differences(x, labels, jnp.float32(epsilon), groups, comparisons=same)
    relabel = _relabel(attacks, name, trial, epsilon, theta, config.seed)
    changes_x = not np.array_equal(seen.x, trial.train.x)
    wins = chance_of_wins(seen.x, seen.labels, theta, None if changes_x else relabel, trial.train.x, DRAWS)
    return certificate(seen.x, wins, np.asarray(found.theta, float), theta, epsilon)


def _relabel(attacks: Attacks, name: str, trial: Trial, epsilon: float, theta: np.ndarray, seed: int):
    """The labels that the attack leaves of other honest ones."""
    rng = np.random.default_rng(seed)

    def relabel(labels: np.ndarray) -> np.ndarray:
        honest: AttackedPairs = trial.train._replace(labels=labels)
        return attacks[name](rng, honest, epsilon, theta).labels

    return relabel
