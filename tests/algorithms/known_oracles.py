"""An oracle whose value is a known bowl, the pessimistic objective of it, and an oracle that falls to NaN."""

import equinox as eqx
import jax
import jax.numpy as jnp

from robust_rlhf_jax import Status
from robust_rlhf_jax.algorithms import Smoothing
from robust_rlhf_jax.algorithms.pessimism_objective import PessimismObjective
from robust_rlhf_jax.oracles import ExactOracle, OracleResult


class Moody(eqx.Module):
    """The exact oracle, until the first parameter falls below `cliff`: then NaN."""

    exact: ExactOracle
    cliff: jax.Array

    def prepare(self, data, epsilon, *, key):
        return self.exact.mdp

    def solve(self, prepared, theta):
        answer = self.exact.solve(prepared, theta)
        value = jnp.where(theta[0, 0] < self.cliff, jnp.nan, answer.value)
        status = jnp.where(jnp.isfinite(value), Status.CONVERGED.array(), Status.NONFINITE.array())
        return OracleResult(value, answer.policy, status, answer.subgradient)


class Bowl(eqx.Module):
    """V̂(θ) = ½c‖θ‖² + Σθ at a fixed policy; its own subgradient says otherwise, and a warm start is counted.

    Told a number of steps, that is c.
    """

    curvature: jax.Array
    lost_above: jax.Array | float = float("inf")

    def prepare(self, data, epsilon, *, key):
        return jnp.zeros(())

    def shortened(self, *steps):
        return self

    def start(self, prepared):
        return jnp.zeros((), jnp.int32)

    def solve(self, prepared, theta):
        value = 0.5 * self.curvature * jnp.sum(theta**2) + jnp.sum(theta)
        value = jnp.where(theta[0, 0] > self.lost_above, jnp.nan, value)
        return OracleResult(value, theta[0], Status.CONVERGED.array(), 3.0 * self.curvature * theta)

    def solve_from(self, prepared, theta, warm, steps=None):
        told = self if steps is None else Bowl(steps.astype(theta.dtype), self.lost_above)
        return told.solve(prepared, theta), warm + 1


REFERENCE = jnp.arange(4.0) / 10


def bowl_objective(gradient, oracle=None, warm=False, smoothing=None):
    """On θ of two steps and two features."""
    oracle = Bowl(jnp.asarray(2.0)) if oracle is None else oracle
    smoothing = Smoothing(n_directions=6, std=0.3) if smoothing is None else smoothing
    return PessimismObjective(oracle, jnp.zeros(()), REFERENCE, smoothing, 2, False, gradient, warm)
