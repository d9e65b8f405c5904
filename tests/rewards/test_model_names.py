"""A fitted reward knows its features by name: columns of data frames are taken by name, arrays by place."""

import dataclasses
import json
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from robust_rlhf_jax import Pairs, fit_reward, preferences
from robust_rlhf_jax.rewards import RewardModel
from robust_rlhf_jax.rewards.front_door import known_names
from robust_rlhf_jax.sources import ArraySource

from .test_model import model
from .test_model_files import same_bits

NAMES = ("price", "time", "size")
FEATURES = np.random.default_rng(0).normal(size=(2, 20, 3))
FIRST, SECOND = (pd.DataFrame(side, columns=list(NAMES)) for side in FEATURES)


class Polars:
    """What a frame of Polars has of a frame of pandas."""

    def __init__(self, frame):
        self.frame, self.columns = frame, list(frame.columns)

    def __getitem__(self, names):
        return Polars(self.frame[names])

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.frame, dtype)

    def to_numpy(self):
        return np.asarray(self)


# The same columns as a program may hold them.
HELD = {
    "in another order": lambda frame: frame[["size", "price", "time"]],
    "beside others": lambda frame: frame.assign(id="x")[["id", "time", "size", "price"]],
    "with a prefix": lambda frame: frame[["time", "size", "price"]].add_prefix("chosen_"),
    "with a suffix": lambda frame: frame[["time", "size", "price"]].add_suffix("_a"),
    "as Polars does": lambda frame: Polars(frame[["size", "time", "price"]]),
    "as an Arrow table": lambda frame: pa.Table.from_pandas(frame[["size", "time", "price"]]),
    "as a batch of Arrow": lambda frame: pa.RecordBatch.from_pandas(frame[["time", "size", "price"]]),
    "as an array": lambda frame: frame.to_numpy(),
    "without names": lambda frame: pd.DataFrame(frame.to_numpy()),
}


@pytest.mark.parametrize("hold", HELD.values(), ids=HELD)
def test_columns_are_taken_by_their_names(hold):
    pays, plain = model(names=NAMES), model()
    np.testing.assert_array_equal(pays.reward(hold(FIRST)), plain.reward(FEATURES[0]))
    for mine, other in (
        (pays.probability, plain.probability),
        (pays.outcome_probabilities, plain.outcome_probabilities),
    ):
        np.testing.assert_array_equal(mine(hold(FIRST), SECOND), other(*FEATURES))
        np.testing.assert_array_equal(mine(FEATURES[0], hold(SECOND)), other(*FEATURES))


def test_a_frame_that_lacks_a_feature_is_refused():
    pays = model(names=NAMES)
    for call in (
        pays.reward,
        lambda x: pays.probability(x, SECOND),
        lambda x: pays.outcome_probabilities(SECOND, x),
    ):
        with pytest.raises(ValueError, match=r"no column 'time': give a column for each of the 3 features"):
            call(FIRST.rename(columns={"time": "cost"}))


@pytest.mark.parametrize("names", [["f0", "f1", "f2"], [0, 1, 2]])
def test_where_nobody_named_features_numbered_columns_count_by_number(names):
    frame, plain = pd.DataFrame(FEATURES[0], columns=names), model()
    for order in ([0, 1, 2], [2, 0, 1]):
        turned = frame[[names[place] for place in order]]
        np.testing.assert_array_equal(plain.reward(turned), plain.reward(FEATURES[0]))
    others = frame.set_axis(["a", "b", "c"], axis=1)
    np.testing.assert_array_equal(plain.reward(others), plain.reward(FEATURES[0]))


def test_names_are_those_of_pairs():
    assert known_names(Pairs(FIRST, SECOND)) == NAMES
    assert known_names(Pairs(*FEATURES, names=list(NAMES))) == NAMES
    assert known_names(Pairs(*FEATURES)) == ()
    assert known_names(preferences.load_rail_choices()) == ()
    assert known_names(ArraySource(FIRST, SECOND)) == NAMES
    assert known_names(ArraySource(*FEATURES)) == ()
    options = preferences.preferences_from_features(FIRST, SECOND)
    assert known_names(options) == NAMES
    steps = dataclasses.replace(options, actions=np.zeros((20, 2, 2), np.int32))  # each has a θ of its own
    assert known_names(steps) == ()
    assert known_names(dataclasses.replace(steps, stationary=True)) == NAMES


@pytest.mark.slow
@pytest.mark.parametrize("ties", [False, True])
def test_a_fit_knows_the_names_of_its_features(ties):
    strength = np.where(np.arange(20) < 3, 0.0, 1.0) if ties else None
    fitted = fit_reward(Pairs(FIRST, SECOND, strength=strength), 0.0)
    assert fitted.names == NAMES
    turned = [side[["size", "time", "price"]] for side in (FIRST, SECOND)]
    np.testing.assert_array_equal(fitted.probability(*turned), fitted.probability(*FEATURES))
    assert fit_reward(Pairs(*FEATURES, strength=strength), 0.0).names == ()


