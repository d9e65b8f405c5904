"""Every adversary keeps its budget and touches nothing else; each does what its docstring says."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_parameters import slow_but_few

from robust_rlhf_jax import PreferenceData, changed_pairs, sample_preferences
from robust_rlhf_jax.lab.attacks import (
    ATTACKS,
    adaptive,
    adaptive_filtered,
    adaptive_filtered_on_table,
    adaptive_on_table,
    identifiable_theta,
    push_features,
)
from robust_rlhf_jax.lab.attacks.listed import conduct_of
from robust_rlhf_jax.mdp import LinearMDP, occupancy, optimal_policy, optimal_state_values

names = pytest.mark.parametrize("name", slow_but_few(ATTACKS, 3, slow=lambda name: "adaptive" in name))
# The contract does not depend on how long an attack searches.
SHORT = {
    "adaptive": partial(adaptive, steps=2),
    "adaptive_filtered": partial(adaptive_filtered, steps=2, restarts=2, templates=5),
    "adaptive_on_table": partial(adaptive_on_table, steps=2),
    "adaptive_filtered_on_table": partial(adaptive_filtered_on_table, steps=2),
}
CALLED = {name: SHORT.get(name, attack) for name, attack in ATTACKS.items()}
# Compiled carelessly: at this size code is compiled for longer than it runs.
quick_jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
JITTED = {name: quick_jit(attack) for name, attack in CALLED.items()}
FIELDS = ("states", "actions", "features", "labels")
AT_MOST = [name for name, attack in ATTACKS.items() if conduct_of(attack).at_most]
exact_names = pytest.mark.parametrize(
    "name",
    slow_but_few([name for name in ATTACKS if name not in AT_MOST], 3, slow=lambda name: "adaptive_" in name),
)
at_most_names = pytest.mark.parametrize("name", slow_but_few(AT_MOST, 3))
COUNTS = (0, 1, 7, 10, 28, 29, 30, 35, 49)


@pytest.fixture(scope="module")
def world(make_mdp):
    mdp = make_mdp()
    return mdp, sample_preferences(jax.random.key(0), mdp, 100)


@pytest.fixture(scope="module")
def split_world(make_mdp):
    """Rewards have features of their own, two of them."""
    rng = np.random.default_rng(4)
    base = make_mdp()
    table = jnp.asarray(rng.uniform(-0.5, 0.5, size=(6, 3, 2)), jnp.float32)
    theta = jnp.asarray(rng.normal(size=(3, 2)), jnp.float32)
    mdp = LinearMDP(base.features, base.transition_measures, theta, base.initial_distribution, table)
    data = sample_preferences(jax.random.key(0), mdp, 100)
    return mdp, data


@pytest.fixture(scope="module")
def attacked(world):
    """attack(name, ε) on the same data."""
    mdp, data = world
    return lambda name, epsilon: JITTED[name](jax.random.key(1), data, epsilon, mdp)


@exact_names
def test_exactly_the_budget_is_spent(name, world, attacked):
    """⌊εN⌋ of the decimal that was meant: .29·100 = 29 although 0.29 * 100 < 29 in floating point."""
    _, data = world
    for count in COUNTS:
        other = attacked(name, count / 100)
        assert np.sum(changed_pairs(data, other)) == count
    assert np.sum(changed_pairs(data, attacked(name, 0.2999))) == 29
    assert np.sum(changed_pairs(data, attacked(name, 0.009))) == 0


@at_most_names
def test_at_most_the_budget_is_spent(name, world, attacked):
    _, data = world
    changed = np.array([np.sum(changed_pairs(data, attacked(name, count / 100))) for count in COUNTS])
    assert (changed <= COUNTS).all()
    assert changed[-1] >= 10, "and not next to nothing"
    assert np.sum(changed_pairs(data, attacked(name, 0.009))) == 0


@names
def test_other_pairs_and_the_table_stay_bitwise(name, world, attacked):
    _, data = world
    other = attacked(name, 0.2)
    same = ~np.asarray(changed_pairs(data, other))
    assert same.sum() >= 80
    for field in FIELDS:
        before, after = np.asarray(getattr(data, field)), np.asarray(getattr(other, field))
        assert before.dtype == after.dtype
        assert before.shape == after.shape
        assert before[same].tobytes() == after[same].tobytes()
    np.testing.assert_array_equal(other.state_features, data.state_features)
    for field in conduct_of(ATTACKS[name]).untouched:
        np.testing.assert_array_equal(getattr(other, field), getattr(data, field))
    np.testing.assert_array_equal(np.abs(other.labels), 1.0)
    assert np.isfinite(other.features).all()
    none = attacked(name, 0.0)
    for field in FIELDS:
        assert np.asarray(getattr(none, field)).tobytes() == np.asarray(getattr(data, field)).tobytes()


# Those that search differ in their victim only: one batched compilation of theirs is enough.
@pytest.mark.parametrize(
    "name",
    slow_but_few(
        [name for name in ATTACKS if not name.startswith("adaptive_filtered")],
        slow=lambda name: name.startswith("adaptive"),
    ),
)
def test_batch_equals_loop_and_new_epsilon_compiles_nothing(name, world, attacked, count_compilations):
    mdp, data = world
    epsilons = np.array([0.0, 0.1, 0.29, 0.45], np.float32)
    batch = quick_jit(jax.vmap(lambda e: CALLED[name](jax.random.key(1), data, e, mdp)))(epsilons)
    attacked(name, 0.3)
    with count_compilations() as count:
        singles = [attacked(name, float(e)) for e in epsilons]
    assert count.compiled == []
    for i, single in enumerate(singles):
        for field in FIELDS:
            np.testing.assert_allclose(getattr(batch, field)[i], getattr(single, field), rtol=1e-5, atol=1e-5)


@names
def test_nothing_changes_at_epsilon_zero(name, world, attacked):
    """To the bit: a sweep computes the cells of ε = 0 once for all attacks."""
    jax.tree.map(np.testing.assert_array_equal, attacked(name, 0.0), world[1])


@pytest.mark.parametrize("name", ["flip_random", "teacher_mistake"])
def test_eager_equals_jitted(name, world, attacked):
    mdp, data = world
    eager = CALLED[name](jax.random.key(1), data, 0.3, mdp)
    np.testing.assert_array_equal(eager.labels, attacked(name, 0.3).labels)


@names
@pytest.mark.parametrize("epsilon", [0.5, 1.0, -0.1, float("nan")])
def test_impossible_budgets_are_refused(name, world, epsilon):
    mdp, data = world
    with pytest.raises(ValueError, match=r"outside \[0, 0\.5\)"):
        jax.eval_shape(lambda key: ATTACKS[name](key, data, epsilon, mdp), jax.random.key(0))


@names
def test_the_key_chooses_the_rows_where_it_says_so(name, world):
    mdp, data = world
    rows = [
        np.asarray(changed_pairs(data, JITTED[name](jax.random.key(seed), data, 0.1, mdp)))
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(rows[0], rows[1])
    assert (rows[0] != rows[2]).any() == conduct_of(ATTACKS[name]).draws_pairs


def test_flips_are_the_largest_margins(world, attacked):
    mdp, data = world
    x = np.asarray(data.features[:, 1] - data.features[:, 0], np.float64).reshape(100, -1)
    margins = np.asarray(data.labels) * (x @ np.asarray(mdp.theta, np.float64).ravel())
    for epsilon in (0.05, 0.29):
        flipped = np.flatnonzero(np.asarray(attacked("flip_confident", epsilon).labels != data.labels))
        np.testing.assert_array_equal(np.sort(flipped), np.sort(np.argsort(-margins)[: round(100 * epsilon)]))


def span_projector(table):
    """Projector on the span of feature differences, by singular values."""
    rows = np.asarray(table, np.float64).reshape(-1, table.shape[-1])
    _, sizes, right = np.linalg.svd(rows - rows[0], full_matrices=False)
    basis = right[sizes > 1e-5 * sizes[0]]
    return basis.T @ basis


def test_identifiable_theta_is_the_projection(make_mdp, rotate_features):
    for mdp in (make_mdp(), rotate_features(make_mdp(seed=3))):
        projector = span_projector(mdp.features)
        assert round(np.trace(projector)) == mdp.dim - 1
        found = np.asarray(identifiable_theta(mdp), np.float64)
        np.testing.assert_allclose(found, np.asarray(mdp.theta, np.float64) @ projector, atol=1e-5)
        # No policy can tell: the parts left out are the same for all actions in all states.
        left = np.asarray(mdp.features, np.float64) @ (np.asarray(mdp.theta, np.float64) - found).T
        np.testing.assert_allclose(np.ptp(left.reshape(-1, mdp.horizon), axis=0), 0.0, atol=1e-5)


@pytest.mark.parametrize("rotated", [False, True])
def test_pushed_pairs_speak_against_theta(rotated, world, make_mdp, rotate_features):
    mdp, data = world
    if rotated:
        mdp = rotate_features(mdp)
        data = sample_preferences(jax.random.key(0), mdp, 100)
    other = JITTED["push_features"](jax.random.key(1), data, 0.2, mdp)
    bad = np.asarray(changed_pairs(data, other))
    x = np.asarray(other.differences(), np.float64)[bad]
    np.testing.assert_array_equal(x, np.broadcast_to(x[0], x.shape))
    np.testing.assert_array_equal(np.asarray(other.labels)[bad], 1.0)
    planted = x[0].reshape(mdp.horizon, mdp.dim)
    projector = span_projector(mdp.features)
    np.testing.assert_allclose(planted @ projector, planted, atol=1e-5)
    theta = np.asarray(mdp.theta, np.float64) @ projector
    cosine = np.sum(planted * theta) / np.linalg.norm(planted) / np.linalg.norm(theta)
    np.testing.assert_allclose(cosine, -1.0, atol=1e-6)
    norms = np.linalg.norm(np.asarray(other.features, np.float64)[bad], axis=-1)
    assert norms.max() <= 1 + 1e-6
    np.testing.assert_allclose(norms.max(), 1.0, rtol=1e-6, err_msg="the largest that no norm check sees")
    short = jax.jit(lambda d: push_features(jax.random.key(1), d, 0.2, mdp, scale=0.3))(data)
    np.testing.assert_allclose(np.linalg.norm(np.asarray(short.differences())[bad], axis=1), 0.3, rtol=1e-5)


@pytest.mark.slow
def test_pushed_reward_features(split_world):
    """Where rewards have features of their own, those are replaced and transitions stay."""
    mdp, data = split_world
    other = JITTED["push_features"](jax.random.key(1), data, 0.1, mdp)
    bad = np.asarray(changed_pairs(data, other))
    assert bad.sum() == 10
    np.testing.assert_array_equal(other.features, data.features)
    assert (other.reward_features != data.reward_features).any(axis=(1, 2, 3))[bad].all()
    flipped = JITTED["flip_confident"](
        jax.random.key(1), dataclasses.replace(data, stationary=True), 0.1, mdp
    )
    assert np.sum(changed_pairs(data, flipped)) == 10
    assert isinstance(flipped, PreferenceData)


def test_praised_pairs_take_the_rarest_action(world, attacked):
    """In trajectory 1, at every step, with the features that the action really has; the label says it is better."""
    mdp, data = world
    rarest = np.bincount(np.asarray(data.actions).ravel(), minlength=mdp.n_actions).argmin()
    other = attacked("praise_rare", 0.2)
    bad = np.asarray(changed_pairs(data, other))
    np.testing.assert_array_equal(np.asarray(other.actions)[bad, 1], rarest)
    np.testing.assert_array_equal(np.asarray(other.labels)[bad], 1.0)
    states = np.asarray(data.states)[:, 1, :-1]
    np.testing.assert_array_equal(
        np.asarray(other.features)[bad, 1], np.asarray(mdp.features)[states, rarest][bad]
    )
    np.testing.assert_array_equal(other.states, data.states)
    for field in ("actions", "features"):
        np.testing.assert_array_equal(getattr(other, field)[:, 0], getattr(data, field)[:, 0])


@pytest.mark.slow
def test_praised_reward_features(split_world):
    """Where rewards have features of their own, both kinds are those of the rarest action."""
    mdp, data = split_world
    other = JITTED["praise_rare"](jax.random.key(1), data, 0.1, mdp)
    bad = np.asarray(changed_pairs(data, other))
    assert bad.sum() == 10
    states, actions = np.asarray(other.states)[bad, 1, :-1], np.asarray(other.actions)[bad, 1]
    np.testing.assert_array_equal(
        np.asarray(other.reward_features)[bad, 1], np.asarray(mdp.reward_table)[states, actions]
    )
    np.testing.assert_array_equal(
        np.asarray(other.features)[bad, 1], np.asarray(mdp.features)[states, actions]
    )
    np.testing.assert_array_equal(other.reward_features[:, 0], data.reward_features[:, 0])
    np.testing.assert_array_equal(other.reward_table, data.reward_table)


@pytest.mark.parametrize("rotated", [False, True])
def test_corrupted_transitions(rotated, world, rotate_features):
    """Both trajectories, all steps: ± the least covered direction, and next the worst state in the data."""
    mdp, data = world
    if rotated:
        mdp = rotate_features(mdp)
        data = sample_preferences(jax.random.key(0), mdp, 100)
    values = np.asarray(optimal_state_values(mdp), np.float64)
    other = JITTED["corrupt_transitions"](jax.random.key(1), data, 0.2, mdp)
    bad = np.asarray(changed_pairs(data, other))
    played = np.einsum(
        "hsa,sad->hd", *map(np.asarray, (occupancy(mdp, optimal_policy(mdp)[0]), mdp.features))
    )
    seen = np.unique(np.asarray(data.states))
    for h in range(mdp.horizon):
        rows = np.asarray(data.features, np.float64)[:, :, h].reshape(-1, mdp.dim)
        spectrum, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
        assert spectrum[0] > 1e-4 * spectrum[-1]
        planted = np.asarray(other.features, np.float64)[bad][:, :, h]
        np.testing.assert_array_equal(planted, np.broadcast_to(planted[0, 0], planted.shape))
        np.testing.assert_allclose(abs(planted[0, 0] @ vectors[:, 0]), 1.0, atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(planted[0, 0]), 1.0, atol=1e-5)
        worst = seen[np.argmin(values[h + 1][seen])]
        following = np.asarray(other.states)[bad][:, :, h + 1]
        np.testing.assert_allclose(values[h + 1][following], values[h + 1][worst], atol=1e-6)
        # Believing ±vᵀw = V(worst) lowers E_π★[φ]ᵀw, whatever the sign of V(worst).
        assert (played[h] @ planted[0, 0]) * values[h + 1][worst] <= 1e-6
    np.testing.assert_array_equal(other.states[..., 0], data.states[..., 0])


@pytest.mark.slow
def test_null_directions_are_not_planted(world):
    """With a column of zeros the smallest eigenvalue is null, and no data could ever confirm it."""
    mdp, data = world
    wide = lambda x: jnp.concatenate([x, jnp.zeros((*x.shape[:-1], 1), x.dtype)], axis=-1)  # noqa: E731
    measures = jnp.concatenate([mdp.transition_measures, jnp.zeros((3, 1, 6), jnp.float32)], axis=1)
    mdp = LinearMDP(wide(mdp.features), measures, wide(mdp.theta), mdp.initial_distribution)
    data = dataclasses.replace(data, state_features=wide(data.state_features), features=wide(data.features))
    other = JITTED["corrupt_transitions"](jax.random.key(1), data, 0.2, mdp)
    bad = np.asarray(changed_pairs(data, other))
    np.testing.assert_allclose(np.asarray(other.features)[bad][..., -1], 0.0, atol=1e-5)


def test_only_states_in_the_data_can_be_worst(world):
    mdp, data = world
    values = np.asarray(optimal_state_values(mdp))
    worst = int(np.argmin(values[1]))
    rows = np.flatnonzero((np.asarray(data.states) != worst).all(axis=(1, 2)))
    fewer = data.take(jnp.asarray(np.resize(rows, 100)))
    other = JITTED["corrupt_transitions"](jax.random.key(1), fewer, 0.2, mdp)
    assert worst not in np.asarray(other.states)
