"""The planning game of a data set: whitened samples, weights that survive corruption, and the moments they give."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax._iterate import worst_status
from robust_rlhf_jax.kernels.linalg import (
    einsum,
    matmul,
    pseudo_inverse_root,
    relative_tolerance,
    weighted_gram,
    weighted_mean,
    weighted_second_moment,
)
from robust_rlhf_jax.kernels.primal_dual import (
    GameMoments,
    PolicyTables,
    ascent_moments,
    ascent_rows,
    descent_moments,
    descent_rows,
    following_values,
)
from robust_rlhf_jax.kernels.regression import huber_multiple, huber_regression, huber_weights
from robust_rlhf_jax.moments.mean import refilter_mean
from robust_rlhf_jax.moments.regression import covariate_weights
from robust_rlhf_jax.oracles.transitions import initial_state_weights
from robust_rlhf_jax.preferences import PreferenceData

# This share of what the last filter took comes back before the next one starts: it may have been wrong, or early.
FORGIVEN = 0.5
# Clip this much wider than R-LSVI, at 1.5/√ε standard deviations. Where success is rare its samples are residuals
# of one sign, and clipping them is a bias: on corrupted chains a width of 1 leaves a gap of .053, 1.3 to 1.6 of .02.
WIDER = 1.5


class Game(eqx.Module):
    """Samples of every step in the coordinates in which the game is played; made once per data set.

    `phi` [H, n, d] and `table` [S, A, d]: transition features, whitened if so asked; `reward_phi` [H, n, p]; `states`
    [H+1, n]; `reward_table` [S, A, p]; `base` [H, n]: weights of a covariate filter; `reward_second` [H, d, p]: robust
    E[φφ^rᵀ], which turns β into E_π[φ^r]; `gram_root_inverse` [H, d, d]: (Σ_i base_i φ_iφ_iᵀ)^{-1/2}, for
    regressions; `mean_square`: robust E‖φ‖² over all steps; `order` [n]: a random order for sample splitting; `status`
    of the filter.

    Pooled data: one step's worth of samples, n = 2N·(steps compared) transitions, serves all steps of the plan
    (`phi` [1, n, d], `reward_phi` [1, n, p], `states` [2, n]), and `start` [S] is where the plan begins; else None.
    """

    phi: Float[Array, "K n d"]
    reward_phi: Float[Array, "K n p"]
    states: Int[Array, "K+1 n"]
    table: Float[Array, "S A d"]
    reward_table: Float[Array, "S A p"]
    base: Float[Array, "H n"]
    reward_second: Float[Array, "H d p"]
    gram_root_inverse: Float[Array, "H d d"]
    mean_square: Float[Array, ""]
    order: Int[Array, " n"]
    epsilon: Float[Array, ""]
    status: Int[Array, ""]
    start: Float[Array, " S"] | None = None

    @property
    def n_states(self) -> int:
        return len(self.table)

    @property
    def horizon(self) -> int:
        return len(self.base)

    def slot(self, h: int | Int[Array, ""]):
        """Which step's samples stand for step h."""
        return h if self.start is None else 0

    def slot_before(self, h: int | Int[Array, ""]):
        """Which step's samples stand for the step into s_h; for the first one their weight in all means is 0."""
        return jnp.maximum(h - 1, 0) if self.start is None else 0

    def arrivals(self, h: int | Int[Array, ""]) -> Int[Array, " n"]:
        """s_h of the samples of the step into it."""
        return self.states[h if self.start is None else 1]

    def flows_in(
        self, h: int | Int[Array, ""], arrived: Int[Array, " n"], feature: Float[Array, "H S d"]
    ) -> Float[Array, "n d"]:
        """Σ_a π_h(a|s_h)φ(s_h,a) of samples that arrived in `arrived`; its mean under `start` where a plan begins."""
        seen = feature[h][arrived]
        return seen if self.start is None else jnp.where(h == 0, matmul(self.start, feature[0]), seen)


class SampleWeights(eqx.Module):
    """What the robust means keep of every sample [H, n].

    `ascent`: in ∇β_h; `arrival`: of the step into s_h, and `flow`: of the step out of it, in ∇w_h.
    """

    ascent: Float[Array, "H n"]
    arrival: Float[Array, "H n"]
    flow: Float[Array, "H n"]


