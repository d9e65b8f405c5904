"""`RobustFit`: the numbers that decide in `fit_reward`, each with its meaning and where it comes from.

Numbers of steps, of draws and of grids stand beside the loops that they end.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

# The largest share of corrupt pairs that is considered where ε is not given. An adversary who corrupts a fifth of the
# pairs and knows the others can already outvote them in what matters.
CEILING = 0.2


def among_informative(
    epsilon: Float[Array, ""] | float, given: Int[Array, ""] | int, informative: Float[Array, ""] | float
) -> Float[Array, ""]:
    """The largest share of the informative pairs that may be corrupt, if ε is that of all that are `given`: all εN may
    be among them, up to `CEILING` of them.
    """
    return jnp.maximum(epsilon, jnp.minimum(epsilon * (given / informative), CEILING))


class RobustFit(eqx.Module):
    """The constants of the robust fit; `benchmarks/sensitivity.py` halves and doubles each.

    | constant | meaning | why |
    |---|---|---|
    | `ceiling` | share ε of corrupt pairs where nobody says; candidates doubt up to 2ε | see `CEILING` |
    | `allowance` | an explanation may convict this many times ε | that share is an estimate |
    | `certainty` | nats of evidence for corruption | posterior odds of 1000 to 1 |
    | `material` | accuracy at stake that makes evidence matter | below, a wrong decision costs nothing |
    | `nonlinearity` | nats per pair by which honest choices depart from a linear reward | clean choices: up to .011 |
    | `plausible` | belief, and share of the pairs, from which another reward counts | one in twenty |
    | `widest_margin` | the prior's standard deviation of a margin, at most | choices of people have 1 to 3 |
    | `prior_axes` | axes that count as seen, with margins of variance 1, in the prior's strength | few tell little |
    | `covered` | share of the information below which a direction counts as not covered | a tenth |
    | `habit` | share of pairs that honest choices seem to need corrupt; a reward may need ε + 2·habit | .01 to .03 |
    | `contradicts` | share of the pairs in which an alternative prefers the other option | three in ten |
    | `uses` | share of ε that an alternative needs if it explains less | corruption for it would use most of ε |
    | `decisive` | share of what is said of a direction that εN pairs hold to decide it, as ε → 0 | odds of 3 to 2 |
    | `decisive_rise` | by how much that share rises with ε | honest data pay for every direction that is doubted |
    | `decisive_most` | that share, at most | nine lies beside one honest pair leave a margin that explains both |

    `proposals` names the candidates beside the plain fit and the fit to short rows (`candidates.py`). Steps of loops,
    grids and guards against rounding are beside the loops that they end.

    **Example:**

    >>> from robust_rlhf_jax.rewards import RobustFit
    >>> RobustFit(certainty=14.0).certainty
    14.0
    """

    ceiling: float = CEILING
    allowance: float = 1.25
    certainty: float = 7.0
    material: float = 0.01
    nonlinearity: float = 0.02
    plausible: float = 0.05
    widest_margin: float = 5.0
    prior_axes: float = 1.0
    covered: float = 0.1
    habit: float = 0.025
    contradicts: float = 0.3
    uses: float = 0.9
    decisive: float = 0.6
    decisive_rise: float = 6.0
    decisive_most: float = 0.9
    proposals: tuple[str, ...] = eqx.field(
        static=True,
        default=("flat", "unsure", "opposite", "crowd", "filtered", "contrary_short", "contrary_unsure"),
    )
