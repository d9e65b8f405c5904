"""Losses ρ(m) of the margin m = oθᵀx that rivals of the likelihood minimise; plain is ℓ(m) = log(1 + exp(−m)).

Losses of one rival alone, such as IPO and Dr. DPO, stand in its file: `rewards/rivals/`.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.logistic import label_variance


class MarginLoss(eqx.Module):
    """ρ(m), its slope ρ′(m), and a curvature ≥ 0 for Newton's model: ρ″(m) where ρ is convex. All elementwise."""

    @abc.abstractmethod
    def value(self, margins: Float[Array, " n"]) -> Float[Array, " n"]: ...

    @abc.abstractmethod
    def slope(self, margins: Float[Array, " n"]) -> Float[Array, " n"]: ...

    @abc.abstractmethod
    def curvature(self, margins: Float[Array, " n"]) -> Float[Array, " n"]: ...


class WeighingLoss(MarginLoss):
    """A loss that says what each pair counts beside the likelihood, in proportion to ρ′(m)/ℓ′(m)."""

    @abc.abstractmethod
    def weight(self, margins: Float[Array, " n"]) -> Float[Array, " n"]: ...

    def _logs(self, margins: Float[Array, " n"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """log p, log q: powers of p itself would lose all digits where it underflows."""
        return jax.nn.log_sigmoid(margins), jax.nn.log_sigmoid(-margins)


class TiltedLogistic(MarginLoss):
    """ℓ(m) + `tilt`·m: a likelihood of flipped labels, since ℓ(−m) = ℓ(m) + m. Convex."""

    tilt: Float[Array, ""]

    def value(self, margins: Float[Array, " n"]):
        return -jax.nn.log_sigmoid(margins) + self.tilt * margins

    def slope(self, margins: Float[Array, " n"]):
        return self.tilt - jax.nn.sigmoid(-margins)

    def curvature(self, margins: Float[Array, " n"]):
        return label_variance(margins)


class ClippedLogistic(WeighingLoss):
    """min over δ of ℓ(m + δ) + λ|δ|: ℓ above the margin c, its tangent of slope −λ = −σ(−c) below. Convex.

    `lowest`: c, −∞ for the plain ℓ. The minimiser is δ = max(0, c − m): an offset that lowers m never pays.
    """

    lowest: Float[Array, ""]

    def value(self, margins: Float[Array, " n"]):
        below = jax.nn.sigmoid(-self.lowest) * self.offset(margins)
        return -jax.nn.log_sigmoid(jnp.maximum(margins, self.lowest)) + below

    def slope(self, margins: Float[Array, " n"]):
        return -jax.nn.sigmoid(-jnp.maximum(margins, self.lowest))

    def curvature(self, margins: Float[Array, " n"]):
        bend = label_variance(margins)
        return jnp.where(margins >= self.lowest, bend, 0.0)

    def offset(self, margins: Float[Array, " n"]) -> Float[Array, " n"]:
        """δ(m)."""
        return jnp.maximum(self.lowest - margins, 0.0)

    def weight(self, margins: Float[Array, " n"]) -> Float[Array, " n"]:
        """ρ′(m)/ℓ′(m) in (0, 1]; from logarithms, since ℓ′ underflows."""
        clipped = jnp.maximum(margins, self.lowest)
        return jnp.exp(jax.nn.log_sigmoid(-clipped) - jax.nn.log_sigmoid(-margins))


class DensityPower(WeighingLoss):
    """(1 + 1/γ)(1 − p^γ) + p^{1+γ} + q^{1+γ} − 1 with p = σ(m), q = 1 − p; −log p as γ → 0, bounded for γ > 0.

    The density power divergence of Basu, Harris, Hjort & Jones 1998 for two outcomes (Ghosh & Basu 2016). Its slope
    −(1 + γ)(q²p^γ + pq^{1+γ}) falls back to 0 as m → −∞, so it isn't convex; `curvature` is |ρ″|, which keeps
    Newton's model a model of descent.
    """

    gamma: Float[Array, ""]

    def value(self, margins: Float[Array, " n"]):
        log_p, log_q = self._logs(margins)
        g = self.gamma
        power = jnp.exp((1 + g) * log_p) + jnp.exp((1 + g) * log_q)
        return -(1 + g) * jnp.expm1(g * log_p) / g + power - 1.0

    def slope(self, margins: Float[Array, " n"]):
        log_p, log_q = self._logs(margins)
        g = self.gamma
        return -(1 + g) * (jnp.exp(2 * log_q + g * log_p) + jnp.exp(log_p + (1 + g) * log_q))

    def curvature(self, margins: Float[Array, " n"]):
        log_p, log_q = self._logs(margins)
        p, q, g = jnp.exp(log_p), jnp.exp(log_q), self.gamma
        first = jnp.exp(2 * log_q + g * log_p) * (g * q - 2 * p)
        second = jnp.exp(log_p + (1 + g) * log_q) * (q - (1 + g) * p)
        return (1 + g) * jnp.abs(first + second)

    def weight(self, margins: Float[Array, " n"]) -> Float[Array, " n"]:
        """ρ′(m)/ℓ′(m) over its value at m = 0, in [0, 1] for γ ≤ 1: small for badly and for well fitted pairs alike."""
        log_p, log_q = self._logs(margins)
        g = self.gamma
        return 2.0**g * (jnp.exp(log_q + g * log_p) + jnp.exp(log_p + g * log_q))