def prepare_game(data: PreferenceData, epsilon: Float[Array, ""], key: PRNGKeyArray, whiten: bool) -> Game:
    """Both trajectories of every pair as samples; with `whiten` the features' robust mean second moment becomes I."""
    phi = _by_step(data.features, data.pooled)
    base, statuses = jax.lax.map(lambda p: covariate_weights(p, epsilon), phi)
    # By step, so that no second copy of all samples is weighted at once.
    steps = jnp.arange(len(phi))
    moment = jnp.mean(jax.lax.map(lambda h: weighted_second_moment(phi[h], base[h]), steps), axis=0)
    root = pseudo_inverse_root(moment)[0] if whiten else jnp.eye(phi.shape[2], dtype=phi.dtype)
    reward_phi = _by_step(data.observed_reward_features, data.pooled)
    phi = matmul(phi, root)

    def reward_second(h: Int[Array, ""]):
        share = base[h] / jnp.sum(base[h])
        return matmul((phi[h] * share[:, None]).T, reward_phi[h])

    def gram_root_inverse(h: Int[Array, ""]):
        # As in `prepare_design`: directions that only suspect samples cover stay.
        return pseudo_inverse_root(weighted_gram(phi[h], base[h]), relative_tolerance(phi.dtype, 1))[0]

    per_step = (base, jax.lax.map(reward_second, steps), jax.lax.map(gram_root_inverse, steps))
    if data.pooled:
        per_step = tuple(jnp.broadcast_to(x, (data.plan_steps, *x.shape[1:])) for x in per_step)
    return Game(
        phi=phi,
        reward_phi=reward_phi,
        states=_states_by_step(data),
        table=matmul(data.state_features, root),
        reward_table=data.reward_lookup,
        base=per_step[0],
        reward_second=per_step[1],
        gram_root_inverse=per_step[2],
        mean_square=jnp.sum(matmul(moment, root) * root),
        order=jax.random.permutation(key, phi.shape[1]),
        epsilon=epsilon,
        status=worst_status(*statuses),
        start=initial_state_weights(data) if data.pooled else None,
    )


def _by_step(features: Float[Array, "N 2 H d"], pooled: bool) -> Float[Array, "K n d"]:
    steps = 1 if pooled else features.shape[2]
    return jnp.moveaxis(features, 2, 0).reshape(steps, -1, features.shape[3])


def _states_by_step(data: PreferenceData) -> Int[Array, "K n"]:
    states = jnp.moveaxis(data.states, 2, 0).reshape(data.horizon + 1, -1)
    return jnp.stack([states[:-1].reshape(-1), states[1:].reshape(-1)]) if data.pooled else states


def starting_weights(game: Game) -> SampleWeights:
    """Those of the covariate filter."""
    return _shared_weights(game.base)


def _shared_weights(weights: Float[Array, "H n"]) -> SampleWeights:
    """One weight per sample and step in both gradients: what arrives is weighted by the step that it comes from."""
    arrival = jnp.concatenate([jnp.ones_like(weights[:1]), weights[:-1]])
    return SampleWeights(weights, arrival, weights)


def clip_residuals(game: Game, theta: Float[Array, "H p"], tables: PolicyTables) -> SampleWeights:
    """Huber's weights min(1, c/|δ|) for the residuals δ of r + v_{h+1}(s') on φ, about their robust regression.

    About the regression, not about wᵀφ: far from the saddle w is not yet one, and δ would be anything. The
    covariates' influence was bounded once, by the filter of `prepare_game`: a rare sample with a large gradient
    φδ may be all that is known of its direction, and no filter of gradients can tell it from a lie.
    """
    following, multiple = following_values(tables.value), WIDER * huber_multiple(game.epsilon)

    def step(h: Int[Array, ""]):
        slot = game.slot(h)
        columns = game.phi[slot].T
        targets = matmul(game.reward_phi[slot], theta[h]) + following[h][game.states[slot + 1]]
        fit = huber_regression(columns, targets, game.base[h], game.gram_root_inverse[h], multiple)
        # Before w has moved the residuals are of rewards alone, which are linear in φ: only rounding is left.
        rounding = 1e3 * jnp.finfo(targets.dtype).eps * jnp.max(jnp.abs(targets))
        return huber_weights(targets - matmul(fit, columns), game.base[h], multiple, rounding)

    return _shared_weights(jax.lax.map(step, jnp.arange(game.horizon)))


