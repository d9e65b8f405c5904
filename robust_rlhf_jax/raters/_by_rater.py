"""Sums over the pairs of each rater."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.linalg import einsum

# Pairs of a rater that are multiplied at once. Their outer products one by one would be moved through memory instead:
# at 11,000 pairs of 39 features of 544 raters that takes four times as long.
CHUNK = 16


class AnswersByRater(eqx.Module):
    """`raters` [N] of the pairs, and how many `answers` [K] each has given."""

    raters: Int[Array, " N"]
    answers: Float[Array, " K"]

    @classmethod
    def of(cls, raters: Int[Array, " N"], n_raters: int, dtype: Any) -> "AnswersByRater":
        return cls(raters, jax.ops.segment_sum(jnp.ones(len(raters), dtype), raters, n_raters))

    def sums(self, values: Float[Array, " N"]) -> Float[Array, " K"]:
        """Σ_{i∈k} of every rater k."""
        return jax.ops.segment_sum(values, self.raters, len(self.answers))


class RowsByRater(eqx.Module):
    """`rows` [N, r] of the pairs of K `raters`, and once more in chunks of one rater each, filled up with zeros."""

    rows: Float[Array, "N r"]
    raters: Int[Array, " N"]
    n_raters: int = eqx.field(static=True)
    chunks: Float[Array, "C b r"]
    slot: Int[Array, " N"]
    owner: Int[Array, " C"]

    @classmethod
    def of(cls, rows: Float[Array, "N r"], raters: Int[Array, " N"], n_raters: int) -> "RowsByRater":
        """At most N/b + K chunks, wherever the pairs of a rater stand. Jit-able."""
        n, r = rows.shape
        n_chunks = n // CHUNK + n_raters
        counts = jax.ops.segment_sum(jnp.ones_like(raters), raters, n_raters)
        order = jnp.argsort(raters)
        rank = jnp.zeros_like(raters).at[order].set(jnp.arange(n, dtype=raters.dtype))
        within = rank - (jnp.cumsum(counts) - counts)[raters]
        needed = -(-counts // CHUNK)
        ends = jnp.cumsum(needed)
        slot = (ends - needed)[raters] * CHUNK + within
        chunks = jnp.zeros((n_chunks * CHUNK, r), rows.dtype).at[slot].set(rows)
        owner = jnp.searchsorted(ends, jnp.arange(n_chunks), side="right")
        return cls(rows, raters, int(n_raters), chunks.reshape(n_chunks, CHUNK, r), slot, owner)

    def margins(self, t: Float[Array, "K r"]) -> Float[Array, " N"]:
        """t_kᵀy_i of every pair i of rater k."""
        return einsum("cbi,ci->cb", self.chunks, t[self.owner]).reshape(-1)[self.slot]

    def sums(self, values: Float[Array, " N *m"]) -> Float[Array, " K *m"]:
        """Σ_{i∈k} of every rater k."""
        return jax.ops.segment_sum(values, self.raters, self.n_raters)

    def gram(self, weights: Float[Array, " N"]) -> Float[Array, "K r r"]:
        """Σ_{i∈k} w_i y_i y_iᵀ of every rater k."""
        n_chunks = len(self.chunks)
        placed = jnp.zeros(n_chunks * CHUNK, weights.dtype).at[self.slot].set(weights)
        weighted = placed.reshape(n_chunks, CHUNK, 1) * self.chunks
        each = einsum("cbi,cbj->cij", weighted, self.chunks)
        # A chunk beyond the last has no owner: it is dropped.
        return jax.ops.segment_sum(each, self.owner, self.n_raters)

    def squares(self, matrices: Float[Array, "K r r"]) -> Float[Array, " N"]:
        """y_iᵀA_k y_i of every pair i of rater k."""
        half = einsum("cbi,cij->cbj", self.chunks, matrices[self.owner])
        return jnp.sum(half * self.chunks, axis=2).reshape(-1)[self.slot]
