from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.lab.sweeps.families import (
    FAMILIES,
    PRESETS,
    alike,
    build_worlds,
    pad_world,
    stack_worlds,
)
from robust_rlhf_jax.lab.worlds.family import families_of
from robust_rlhf_jax.mdp import check_linear_mdp, normalised_gap, optimal_policy, policy_value, uniform_policy

families = pytest.mark.parametrize("family", PRESETS["tiny"].every)
# To compile their Dirichlet draws takes seconds.
DRAWN = ("random", "partial_coverage")
LARGE = [(preset, family) for preset in ("quick", "full") for family in PRESETS[preset].every]
LARGER = {"horizon": 4, "n_states": 20, "n_actions": 5, "dim": 18}


def check_behaviour(world):
    mdp, behaviour = world
    assert behaviour.shape == (mdp.horizon, mdp.n_states, mdp.n_actions)
    assert (np.asarray(behaviour) >= 0).all()
    np.testing.assert_allclose(np.sum(behaviour, axis=-1), 1.0, atol=1e-5)


def test_presets_of_a_kind_have_the_same_families():
    for names in (("tiny", "quick", "full"), ("coverage_tiny", "coverage")):
        assert len({tuple(PRESETS[name].families) for name in names}) == 1
    assert PRESETS["tiny"].n_pairs < PRESETS["quick"].n_pairs < PRESETS["full"].n_pairs


def test_a_family_that_does_not_stand_for_a_preset_runs_where_it_is_named():
    """The families of published sweeps are pinned: a new world is no part of them unless it says so."""
    assert list(PRESETS["quick"].families) == ["random", "chain", "gridworld", "partial_coverage"]
    assert list(PRESETS["coverage"].families) == ["uniform", "condition_number", "coverage_ratio"]
    for preset in PRESETS.values():
        assert list(preset.every)[: len(preset.families)] == list(preset.families)
    assert {name for family in FAMILIES.values() for name in family.builders} == set(PRESETS)


def test_families_with_one_name_are_refused():
    module = ModuleType("twice")
    module.FAMILIES = [FAMILIES["chain"]]
    assert families_of([module]) == {"chain": FAMILIES["chain"]}
    module.FAMILIES = [FAMILIES["chain"], FAMILIES["random"]._replace(name="chain")]
    with pytest.raises(ValueError, match="have the name 'chain'"):
        families_of([module])


@families
def test_tiny_worlds_are_linear_and_something_is_at_stake(family, tiny_worlds):
    world = tiny_worlds[family]
    check_linear_mdp(world.mdp)
    check_behaviour(world)
    assert 0.02 < normalised_gap(world.mdp, world.behaviour) < 1.0


@pytest.mark.parametrize(("preset", "family"), [case for case in LARGE if case[1] not in DRAWN])
def test_larger_worlds_are_linear(preset, family):
    (world,) = build_worlds(preset, (family,), jax.random.key(1))
    check_linear_mdp(world.mdp)
    check_behaviour(world)


@pytest.mark.slow
@pytest.mark.parametrize("family", PRESETS["coverage"].families)
def test_coverage_worlds_are_linear(family):
    for preset in ("coverage_tiny", "coverage"):
        (world,) = build_worlds(preset, (family,), jax.random.key(0))
        check_linear_mdp(world.mdp)
        check_behaviour(world)


@pytest.mark.parametrize(("preset", "family"), [case for case in LARGE if case[1] in DRAWN])
def test_larger_random_worlds_have_fitting_shapes(preset, family):
    """Traced only."""
    mdp, behaviour = jax.eval_shape(PRESETS[preset].families[family], jax.random.key(1))
    assert behaviour.shape == (mdp.horizon, mdp.n_states, mdp.n_actions)
    assert mdp.transition_measures.shape == (mdp.horizon, mdp.dim, mdp.n_states)


@families
def test_padding_changes_no_value(family, tiny_worlds):
    world = tiny_worlds[family]
    padded = pad_world(world, **LARGER)
    for name, size in LARGER.items():
        assert getattr(padded.mdp, name) == size
    check_linear_mdp(padded.mdp)
    check_behaviour(padded)
    np.testing.assert_allclose(optimal_policy(padded.mdp)[1], optimal_policy(world.mdp)[1], atol=1e-5)
    behaved = policy_value(world.mdp, world.behaviour)
    np.testing.assert_allclose(policy_value(padded.mdp, padded.behaviour), behaved, atol=1e-5)
    np.testing.assert_allclose(
        normalised_gap(padded.mdp, padded.behaviour), normalised_gap(world.mdp, world.behaviour), atol=1e-5
    )


def test_new_actions_repeat_the_last(tiny_worlds):
    """A policy that takes them is worth as much as one that takes the last old action."""
    world = tiny_worlds["random"]
    padded = pad_world(world, **LARGER)
    last = jnp.zeros_like(world.behaviour).at[..., -1].set(1.0)
    new = jnp.zeros_like(padded.behaviour).at[..., -1].set(1.0)
    np.testing.assert_allclose(policy_value(padded.mdp, new), policy_value(world.mdp, last), atol=1e-5)
    assert abs(policy_value(world.mdp, last) - policy_value(world.mdp, uniform_policy(world.mdp))) > 1e-3


@families
def test_padded_states_and_actions_never_occur(family, tiny_worlds):
    world = tiny_worlds[family]
    mdp, behaviour = pad_world(world, **LARGER)
    assert not np.any(mdp.initial_distribution[world.mdp.n_states :])
    assert not np.any(mdp.transition_measures[..., world.mdp.n_states :])
    assert not np.any(behaviour[..., world.mdp.n_actions :])


def test_stacked_worlds_share_the_largest_shape(tiny_worlds):
    worlds = list(tiny_worlds.values())
    stacked = stack_worlds(worlds)
    for name in LARGER:
        assert getattr(stacked.mdp, name) == max(getattr(world.mdp, name) for world in worlds)
    for i, (mdp, _) in enumerate(worlds):
        table = np.asarray(stacked.mdp.features)[i]
        np.testing.assert_array_equal(table[: mdp.n_states, : mdp.n_actions, : mdp.dim], mdp.features)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("tiny", [("random", "chain", "gridworld", "partial_coverage")]),
        ("quick", [("random", "chain", "partial_coverage"), ("gridworld",)]),
    ],
)
def test_small_worlds_are_not_padded_to_large_ones(preset, expected):
    names = tuple(PRESETS[preset].families)
    worlds = dict(zip(names, build_worlds(preset, names, jax.random.key(0)), strict=True))
    assert alike(worlds) == expected
