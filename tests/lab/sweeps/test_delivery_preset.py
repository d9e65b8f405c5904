"""The presets whose segments are shorter than their plans."""

import jax
import numpy as np
import pytest

from robust_rlhf_jax.lab.sweeps import SweepConfig, run_sweep
from robust_rlhf_jax.lab.sweeps.engine import sample_material
from robust_rlhf_jax.lab.sweeps.families import PRESETS, build_worlds, pad_world, stack_worlds
from robust_rlhf_jax.mdp import check_linear_mdp, optimal_policy, policy_value

CONFIG = SweepConfig(
    preset="delivery_tiny",
    families=("delivery_grid",),
    attacks=("praise_rare",),
    epsilons=(0.1,),
    seeds=2,
    algorithms=("standard", "clean_reference"),
    n_pairs=600,
)


@pytest.mark.parametrize("preset", ["delivery", "delivery_tiny"])
def test_worlds_are_linear(preset):
    (world,) = build_worlds(preset, ("delivery_grid",), jax.random.key(0))
    check_linear_mdp(world.mdp)
    assert PRESETS[preset].segment < world.mdp.horizon


@pytest.mark.slow
def test_data_are_segments_with_telling_labels():
    worlds = stack_worlds(build_worlds(CONFIG.preset, CONFIG.families, jax.random.key(0)))
    material = sample_material(CONFIG, worlds)
    data = material.datasets
    assert (data.horizon, data.plan_steps, data.stationary) == (4, 10, True)
    assert (material.entropies < 0.8).all()


@pytest.mark.slow
def test_a_sweep_runs():
    rows = run_sweep(CONFIG).rows
    assert len(rows) == 4
    gaps = {row["algorithm"]: row["normalised_gap"] for row in rows}
    assert all(np.isfinite(gap) for gap in gaps.values())


def test_padding_keeps_reward_features():
    (world,) = build_worlds(CONFIG.preset, CONFIG.families, jax.random.key(0))
    padded = pad_world(world, horizon=12, n_states=20, n_actions=5, dim=22)
    check_linear_mdp(padded.mdp)
    np.testing.assert_allclose(optimal_policy(padded.mdp)[1], optimal_policy(world.mdp)[1], atol=1e-5)
    np.testing.assert_allclose(
        policy_value(padded.mdp, padded.behaviour), policy_value(world.mdp, world.behaviour), atol=1e-5
    )
