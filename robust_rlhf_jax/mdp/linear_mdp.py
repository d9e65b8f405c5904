"""The linear Markov decision process (paper: Definition 2.3) and the check that it is one."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.linalg import einsum
from robust_rlhf_jax.module import Module

# Rows whose transitions are held at once while they are checked.
BLOCK = 4096


class LinearMDP(Module):
    """P_h(s'|s,a) = φ(s,a)ᵀμ_h(s') and r_h(s,a) = φ(s,a)ᵀθ_h, episodes of fixed length H.

    | field | paper | shape |
    |---|---|---|
    | `features` | φ(s,a) | [S, A, d], ‖φ‖₂ ≤ 1 |
    | `transition_measures` | **μ**_h(s') | [H, d, S] |
    | `theta` | θ_h | [H, p], ‖θ_h‖₂ ≤ √p |
    | `initial_distribution` | ρ | [S] |
    | `reward_features` | | [S, A, p], or None: the reward is linear in `features` (the paper's setting) |

    **Example:**

    >>> from robust_rlhf_jax import worlds
    >>> mdp = worlds.chain_mdp()
    >>> mdp.horizon, mdp.n_states, mdp.n_actions, mdp.dim, mdp.rewards().shape
    (10, 20, 2, 10, (10, 20, 2))
    """

    features: Float[Array, "S A d"]
    transition_measures: Float[Array, "H d S"]
    theta: Float[Array, "H p"]
    initial_distribution: Float[Array, " S"]
    reward_features: Float[Array, "S A p"] | None = None

    @property
    def horizon(self) -> int:
        return self.transition_measures.shape[-3]

    @property
    def n_states(self) -> int:
        return self.features.shape[-3]

    @property
    def n_actions(self) -> int:
        return self.features.shape[-2]

    @property
    def dim(self) -> int:
        return self.features.shape[-1]

    @property
    def reward_table(self) -> Float[Array, "S A p"]:
        """The features that the reward is linear in."""
        return self.features if self.reward_features is None else self.reward_features

    def rewards(self, theta: Float[Array, "H p"] | None = None) -> Float[Array, "H S A"]:
        """r_h(s,a) = φ(s,a)ᵀθ_h for the MDP's own θ or another one."""
        theta = self.theta if theta is None else theta
        return einsum("sap,hp->hsa", self.reward_table, theta)


def check_linear_mdp(mdp: LinearMDP, tolerance: float = 1e-4) -> None:
    """Check on the host that `mdp` is exactly linear and normalised; return nothing.

    Shapes that fit, finite entries, ‖φ(s,a)‖₂ ≤ 1, every P_h(·|s,a) = φ(s,a)ᵀμ_h a distribution, ‖μ_h(𝒮)‖₂ ≤ √d, ρ a
    distribution, ‖θ_h‖₂ ≤ √p. Rows are checked in blocks, so that no [S·A, S] matrix of a large grid is held at once.

    **Raises:** ValueError that names the first condition that fails.

    **Example:**

    >>> import dataclasses
    >>> from robust_rlhf_jax import worlds
    >>> from robust_rlhf_jax.mdp import check_linear_mdp
    >>> chain = worlds.chain_mdp()
    >>> check_linear_mdp(chain)
    >>> check_linear_mdp(dataclasses.replace(chain, features=2 * chain.features))
    Traceback (most recent call last):
    ValueError: A feature has norm 2: scale features to norm ≤ 1.
    """
    _check_shapes(mdp)
    phi = np.asarray(mdp.features, np.float64).reshape(-1, mdp.dim)
    rho = np.asarray(mdp.initial_distribution, np.float64)
    theta_norms = np.linalg.norm(np.asarray(mdp.theta, np.float64), axis=-1)
    for name in ("features", "transition_measures", "theta", "initial_distribution", "reward_features"):
        value = getattr(mdp, name)
        if value is not None and not np.isfinite(np.asarray(value)).all():
            raise ValueError(f"{name} holds NaN or Inf: every entry of a linear MDP must be finite.")
    if np.linalg.norm(phi, axis=1).max() > 1 + tolerance:
        worst = np.linalg.norm(phi, axis=1).max()
        raise ValueError(f"A feature has norm {worst:.4g}: scale features to norm ≤ 1.")
    if theta_norms.max() > np.sqrt(mdp.theta.shape[-1]) + tolerance:
        raise ValueError(f"A theta_h has norm {theta_norms.max():.4g}: the bound is sqrt(p).")
    if rho.min() < -tolerance or abs(rho.sum() - 1) > tolerance:
        raise ValueError("initial_distribution is not a distribution: it must be ≥ 0 and sum to 1.")
    measures = np.asarray(mdp.transition_measures)
    for h, measure in enumerate(measures):
        _check_transitions(phi, measure.astype(np.float64), h, tolerance)
    totals = np.linalg.norm(measures.sum(axis=-1, dtype=np.float64), axis=-1)
    if totals.max() > np.sqrt(mdp.dim) + tolerance:
        raise ValueError(
            f"A mu_h(S) has norm {totals.max():.4g}: the bound is sqrt(d) = {np.sqrt(mdp.dim):.4g}."
        )


def _check_shapes(mdp: LinearMDP) -> None:
    if np.ndim(mdp.features) != 3 or np.ndim(mdp.transition_measures) != 3:
        raise ValueError(
            f"features {np.shape(mdp.features)} must be [S, A, d] and transition_measures "
            f"{np.shape(mdp.transition_measures)} must be [H, d, S]."
        )
    sizes = (mdp.n_states, mdp.n_actions)
    if mdp.reward_features is not None and np.shape(mdp.reward_features)[:-1] != sizes:
        raise ValueError(
            f"reward_features has shape {np.shape(mdp.reward_features)}: give [S, A, p] with S, A = {sizes}."
        )
    wanted = {
        "transition_measures": ("[H, d, S]", (mdp.horizon, mdp.dim, mdp.n_states)),
        "theta": ("[H, p]", (mdp.horizon, mdp.reward_table.shape[-1])),
        "initial_distribution": ("[S]", (mdp.n_states,)),
    }
    for name, (meaning, shape) in wanted.items():
        given = np.shape(getattr(mdp, name))
        if given != shape:
            raise ValueError(f"{name} has shape {given}: this MDP needs {meaning} = {shape}.")


def _check_transitions(
    phi: Float[np.ndarray, "SA d"],
    measure: Float[np.ndarray, "d S"],
    h: int,
    tolerance: float,
):
    if phi.min() >= 0 and measure.min() >= 0:  # mixtures of non-negative measures: only the sums can be wrong
        lowest, sums = 0.0, phi @ measure.sum(axis=1)
    else:
        rows = [phi[i : i + BLOCK] @ measure for i in range(0, len(phi), BLOCK)]
        lowest = min(r.min() for r in rows)
        sums = np.concatenate([r.sum(axis=1) for r in rows])
    if lowest < -tolerance or np.abs(sums - 1).max() > tolerance:
        raise ValueError(
            f"P_{h + 1}(.|s,a) is not a distribution for some (s,a): smallest entry {lowest:.3g}, "
            f"sums in [{sums.min():.5g}, {sums.max():.5g}]."
        )


def uniform_policy(mdp: LinearMDP) -> Float[Array, "H S A"]:
    """π_h(a|s) = 1/A.

    **Example:**

    >>> from robust_rlhf_jax import worlds
    >>> from robust_rlhf_jax.mdp import uniform_policy
    >>> uniform_policy(worlds.chain_mdp())[0, 0].tolist()
    [0.5, 0.5]
    """
    shape = (mdp.horizon, mdp.n_states, mdp.n_actions)
    return jnp.full(shape, 1.0 / mdp.n_actions, mdp.features.dtype)
