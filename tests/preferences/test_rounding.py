"""Options are subtracted in the file's precision: what float32 cannot hold of them is kept beside them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.audit import audit
from robust_rlhf_jax.lab.worlds import random_linear_mdp
from robust_rlhf_jax.likelihood import trimmed_mle
from robust_rlhf_jax.mdp import optimal_policy
from robust_rlhf_jax.preferences import (
    changed_pairs,
    check_preferences,
    load,
    load_rail_choices,
    preferences_from_features,
    preferences_from_options,
    random_split,
    save,
)

NOW = 1.7e9


def times(n=400, seed=0):
    """(chosen, rejected) [N, 2]: seconds since 1970, of which the later by some is preferred, and a price."""
    rng = np.random.default_rng(seed)
    start = NOW + rng.uniform(-5e7, 5e7, n)
    gap = rng.normal(0, 60, n)
    first = np.stack([start, rng.normal(0, 1, n)], axis=1)
    second = np.stack([start + gap, rng.normal(0, 1, n)], axis=1)
    better = rng.uniform(size=n) < 1 / (1 + np.exp(-(gap / 30 + second[:, 1] - first[:, 1])))
    return np.where(better[:, None], second, first), np.where(better[:, None], first, second)


def write_csv(path, chosen, rejected):
    rows = np.concatenate([chosen, rejected], axis=1)
    lines = [",".join(map(repr, row)) for row in rows.tolist()]
    path.write_text("\n".join(["chosen_time,chosen_price,rejected_time,rejected_price", *lines]) + "\n")
    return path


def test_unix_times_differ_as_in_the_file(tmp_path):
    chosen, rejected = times()
    x = load(write_csv(tmp_path / "times.csv", chosen, rejected)).differences()
    np.testing.assert_allclose(x, chosen - rejected, rtol=1e-6)


@pytest.mark.slow
def test_large_numbers_cost_an_audit_nothing(tmp_path):
    """Against the same pairs with the time counted from the start: .605 instead of .875, once."""
    chosen, rejected = times()
    offset = np.array([NOW, 0.0])
    options = {"folds": 2, "repeats": 1, "estimator": "row_normalised"}
    found = []
    for shift, name in ((0.0, "since_1970.csv"), (offset, "shifted.csv")):
        data = load(write_csv(tmp_path / name, chosen - shift, rejected - shift))
        result = audit(jax.random.key(0), data, 0.1, **options)
        found.append(np.asarray([result.plain.accuracy, result.robust.accuracy]))
    print(f"accuracy of seconds since 1970 {found[0]}, from the start {found[1]}")
    np.testing.assert_allclose(found[0], found[1], atol=0.01)
    assert found[0].min() > 0.7


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_arrays_in_float64(suffix, tmp_path):
    """Two steps; what `save` wrote without x64 keeps the remainder too."""
    rng = np.random.default_rng(1)
    features = NOW + rng.normal(0, 20, (30, 2, 2, 3))
    with jax.enable_x64(True):
        made = preferences_from_options(features[:, 0, 0], features[:, 1, 0], rng.choice([-1.0, 1.0], 30))
        data = dataclasses.replace(
            made,
            features=jnp.asarray(features),
            states=jnp.zeros((30, 2, 3), int),
            actions=jnp.zeros((30, 2, 2), int),
        )
        exact = np.asarray(data.differences())
        save(tmp_path / f"a.{suffix}", data)
        save(tmp_path / f"b.{suffix}", dataclasses.replace(data, stationary=True))
    loaded = load(tmp_path / f"a.{suffix}")
    assert loaded.features.dtype == jnp.float32
    np.testing.assert_allclose(loaded.differences(), exact, rtol=1e-5, atol=1e-4)
    summed = load(tmp_path / f"b.{suffix}").differences()
    np.testing.assert_allclose(summed, exact.reshape(30, 2, 3).sum(axis=1), rtol=1e-4, atol=1e-3)
    save(tmp_path / f"c.{suffix}", loaded)
    again = load(tmp_path / f"c.{suffix}")
    np.testing.assert_array_equal(again.differences(), loaded.differences())


def test_pairs_that_float32_takes_for_the_same_can_be_learnt_from():
    chosen = np.full((5, 1), NOW) + np.arange(5.0)[:, None]
    data = preferences_from_features(chosen, np.full((5, 1), NOW))
    np.testing.assert_array_equal(data.differences()[:, 0], np.arange(5.0))


@pytest.mark.slow
def test_the_remainder_goes_with_its_pair():
    chosen, rejected = times(n=20)
    data = preferences_from_features(chosen, rejected)
    np.testing.assert_array_equal(data.take(jnp.arange(20)[::-1]).differences(), data.differences()[::-1])
    for part in random_split(jax.random.key(0), data, 3):
        assert part.rounding.shape == (6, 1, 2)
    other = dataclasses.replace(data, rounding=data.rounding.at[3].add(50.0))
    np.testing.assert_array_equal(np.flatnonzero(changed_pairs(data, other)), [3])


def test_data_that_float32_holds_well_stay_as_they_are():
    """No remainder where it would be below 2^-12 of the usual difference, and none in float64."""
    rng = np.random.default_rng(0)
    assert preferences_from_features(rng.normal(size=(50, 3)), rng.normal(size=(50, 3))).rounding is None
    assert load_rail_choices().rounding is None
    with jax.enable_x64(True):
        assert preferences_from_features(*times()).rounding is None


@pytest.mark.parametrize(
    ("rounding", "message"),
    [
        (jnp.zeros((20, 2)), r"rounding must have shape \(20, 1, 2\)"),
        (jnp.full((20, 1, 2), jnp.nan), r"rounding\[0, 0, 0\] is nan"),
        (jnp.zeros((20, 1, 2), jnp.float16), "rounding has dtype float16"),
    ],
)
def test_a_wrong_remainder_is_named(rounding, message):
    data = preferences_from_features(*times(n=20))
    with pytest.raises(ValueError, match=message):
        check_preferences(dataclasses.replace(data, rounding=rounding))


@pytest.mark.slow
def test_the_span_is_that_of_the_exact_differences():
    """Two columns of Unix times with one gap differ by rounding alone: exact differences show the null direction."""
    chosen, rejected = times()
    twice = [np.stack([part[:, 0], part[:, 0] + 1e8 + 37, part[:, 1]], axis=1) for part in (chosen, rejected)]
    data = preferences_from_features(*twice)
    assert data.rounding is not None
    found = jax.jit(lambda x, o: trimmed_mle(x, o, 0.0, radius=10.0))(data.differences(), data.labels)
    assert found.rank == 2
    held = dataclasses.replace(data, rounding=None)
    assert trimmed_mle(held.differences(), data.labels, 0.0, radius=10.0).rank == 3


@pytest.mark.slow
def test_a_planner_needs_features_near_zero():
    """r(s, a) of features near 10⁹ loses its digits, as the docstring says; centred by a constant it keeps them."""
    mdp = random_linear_mdp(jax.random.key(0), n_states=5, n_actions=3, dim=3, horizon=2)
    exact = np.asarray(mdp.features, np.float64)
    policy = optimal_policy(mdp)[0]
    plans = {}
    for name, table in {
        "far": exact + 1e9,
        "centred": exact + 1e9 - np.median(exact + 1e9, axis=(0, 1)),
    }.items():
        world = dataclasses.replace(mdp, reward_features=jnp.asarray(table, jnp.float32))
        plans[name] = optimal_policy(world)[0]
    np.testing.assert_array_equal(plans["centred"], policy)
    assert not np.array_equal(plans["far"], policy)
