"""Bad raters in the place of honest ones, and an honest minority, for arrays of preferred less other differences."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

BOTS = ("random", "always first", "always longer", "contrary")


class Rated(NamedTuple):
    """`z` [N, k]: preferred less other; `chose_first`, `chose_longer` [N], ±1; `bad` [K]: which raters were replaced.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.lab.attacks.rater_bots import replace_raters
    >>> rng, who = np.random.default_rng(0), np.repeat(np.arange(10), 2)
    >>> int(replace_raters(rng, np.ones((20, 1)), who, "contrary", 0.1).bad.sum())
    1
    """

    z: Float[np.ndarray, "N k"]
    chose_first: Float[np.ndarray, " N"]
    chose_longer: Float[np.ndarray, " N"]
    bad: Bool[np.ndarray, " K"]


def replace_raters(
    rng: np.random.Generator,
    z: Float[np.ndarray, "N k"],
    raters: Int[np.ndarray, " N"],
    kind: str,
    share: float,
    theta: Float[np.ndarray, " k"] | None = None,
) -> Rated:
    """A share of the raters replaced by bots of one of `BOTS`, or by an honest "minority" that follows `theta`.

    Options are shown in random order; the longer one is random, too, and a last column of z says by how much it is.

    **Raises:** ValueError for another kind, or a minority without its `theta`.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.lab.attacks.rater_bots import replace_raters
    >>> rng, z = np.random.default_rng(0), np.ones((20, 1))
    >>> rated = replace_raters(rng, z, np.repeat(np.arange(10), 2), "always first", 0.2)
    >>> rated.chose_first[np.repeat(rated.bad, 2)].tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    if kind not in (*BOTS, "minority", "none"):
        raise ValueError(f"kind is {kind!r}: give one of {', '.join(BOTS)}, minority or none.")
    if kind == "minority" and theta is None:
        raise ValueError("a minority needs theta: give the reward that it follows.")
    n, k = len(z), int(raters.max()) + 1
    first = rng.choice([-1.0, 1.0], n)
    longer = rng.choice([-1.0, 1.0], n) * rng.exponential(size=n)
    bad = np.zeros(k, bool)
    bad[rng.permutation(k)[: 0 if kind == "none" else round(share * k)]] = True
    turn = np.ones(n)
    turn[bad[raters]] = {
        "none": lambda: 1.0,
        "random": lambda: rng.choice([-1.0, 1.0], n)[bad[raters]],
        "always first": lambda: first[bad[raters]],
        "always longer": lambda: np.sign(longer)[bad[raters]],
        "contrary": lambda: -1.0,
        "minority": lambda: np.where(rng.logistic(size=n) < z @ theta, 1.0, -1.0)[bad[raters]],
    }[kind]()
    whole = np.concatenate([z, longer[:, None]], axis=1) * turn[:, None]
    return Rated(whole, first * turn, np.sign(longer) * turn, bad)
