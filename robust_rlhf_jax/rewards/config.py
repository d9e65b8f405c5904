"""Every number that decides in `fit_reward`, with its meaning and where it comes from."""

import equinox as eqx

# The largest share of corrupt pairs that is considered where nobody says: beyond a fifth, whoever corrupts a fifth of
# the pairs and knows the others can outvote them in what matters.
CEILING = 0.2


class RobustFit(eqx.Module):
    """The constants of the robust fit; `benchmarks/sensitivity.py` halves and doubles each.

    | constant | meaning | why |
    |---|---|---|
    | `ceiling` | share ε of corrupt pairs where nobody says; candidates doubt up to 2ε | see `CEILING` |
    | `allowance` | an explanation may need this many times ε | what it needs is an estimate |
    | `certainty` | nats of evidence for corruption | posterior odds of 1000 to 1 |
    | `material` | accuracy at stake that makes evidence matter | below, a wrong decision costs nothing |
    | `nonlinearity` | nats per pair by which honest choices depart from a linear reward | clean choices: up to .011 |
    | `rounds` | refits that a candidate gets to settle in each of its two phases | most settle in 2 to 5 |
    | `plausible` | weight from which an explanation counts as plausible | 4 of 256 draws |
    | `draws` | of the Bayesian bootstrap that weighs explanations | standard error .03 of a weight of ½ |
    | `covered` | share of the information below which a direction counts as not covered | a tenth |
    | `contends` | belief, and share of the pairs, from which another reward is reported | one in twenty |
    | `habit` | share of pairs that honest choices seem to need corrupt, for the interval | clean choices: .01 to .03 |

    **Example:**

    >>> from robust_rlhf_jax.rewards import RobustFit
    >>> RobustFit(certainty=14.0).certainty
    14.0
    """

    ceiling: float = CEILING
    allowance: float = 1.5
    certainty: float = 7.0
    material: float = 0.01
    nonlinearity: float = 0.02
    rounds: int = eqx.field(static=True, default=8)
    plausible: float = 0.015
    draws: int = eqx.field(static=True, default=256)
    covered: float = 0.1
    habit: float = 0.025
    contends: float = 0.05
