"""A sample of the pairs, in which the explanations are found."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..candidates import Candidates, candidates
from ..config import RobustFit
from ..contamination import cells_of
from ..coordinates import UnitFreePairs, unit_free
from ..decision import apart, judge
from ..posterior_fit import Fit
from .one_pass import Kind, Pass
from .passes import Passes

# Explanations that differ in a smaller share of the sample's pairs are settled once, since they differ by chance.
SAME = 0.01
SEED = 0


class Found(NamedTuple):
    """Explanations of a sample, row 0 the plain fit: `theta` [E, k]; `strength` [E] of the prior; `unsuspected`
    [E − 1, m], as `Candidates`.
    """

    theta: Float[Array, "E k"]
    strength: Float[Array, " E"]
    unsuspected: Float[Array, "E-1 m"]


def sampled_places(n: int, size: int) -> Int[np.ndarray, " m"]:
    """Which of n pairs are the sample, in order; the same in every call."""
    chosen = np.random.default_rng(SEED).choice(n, min(n, size), replace=False, shuffle=False)
    return np.sort(chosen)


def read_sample(passes: Passes, places: Int[np.ndarray, " m"]) -> np.ndarray:
    """One pass: the pairs at `places` in float32 [m, k]."""
    # In one piece from the start: small pieces kept between large blocks would fragment the memory.
    rows, filled = np.empty((len(places), passes.n_features), np.float32), 0
    chosen = np.zeros(passes.padded, bool)
    chosen[places] = True

    def collect(_, found: np.ndarray) -> None:
        nonlocal filled
        rows[filled : filled + len(found)] = found
        filled += len(found)

    passes.run(Pass("sample", _rows_at, (Kind.ROWS,), given=(chosen,)), collect)
    return rows


def _rows_at(block: Array, chosen: Bool[np.ndarray, " m"]) -> tuple[np.ndarray]:
    return (np.asarray(block)[chosen],)


def explanations_of(sample: Float[Array, "m k"], config: RobustFit) -> Found:
    """The candidates of the sample, each as often as it differs from those before it."""
    fit, unsuspected, to_theta, differ = _candidates(sample, config)
    kept: list[int] = []
    for row in range(len(differ)):
        if bool(jnp.all(jnp.isfinite(fit.t[row]))) and all(differ[row, other] >= SAME for other in kept):
            kept.append(row)
    rows = np.asarray(kept)
    return Found(fit.t[rows] @ to_theta.T, fit.strength[rows], unsuspected[rows[1:] - 1])


@eqx.filter_jit
def _candidates(
    sample: Float[Array, "m k"], config: RobustFit
) -> tuple[Fit, Float[Array, "E-1 m"], Float[Array, "k r"], Float[Array, "E E"]]:
    pairs: UnitFreePairs = unit_free(sample, jnp.ones(len(sample), sample.dtype))
    found: Candidates = candidates(pairs, cells_of(pairs), config)
    return found.explanations.fit, found.unsuspected, pairs.to_theta, apart(judge(pairs, found.explanations))
