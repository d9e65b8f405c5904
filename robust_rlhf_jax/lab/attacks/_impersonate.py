"""Make the labels those of another reward."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.corruption_budget import corruption_count
from robust_rlhf_jax.kernels.halving import bisect
from robust_rlhf_jax.kernels.ranking import largest
from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import PreferenceData

from .base import replace_labels, true_margins
from .listed import ALL_BUT_LABELS, listed

HALVINGS = 40


def affordable_shrinkage(margins: Float[Array, " N"], epsilon: Float[Array, ""]) -> Float[Array, ""]:
    """The largest c in [0, 2] with mean_n |σ(m_n) − σ((1−c)m_n)| ≤ ε, m_n = θ★ᵀx_n: by bisection, it grows with c.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.lab.attacks import affordable_shrinkage
    >>> margins = jnp.array([-2.0, -1.0, 1.0, 2.0])
    >>> [round(float(affordable_shrinkage(margins, jnp.float32(epsilon))), 2) for epsilon in (0.0, 0.1, 0.45)]
    [0.0, 0.4, 1.4]
    """

    def cost(c):
        return jnp.mean(jnp.abs(jax.nn.sigmoid(margins) - jax.nn.sigmoid((1.0 - c) * margins)))

    zero, two = jnp.zeros((), margins.dtype), jnp.full((), 2.0, margins.dtype)
    found = bisect(lambda c: cost(c) <= epsilon, zero, two, HALVINGS)[0]
    return jnp.where(cost(two) <= epsilon, two, found)


@listed(untouched=ALL_BUT_LABELS, at_most=True)
def impersonate(key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP):
    """Flip labels so that they are distributed as if (1−c)·θ★ had drawn them, c ≤ 2 the largest that ε pays for.

    The maximal coupling of two Bernoulli labels flips o = +1 with probability (p−p')/p where p > p', and o = −1
    with (p'−p)/(1−p) where p' > p: on average a total-variation distance |p − p'| of all labels, and none could do
    with less (Lindvall 1992). From the data alone no algorithm can tell θ★ from (1−c)·θ★: c < 1 hides only
    the scale of θ★, which pessimism and regularisation depend on; at c = 1, affordable from ε = mean|σ(θ★ᵀx) − ½|
    on, labels carry no information whatever, and beyond it they prefer the opposite of θ★ (the two-point argument
    of Le Cam, for contamination Chen, Gao & Ren 2018). A sample may ask for more than its mean: then random flips
    are left out, and at most ⌊εN⌋ pairs change. Sees θ★ and takes temperature 1; changes labels only.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.impersonate(jax.random.key(1), clean, 0.1, mdp)
    >>> 0 < int((bad.labels != clean.labels).sum()) <= 20
    True
    """
    k_flip, k_cap = jax.random.split(key)
    margins = true_margins(data, mdp)
    count = corruption_count(epsilon, data.n_pairs)
    c = affordable_shrinkage(margins, jnp.asarray(epsilon, margins.dtype))
    # P(o) of the label as it is, under θ★ and under the other reward; a label that the other finds likelier stays.
    true, other = (jax.nn.sigmoid(data.labels * m) for m in (margins, (1.0 - c) * margins))
    flips = jax.random.uniform(k_flip, true.shape) * true < true - other
    order = jnp.where(flips, jax.random.uniform(k_cap, true.shape), -1.0)
    return replace_labels(data, largest(order, count) & flips, -data.labels)
