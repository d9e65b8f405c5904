"""How well behaviour policies cover a world: the constants ξ, α, ν, κ of the paper's assumptions, exactly."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.kernels.lapack import eigh
from robust_rlhf_jax.kernels.linalg import einsum, matmul, relative_tolerance, top_eigenpair
from robust_rlhf_jax.mdp import LinearMDP, expected_features, optimal_policy

from .feature_moments import difference_second_moment, feature_second_moment

# A next state of smaller probability than this is the rounding of an impossible one.
IMPOSSIBLE = 1e-6


class Coverage(eqx.Module):
    """The constants that the paper's bounds are stated in; larger ξ is better, smaller α, ν, κ are.

    | field | paper |
    |---|---|
    | `xi` | ξ of Assumption 3.2: Σ^diff ⪰ ξL·I on its span, L = √H·max‖φ‖ |
    | `xi_average` | the same of Σ^avg = E[(φ(τ⁰) + φ(τ¹))(φ(τ⁰) + φ(τ¹))ᵀ] (V2 of that assumption) |
    | `alpha` | α: sup_w wᵀΣ^diff_{π★,μ₁}w / wᵀΣ^diff_{μ₀,μ₁}w |
    | `alpha_average` | its V2: sup_w wᵀΣ_{π★}w / wᵀΣ^avg w |
    | `nu` | ν: m★ᵀ(Σ^avg)⁻²m★, m★ = E_π★[φ(τ)], the least ‖y‖² with Σ^avg·y = m★ |
    | `nu_steps` | Σ_h‖β★_h‖², β★_h = Λ_h⁻¹E_π★[φ_h], Λ_h the mean over both behaviours (Algorithm 7's radius) |
    | `kappa` | κ = sup dσ⁻¹(p)/dp = 1/(σ(z)σ(−z)), z the largest θ★·x that the behaviour can show |
    | `kappa_ball` | a bound on κ over all of ‖θ‖ ≤ √(Hp), which contains Θ(D₁): z ≤ √(Hp)·√H·diameter of φ |
    | `rank`, `rank_average` | dimension of the span of Σ^diff and of Σ^avg |

    α or ν is ∞ where the target leaves the span of what the behaviour shows. The proofs of Theorems 4.3 and 5.1 apply κ
    to every reward of Θ(D₁), not to θ★ alone: `kappa_over` bounds it for a given set.

    **Example:**

    >>> from robust_rlhf_jax import diagnostics, worlds
    >>> chain = worlds.chain_mdp(n_states=6, dim=4, horizon=3)
    >>> both = (worlds.uniform_policy(chain), worlds.uniform_policy(chain))
    >>> found = diagnostics.coverage(chain, both)
    >>> bool(4 <= found.kappa <= found.kappa_ball)  # at θ = 0 it is 4
    True
    """

    xi: Float[Array, ""]
    xi_average: Float[Array, ""]
    alpha: Float[Array, ""]
    alpha_average: Float[Array, ""]
    nu: Float[Array, ""]
    nu_steps: Float[Array, ""]
    kappa: Float[Array, ""]
    kappa_ball: Float[Array, ""]
    rank: Int[Array, ""]
    rank_average: Int[Array, ""]


@jax.jit
def coverage(
    mdp: LinearMDP,
    behaviour: tuple[Float[Array, "H S A"], Float[Array, "H S A"]],
    target: Float[Array, "H S A"] | None = None,
    *,
    tolerance: float | Float[Array, ""] | None = None,
) -> Coverage:
    """ξ, α, ν, κ of τ⁰ ~ μ₀, τ¹ ~ μ₁ with respect to `target` (default: an optimal policy), without sampling.

    Σ^diff has H exact null directions, shifts of θ_h that no policy decision depends on (docs/errata.md): they are
    dropped and `rank` tells how many directions are left.

    **Arguments:** `behaviour` (μ₀, μ₁), each [H, S, A]; `target` [H, S, A] or a mixture; `tolerance`: eigenvalues
    below this share of the largest count as null, by default what the precision resolves. A world made in float32
    has null directions of float32's size in float64 too: give its tolerance.

    **Example:**

    >>> from robust_rlhf_jax import diagnostics, worlds
    >>> chain = worlds.chain_mdp(n_states=6, dim=4, horizon=3)
    >>> both = (worlds.uniform_policy(chain), worlds.uniform_policy(chain))
    >>> found = diagnostics.coverage(chain, both)
    >>> int(found.rank), bool(found.alpha > 1), bool(found.xi > 0)
    (7, True, True)
    """
    mu0, mu1 = behaviour
    target = optimal_policy(mdp)[0] if target is None else target
    k = mdp.theta.size
    seen = difference_second_moment(mdp, mu0, mu1).reshape(k, k)
    wanted = difference_second_moment(mdp, target, mu1).reshape(k, k)
    own = 0.5 * (feature_second_moment(mdp, mu0) + feature_second_moment(mdp, mu1))
    average = 4.0 * own.reshape(k, k) - seen  # (a + b)² = 2a² + 2b² − (a − b)²
    mean = expected_features(mdp, target)
    length = jnp.sqrt(mdp.horizon * jnp.max(jnp.sum(mdp.reward_table**2, axis=-1)))
    if tolerance is None:
        tolerance = relative_tolerance(seen.dtype, k)
    lowest, rank = smallest_eigenvalue(seen, tolerance)
    lowest_average, rank_average = smallest_eigenvalue(average, tolerance)
    nu_steps = jax.lax.map(
        lambda step: least_square(step[0], step[1], tolerance), (einsum("hphq->hpq", own), mean)
    )
    everything = feature_second_moment(mdp, target).reshape(k, k)
    return Coverage(
        xi=lowest / length,
        xi_average=lowest_average / length,
        alpha=relative_condition_number(wanted, seen, tolerance),
        alpha_average=relative_condition_number(everything, average, tolerance),
        nu=least_square(average, mean.reshape(-1), tolerance),
        nu_steps=jnp.sum(nu_steps),
        kappa=link_steepness(largest_margin(mdp, behaviour)),
        kappa_ball=link_steepness(k**0.5 * mdp.horizon**0.5 * _widest(mdp)),
        rank=rank,
        rank_average=rank_average,
    )


def _widest(mdp: LinearMDP) -> Float[Array, ""]:
    """At least the distance of any two reward features: twice their largest distance from their mean."""
    table = mdp.reward_table.reshape(-1, mdp.reward_table.shape[-1])
    return 2.0 * jnp.sqrt(jnp.max(jnp.sum((table - jnp.mean(table, axis=0)) ** 2, axis=-1)))


def _span(
    sigma: Float[Array, "k k"], tolerance: float | Float[Array, ""]
) -> tuple[Float[Array, " k"], Float[Array, "k k"], Bool[Array, " k"]]:
    values, vectors = eigh(sigma)
    keep = values > tolerance * jnp.maximum(values[-1], 0.0)
    return values, vectors, keep


def smallest_eigenvalue(
    sigma: Float[Array, "k k"], tolerance: float | Float[Array, ""]
) -> tuple[Float[Array, ""], Int[Array, ""]]:
    """(smallest eigenvalue that is not null, rank); 0 for a zero matrix."""
    values, _, keep = _span(sigma, tolerance)
    lowest = jnp.min(jnp.where(keep, values, jnp.inf))
    return jnp.where(jnp.any(keep), lowest, 0.0), jnp.sum(keep)


def relative_condition_number(
    wanted: Float[Array, "k k"], seen: Float[Array, "k k"], tolerance: float | Float[Array, ""]
) -> Float[Array, ""]:
    """sup_w wᵀWw / wᵀSw on the span of S: the top eigenvalue of S^{-1/2}WS^{-1/2}; ∞ if W leaves that span."""
    values, vectors, keep = _span(seen, tolerance)
    whitener = vectors * jnp.where(keep, 1.0 / jnp.sqrt(jnp.where(keep, values, 1.0)), 0.0)
    outside = vectors * ~keep
    leak = jnp.trace(matmul(outside.T, matmul(wanted, outside)))
    top = top_eigenpair(matmul(whitener.T, matmul(wanted, whitener)))[0]
    return jnp.where(leak > tolerance * jnp.trace(wanted), jnp.inf, top)


def least_square(
    sigma: Float[Array, "k k"], mean: Float[Array, " k"], tolerance: float | Float[Array, ""]
) -> Float[Array, ""]:
    """min ‖y‖² over Σy = mean, that is ‖Σ⁺·mean‖²; ∞ where no y does it."""
    values, vectors, keep = _span(sigma, tolerance)
    inside = matmul(vectors.T, mean)
    leak = jnp.sum(jnp.where(keep, 0.0, inside) ** 2)
    solution = jnp.where(keep, inside / jnp.where(keep, values, 1.0), 0.0)
    impossible = leak > tolerance * jnp.sum(inside**2)
    return jnp.where(impossible, jnp.inf, jnp.sum(solution**2))


def link_steepness(margin: Float[Array, ""]) -> Float[Array, ""]:
    """κ = 1/(σ(z)σ(−z)) = 2 + 2cosh z: the steepest that σ⁻¹ gets on [σ(−z), σ(z)]."""
    return 2.0 + 2.0 * jnp.cosh(margin)


def largest_margin(
    mdp: LinearMDP, behaviour: tuple[Float[Array, "H S A"], Float[Array, "H S A"]]
) -> Float[Array, ""]:
    """max |r(τ¹) − r(τ⁰)| over all pairs of trajectories that have positive probability under (μ₀, μ₁)."""
    rewards = mdp.rewards()
    high0, high1 = (_best_return(mdp, mu, rewards) for mu in behaviour)
    low0, low1 = (-_best_return(mdp, mu, -rewards) for mu in behaviour)
    return jnp.maximum(high1 - low0, high0 - low1)


def _best_return(mdp: LinearMDP, policy: Float[Array, "H S A"], rewards: Float[Array, "H S A"]):
    """The largest return of any trajectory that can happen: luck, not planning, chooses the next state."""

    def backward(next_best, step):
        measure, reward, chances = step

        def lucky(phi):  # one state's actions at a time: [A, S], never the whole [S·A, S]
            return jnp.max(jnp.where(matmul(phi, measure) > IMPOSSIBLE, next_best, -jnp.inf), axis=-1)

        total = reward + jax.lax.map(lucky, mdp.features)
        return jnp.max(jnp.where(chances > 0, total, -jnp.inf), axis=-1), None

    first = jnp.zeros(mdp.n_states, rewards.dtype)
    best, _ = jax.lax.scan(backward, first, (mdp.transition_measures, rewards, policy), reverse=True)
    return jnp.max(jnp.where(mdp.initial_distribution > 0, best, -jnp.inf))
