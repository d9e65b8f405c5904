import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.checks import check_epsilons
from robust_rlhf_jax.preferences import PreferenceData, check_preferences


def make_data(**changes):
    """Valid NumPy arrays that may be written to: N = 6, S = 4, A = 3, d = 2, H = 2, p = 5."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(4, 3, 2)).astype(np.float32)
    reward_table = rng.normal(size=(4, 3, 5)).astype(np.float32)
    states, actions = rng.integers(0, 4, (6, 2, 3)), rng.integers(0, 3, (6, 2, 2))
    rows = states[..., :-1], actions
    labels = np.array([1, -1, 1, 1, -1, -1], np.float32)
    data = PreferenceData(table, states, actions, table[rows], labels, reward_table, reward_table[rows])
    return dataclasses.replace(data, **changes)


def test_accepts_valid_data_of_both_backends():
    data = make_data()
    assert check_preferences(data) is None
    check_preferences(jax.tree.map(jnp.asarray, data))
    check_preferences(make_data(reward_table=None, reward_features=None))
    check_preferences(make_data(stationary=True))


@pytest.mark.parametrize("field", ["state_features", "features", "reward_table", "reward_features"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_names_the_entry_that_is_not_finite(field, value):
    data = make_data()
    array = getattr(data, field)
    where = tuple(size - 1 for size in array.shape)
    array[where] = value
    place = ", ".join(map(str, where))
    with pytest.raises(ValueError, match=rf"{field}\[{place}\] is {value}"):
        check_preferences(data)


@pytest.mark.parametrize("value", [0.0, 2.0, np.nan, 0.5])
def test_names_the_first_bad_label(value):
    data = make_data()
    data.labels[4:] = value
    with pytest.raises(ValueError, match=rf"labels\[4\] is {value}: every label must be \+1 or -1") as error:
        check_preferences(data)
    assert "map 0 to -1" not in str(error.value)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
def test_hints_at_zero_one_labels(dtype):
    with pytest.raises(ValueError, match="map 0 to -1"):
        check_preferences(make_data(labels=np.array([0, 1, 1, 0, 1, 0], dtype)))


@pytest.mark.parametrize(
    ("field", "index", "value", "size"),
    [("states", (2, 1, 2), 4, 4), ("states", (0, 0, 0), -1, 4), ("actions", (5, 0, 1), 3, 3)],
)
def test_names_the_index_outside_the_table(field, index, value, size):
    data = make_data()
    getattr(data, field)[index] = value
    place = ", ".join(map(str, index))
    with pytest.raises(ValueError, match=rf"{field}\[{place}\] is {value}, .* has {size} {field}"):
        check_preferences(data)


@pytest.mark.parametrize(
    ("field", "shape", "needed"),
    [
        ("labels", (5,), r"here \[6\]"),
        ("states", (6, 2, 2), r"here \[6, 2, 3\]"),
        ("states", (6, 2), r"\[N, 2, H\+1\]"),
        ("features", (6, 2, 2, 3), r"here \[6, 2, 2, 2\]"),
        ("reward_features", (6, 2, 2, 4), r"here \[6, 2, 2, 5\]"),
        ("reward_table", (4, 2, 5), r"here \[4, 3, p\]"),
        ("actions", (6, 3, 2), r"here \[N, 2, H\]"),
    ],
)
def test_names_the_shape_that_does_not_fit(field, shape, needed):
    array = np.zeros(shape, getattr(make_data(), field).dtype)
    with pytest.raises(ValueError, match=rf"^{field} has shape .*{needed}"):
        check_preferences(make_data(**{field: array}))


def test_refuses_one_reward_array_without_the_other():
    with pytest.raises(ValueError, match="come together"):
        check_preferences(make_data(reward_features=None))


@pytest.mark.parametrize(
    ("field", "dtype"),
    [("features", np.float16), ("features", np.int32), ("labels", np.int32), ("states", np.float32)],
)
def test_names_the_dtype_that_does_not_fit(field, dtype):
    array = getattr(make_data(), field).astype(dtype)
    with pytest.raises(ValueError, match=rf"{field} has dtype {np.dtype(dtype)}: convert it"):
        check_preferences(make_data(**{field: array}))


def test_refuses_a_list():
    with pytest.raises(ValueError, match="labels is a list"):
        check_preferences(make_data(labels=[1.0, -1.0, 1.0, 1.0, -1.0, -1.0]))


def test_refuses_no_pairs():
    with pytest.raises(ValueError, match="no pairs"):
        check_preferences(make_data().take(np.arange(0)))


def test_refuses_an_empty_table():
    with pytest.raises(ValueError, match="S = 0"):
        check_preferences(make_data(state_features=np.zeros((0, 3, 2), np.float32)))


@pytest.mark.parametrize("stationary", [False, True])
def test_refuses_pairs_without_any_difference(stationary):
    data = make_data(stationary=stationary)
    data.reward_features[:, 1] = data.reward_features[:, 0]
    with pytest.raises(ValueError, match="no direction"):
        check_preferences(data)
    data.reward_features[5, 1, 0, 3] += 1e-3
    check_preferences(data)


def test_stationary_differences_that_cancel_up_to_rounding_give_no_direction():
    data = make_data(stationary=True)
    data.reward_features[:, 1] = data.reward_features[:, 0, ::-1]
    with pytest.raises(ValueError, match="no direction"):
        check_preferences(data)


def test_a_difference_beyond_the_first_block_is_found():
    data = jax.tree.map(np.array, make_data().take(np.zeros(5000, int)))
    data.reward_features[:, 1] = data.reward_features[:, 0]
    data.reward_features[-1, 1] += 1
    check_preferences(data)


def test_traced_values_are_skipped_but_shapes_are_not():
    data = jax.tree.map(jnp.asarray, make_data(labels=np.full(6, 7, np.float32)))

    @jax.jit
    def checked(data):
        check_preferences(data)
        return data.labels.sum()

    assert checked(data) == 42
    assert jax.vmap(lambda labels: checked(dataclasses.replace(data, labels=labels)))(
        jnp.ones((3, 6))
    ).shape == (3,)
    with pytest.raises(ValueError, match="labels has shape"):
        checked(dataclasses.replace(data, labels=jnp.ones(5)))


def test_concrete_leaves_beside_traced_ones_are_checked():
    data = make_data()
    data.features[0, 0, 0, 0] = np.nan

    def checked(labels):
        check_preferences(dataclasses.replace(data, labels=labels))
        return labels

    with pytest.raises(ValueError, match="features"):
        jax.jit(checked)(data.labels)


@pytest.mark.parametrize(
    "epsilon", [0, 0.0, 0.499, np.float32(0.1), np.array([0.0, 0.2]), [0.1, 0.3], jnp.zeros(2)]
)
def test_accepts_epsilon(epsilon):
    assert check_epsilons(epsilon) is None


@pytest.mark.parametrize("epsilon", [0.5, -0.1, 1, np.nan, np.inf, np.array([0.1, 0.7]), jnp.array(-1e-3)])
def test_refuses_epsilon(epsilon):
    with pytest.raises(ValueError, match=r"outside \[0, 0.5\)"):
        check_epsilons(epsilon)


@pytest.mark.parametrize("epsilon", ["a lot", None, {}])
def test_refuses_what_is_no_number(epsilon):
    with pytest.raises(ValueError, match="epsilon="):
        check_epsilons(epsilon)


def test_traced_epsilon_is_skipped():
    def checked(epsilon):
        check_epsilons(epsilon)
        return epsilon

    assert jax.jit(checked)(0.9) == jnp.float32(0.9)


def test_names_of_another_number_are_refused():
    check_preferences(make_data(names=tuple("abcde")))
    with pytest.raises(
        ValueError, match=r"^names has length 2: give one for each of the 5 reward features, or"
    ):
        check_preferences(make_data(names=("price", "time")))