def filter_gradients(
    game: Game,
    weights: SampleWeights,
    theta: Float[Array, "H p"],
    w: Float[Array, "H d"],
    beta: Float[Array, "H d"],
    tables: PolicyTables,
    max_steps: int,
) -> SampleWeights:
    """Filter the samples' gradients at (w, β, π) on from what the last filter left, one step at a time."""
    before = jnp.concatenate([game.base[:1], game.base[:-1]])
    base = (game.base, jnp.minimum(game.base, before))  # a flow needs both of its steps to be sound
    following = following_values(tables.value)

    def filtered(rows: Float[Array, "n d"], base: Float[Array, " n"], last: Float[Array, " n"]):
        return refilter_mean(rows, game.epsilon, base - FORGIVEN * (base - last), max_steps)

    def ascent(h: Int[Array, ""]):
        slot = game.slot(h)
        reward = matmul(game.reward_phi[slot], theta[h])
        rows = ascent_rows(game.phi[slot], reward, following[h][game.states[slot + 1]], w[h])
        return filtered(rows, base[0][h], weights.ascent[h])

    def descent(h: Int[Array, ""]):
        carried = _carried(h, game.phi[game.slot_before(h)], beta)
        arrived = game.flows_in(h, game.arrivals(h), tables.feature)
        rows = descent_rows(game.phi[game.slot(h)], beta[h], arrived, carried)
        return filtered(rows, base[1][h], jnp.minimum(weights.flow[h], base[1][h]))

    steps = jnp.arange(game.horizon)
    up, down = jax.lax.map(ascent, steps), jax.lax.map(descent, steps)
    return SampleWeights(up, down, down)


def _carried(h: int | Int[Array, ""], previous_phi: Float[Array, "n d"], beta: Float[Array, "H d"]):
    """⟨φ_{h−1}, β_{h−1}⟩ of each sample, one at the first step."""
    return jnp.where(h == 0, 1.0, matmul(previous_phi, beta[jnp.maximum(h - 1, 0)]))


def game_moments(game: Game, weights: SampleWeights) -> GameMoments:
    """The moments under `weights`: all that the gradients need until the weights change."""

    def ascent(h: Int[Array, ""]):
        slot = game.slot(h)
        phi, reward_phi, following = game.phi[slot], game.reward_phi[slot], game.states[slot + 1]
        return ascent_moments(phi, reward_phi, following, weights.ascent[h], game.n_states)

    def descent(h: Int[Array, ""]):
        phi, previous = game.phi[game.slot(h)], game.phi[game.slot_before(h)]
        second, arriving, occupied = descent_moments(
            phi, previous, game.arrivals(h), weights.flow[h], weights.arrival[h], game.n_states
        )
        return second, jnp.where(h == 0, 0.0, arriving), occupied

    steps = jnp.arange(game.horizon)
    reward, second, landing = jax.lax.map(ascent, steps)
    flow_second, arriving, occupied = jax.lax.map(descent, steps)
    start = occupied[0] if game.start is None else game.start
    return GameMoments(reward, second, landing, flow_second, arriving, start)


def split_gradients(
    game: Game,
    step: Int[Array, ""],
    group_size: int,
    theta: Float[Array, "H p"],
    w: Float[Array, "H d"],
    beta: Float[Array, "H d"],
    tables: PolicyTables,
):
    """(∇w, ∇β) of iteration `step` from groups of samples that no other iteration sees (paper: D₁^{t,h}, D₂^{t,h})."""
    following, ones = following_values(tables.value), jnp.ones(group_size, w.dtype)

    def group(h: Int[Array, ""], half: int):
        first = ((step * game.horizon + h) * 2 + half) * group_size
        return jax.lax.dynamic_slice(game.order, (first,), (group_size,))

    def mean(rows: Float[Array, "n d"]):
        return weighted_mean(rows, refilter_mean(rows, game.epsilon, ones))

    def at(h: Int[Array, ""]):
        up, down, slot = group(h, 0), group(h, 1), game.slot(h)
        reward = matmul(game.reward_phi[slot, up], theta[h])
        g_beta = ascent_rows(game.phi[slot, up], reward, following[h, game.states[slot + 1, up]], w[h])
        carried = _carried(h, game.phi[game.slot_before(h), down], beta)
        arrived = game.flows_in(h, game.arrivals(h)[down], tables.feature)
        g_w = descent_rows(game.phi[slot, down], beta[h], arrived, carried)
        return mean(g_w), mean(g_beta)

    return jax.lax.map(at, jnp.arange(game.horizon))


def features_of(game: Game, beta: Float[Array, "H d"]) -> Float[Array, "H p"]:
    """v̂_h = RobCovariance·β_h, an estimate of E_π[φ^r_h] (paper: Algorithm 7, last loop)."""
    return einsum("hdp,hd->hp", game.reward_second, beta)