@pytest.mark.slow
@pytest.mark.parametrize("hold", [ArraySource, preferences.preferences_from_features])
def test_a_fit_to_other_data_knows_the_names_of_its_features(hold):
    fitted, turned = fit_reward(hold(FIRST, SECOND), 0.0), FIRST[["size", "time", "price"]]
    assert fitted.names == NAMES
    np.testing.assert_array_equal(fitted.reward(turned), fitted.reward(FEATURES[0]))


@pytest.mark.parametrize("names", [(), ("price", "Zeit in „min“", "\ud800")])
def test_files_and_pickles_keep_the_names(names, tmp_path):
    saved = model(names=names)
    saved.save(tmp_path / "reward.npz")
    for again in (RewardModel.load(tmp_path / "reward.npz"), pickle.loads(pickle.dumps(saved))):
        assert again.names == names
        same_bits(again, saved)


def test_files_from_before_there_were_names_have_none(tmp_path):
    path = tmp_path / "reward.npz"
    model(names=NAMES).save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file if name != "names"}
    np.savez(path, **arrays)
    assert RewardModel.load(path).names == ()
    np.savez(path, **arrays, names=np.asarray(json.dumps({})[:1]))
    with pytest.raises(ValueError, match="is no reward model"):
        RewardModel.load(path)


def test_named_models_are_traced_and_mapped_as_others():
    many = jax.vmap(lambda theta: model(theta=theta, names=NAMES))(jnp.eye(3, dtype=jnp.float32))
    assert many.names == NAMES
    features = jnp.arange(3.0)
    np.testing.assert_array_equal(jax.vmap(lambda m: m.reward(features))(many), [0.0, 1.0, 2.0])
    pays = model(names=NAMES)
    doubled = jax.tree.map(lambda leaf: 2 * leaf, pays)
    assert doubled.names == NAMES
    np.testing.assert_allclose(jax.jit(pays.reward)(features), jax.jit(lambda m: m.reward(features))(pays))


def test_another_fit_of_the_same_features_compiles_nothing(count_compilations):
    reward = jax.jit(lambda m, x: m.reward(x))
    reward(model(names=NAMES), jnp.ones(3))
    other = model(names=(*NAMES,), theta=jnp.ones(3))
    with count_compilations() as count:
        reward(other, jnp.ones(3))
    assert not count.traced


def test_what_is_shown_does_not_change():
    assert repr(model(names=NAMES)) == repr(model())


def test_a_row_of_a_frame_is_taken_by_its_names():
    pays, turned = model(names=NAMES), FIRST[["size", "price", "time"]]
    np.testing.assert_array_equal(pays.reward(turned.iloc[0]), pays.reward(FEATURES[0, 0]))
    np.testing.assert_array_equal(
        pays.probability(turned.iloc[0], SECOND.iloc[0]), pays.probability(*FEATURES[:, 0])
    )
    unnamed = pd.Series(FEATURES[0, 0])
    np.testing.assert_array_equal(pays.reward(unnamed), pays.reward(FEATURES[0, 0]))


@pytest.mark.slow
def test_lists_of_frames_and_of_rows_are_taken_by_their_names():
    pays, turned = model(names=NAMES), [side[["size", "price", "time"]] for side in (FIRST, SECOND)]
    np.testing.assert_array_equal(pays.reward(turned), pays.reward(FEATURES))
    np.testing.assert_array_equal(
        pays.probability(turned, turned[::-1]), pays.probability(FEATURES, FEATURES[::-1])
    )
    rows = [row for _, row in turned[0].iterrows()]
    np.testing.assert_array_equal(pays.reward(rows), pays.reward(FEATURES[0]))


def test_frames_whose_rows_stand_in_another_order_are_refused():
    """They count by their place, which would compare other options."""
    pays = model(names=NAMES)
    for call in (pays.probability, pays.outcome_probabilities):
        with pytest.raises(ValueError, match="first and second have the same index in another order"):
            call(FIRST, SECOND[::-1])
        turned = call(FIRST, SECOND[::-1].reset_index(drop=True))
        np.testing.assert_array_equal(turned, call(FEATURES[0], FEATURES[1, ::-1]))


def test_what_a_mask_hides_has_no_reward():
    hides = np.ma.masked_array(FEATURES[0], np.arange(60).reshape(20, 3) == 4)
    for found in (model().reward(hides), model().probability(hides, FEATURES[1])):
        np.testing.assert_array_equal(np.isnan(found), np.arange(20) == 1)


def test_a_row_goes_by_its_names_as_its_frame_does():
    pays, plain = model(names=NAMES), model()
    for hold in (HELD["with a prefix"], HELD["with a suffix"], HELD["beside others"]):
        np.testing.assert_array_equal(pays.reward(hold(FIRST).iloc[0]), pays.reward(FEATURES[0, 0]))
    numbered = pd.DataFrame(FEATURES[0])[[2, 0, 1]]
    np.testing.assert_array_equal(plain.reward(numbered.iloc[0]), plain.reward(FEATURES[0, 0]))
    with pytest.raises(
        ValueError, match="the row has no entry 'time': give an entry for each of the 3 features"
    ):
        pays.reward(FIRST.rename(columns={"time": "cost"}).iloc[0])
