"""Nothing depends on which option of a pair stands first: exchange any and negate their labels, and all stays."""

import csv
import dataclasses
import gzip
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_parameters import slow_where

from robust_rlhf_jax import (
    estimate_epsilon,
    fit_reward,
    load_rail_choices,
    robust_policy,
    sample_preferences,
    worlds,
)
from robust_rlhf_jax.audit import flag, suspicion_scores
from robust_rlhf_jax.preferences import PreferenceData, preferences_from_features
from robust_rlhf_jax.rewards import fit_differences

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
FILES = [
    name for name in ("electricity", "cars_us", "taxes", "swissmetro") if (SHARED / f"{name}.csv.gz").exists()
]
TURNS = {
    "all": lambda margins, labels: np.ones(len(labels), bool),
    "half": lambda margins, labels: np.random.default_rng(0).random(len(labels)) < 0.5,
    "surest": lambda margins, labels: np.argsort(np.argsort(-np.abs(margins))) < len(labels) // 10,
    "chosen first": lambda margins, labels: labels < 0,
    "nine in ten chosen first": lambda margins, labels: (
        (labels < 0) ^ (np.random.default_rng(1).random(len(labels)) < 0.1)
    ),
}


def turned(data: PreferenceData, rows) -> PreferenceData:
    """The pairs `rows` with their trajectories exchanged and their labels negated."""

    def exchanged(part):
        part = np.array(part)
        part[rows] = part[rows][:, ::-1]
        return jnp.asarray(part)

    parts = {name: exchanged(getattr(data, name)) for name in ("states", "actions", "features")}
    labels = jnp.where(jnp.asarray(rows), -data.labels, data.labels)
    return dataclasses.replace(data, labels=labels, **parts)


def planted(data: PreferenceData) -> PreferenceData:
    """Every tenth pair a copy of the surest one, labelled against the plain fit."""
    margins = np.asarray(fit_reward(data, 0.0).reward(data.differences()))
    features, labels = np.array(data.features), np.array(data.labels)
    surest = np.argmax(np.abs(margins))
    features[::10], labels[::10] = features[surest], -np.sign(margins[surest])
    first, second = features[:, 0, 0], features[:, 1, 0]
    wins = (labels > 0)[:, None]
    chosen, rejected = np.where(wins, second, first), np.where(wins, first, second)
    return preferences_from_features(chosen, rejected)


@cache
def world():
    return sample_preferences(jax.random.key(0), worlds.chain_mdp(), 800)


DATA = {
    "rail": load_rail_choices,
    "rail, planted": lambda: planted(load_rail_choices()),
    "world": world,
}


def same(one, other, tolerance=1e-5):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance), one, other)


# None: nobody says how many pairs are corrupt.
FLAGGED = (None, 0.1)


def found_in(data):
    """All that is compared: the fit, the estimate, the flags under each of `FLAGGED`, the suspicion."""
    flags = [flag(data, epsilon) for epsilon in FLAGGED]
    return fit_reward(data), estimate_epsilon(data), flags, suspicion_scores(data)


@pytest.fixture(scope="module", params=slow_where(lambda name: name == "world", DATA))
def as_given(request):
    """(data, margins of the plain fit, `found_in` of them): once for all ways to turn them."""
    data = DATA[request.param]()
    margins = np.asarray(fit_reward(data, 0.0).reward(data.differences()))
    return data, margins, found_in(data)


@pytest.mark.slow
@pytest.mark.parametrize("how", TURNS)
def test_the_fit_the_flags_and_the_estimate(how, as_given):
    data, margins, (before, estimate, flags, scores) = as_given
    other = turned(data, TURNS[how](margins, np.asarray(data.labels)))
    after, other_estimate, other_flags, other_scores = found_in(other)
    for field in (
        "theta",
        "weights",
        "suspicion",
        "epsilon",
        "interval",
        "undisputed",
        "label_noise",
        "status",
    ):
        same(getattr(before, field), getattr(after, field))
    same(before.explanations.probability, after.explanations.probability)
    assert before.message == after.message
    same(estimate, other_estimate)
    for mine, theirs in zip(flags, other_flags, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    same(scores, other_scores)
    differences = other.differences()[:50]
    same(after.probability(differences, 0 * differences), before.probability(differences, 0 * differences))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["half", "chosen first"])
def test_the_policy(how):
    data = world()
    other = turned(data, TURNS[how](np.asarray(data.labels), np.asarray(data.labels)))
    found = [robust_policy(jax.random.key(1), given, 0.1) for given in (data, other)]
    same(found[0].theta, found[1].theta)
    np.testing.assert_allclose(found[0].value, found[1].value, rtol=1e-4)


@cache
def differences(name):
    with gzip.open(SHARED / f"{name}.csv.gz", "rt", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    values = np.asarray(rows, float)
    k = (len(header) - 1) // 2
    return (values[:, 1 : 1 + k] - values[:, 1 + k :]).astype(np.float32)


@pytest.mark.parametrize("name", slow_where(lambda name: name != "electricity", FILES))
@pytest.mark.parametrize("size", [300, pytest.param(None, marks=pytest.mark.slow)])
def test_files_that_are_chosen_first_are_clean(name, size):
    """As their owners have them: every pair's preferred option first; whole, and three hundred of them."""
    x = differences(name)
    x = x if size is None else x[np.random.default_rng(0).permutation(len(x))[:size]]
    turn = np.random.default_rng(1).choice([-1.0, 1.0], len(x)).astype(np.float32)
    fits = [
        fit_differences(jnp.asarray(s[:, None] * x), jnp.asarray(s), jnp.float32(0.2))
        for s in (np.ones_like(turn), turn)
    ]
    same(*fits)
    assert fits[0].epsilon == 0
    assert fits[0].interval[0] == 0
    np.testing.assert_array_equal(fits[0].weights, 1.0)
    plain = fit_differences(jnp.asarray(x), jnp.ones(len(x)), jnp.float32(0.0))
    np.testing.assert_array_equal(fits[0].theta, plain.theta)
