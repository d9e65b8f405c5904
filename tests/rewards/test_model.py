"""A fitted reward: what it pays, and how sure it is."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from slow_parameters import slow

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.lab.pair_attacks import PAIR_ATTACKS, AttackedPairs
from robust_rlhf_jax.rewards import Explanations, RewardModel
from robust_rlhf_jax.rewards.contamination import NoiseByMargin


def model(**changes) -> RewardModel:
    """Of 2,000 pairs and three features; nothing amiss."""
    rng = np.random.default_rng(0)
    fields = {
        "theta": jnp.asarray([1.0, -0.5, 0.25], jnp.float32),
        "weights": jnp.ones(2000, jnp.float32),
        "suspicion": jnp.asarray(rng.uniform(size=2000), jnp.float32),
        "epsilon": jnp.zeros((), jnp.float32),
        "interval": jnp.asarray([0.0, 0.03], jnp.float32),
        "rank": jnp.asarray(3, jnp.int32),
        "doubted": jnp.zeros((0, 3), jnp.float32),
        "undisputed": jnp.ones(2000, jnp.float32),
        "label_noise": jnp.zeros((), jnp.float32),
        "tie": jnp.zeros((), jnp.float32),
        "n_decided": jnp.asarray(2000),
        "status": Status.CONVERGED.array(),
    }
    fields |= changes
    return RewardModel(**({"explanations": alone(fields["theta"])} | fields))


SILENT = NoiseByMargin(jnp.tile(jnp.arange(3.0), (2, 1)), jnp.zeros((2, 3)))


def alone(theta) -> Explanations:
    """One reward that is believed, and another that is not."""
    rows = jnp.stack([theta, -theta])
    weights = jnp.ones((2, 2000), jnp.float32).at[1].set(0.0)
    return Explanations(
        rows,
        jnp.asarray([1.0, 0.0]),
        weights,
        jnp.asarray([0.0, 0.9]),
        jnp.asarray([0.0, -50.0]),
        jnp.asarray([0.0, 1.0]),
        jnp.asarray([1.0, 0.0]),
        jnp.asarray(0),
        SILENT,
    )


def contended(theta=(1.0, -0.5, 0.25)) -> Explanations:
    """Two rewards that are believed three to one; the second needs pairs 0 to 219 to be corrupt."""
    theta = jnp.asarray(theta, jnp.float32)
    weights = jnp.ones((2, 2000), jnp.float32).at[1, :220].set(0.0)
    return Explanations(
        jnp.stack([theta, -theta]),
        jnp.asarray([0.75, 0.25]),
        weights,
        jnp.asarray([0.1, 0.11]),
        jnp.asarray([30.0, 29.0]),
        jnp.asarray([0.0, 1.0]),
        jnp.asarray([0.75, 0.25]),
        jnp.asarray(0),
        SILENT,
    )


EVIDENCE = {
    "weights": jnp.asarray(np.arange(2000) >= 210, jnp.float32),
    "epsilon": jnp.asarray(0.105, jnp.float32),
    "interval": jnp.asarray([0.1, 0.2], jnp.float32),
}


@pytest.mark.parametrize("shape", [(), slow((4,)), (2, 5)])
def test_rewards_and_probabilities(shape):
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(2, *shape, 3)).astype(np.float32)
    pays = model()
    theta = np.array([1.0, -0.5, 0.25])
    np.testing.assert_allclose(pays.reward(first), first @ theta, rtol=1e-5, atol=1e-6)
    chance = pays.probability(first, second)
    assert chance.shape == shape
    np.testing.assert_allclose(chance, 1 / (1 + np.exp(-(first - second) @ theta)), rtol=1e-5)
    np.testing.assert_allclose(chance + pays.probability(second, first), 1.0, rtol=1e-6)
    np.testing.assert_allclose(pays.probability(first, first), 0.5)
    assert pays.reward(first.tolist()).dtype == jnp.float32


def test_another_number_of_features_is_named():
    for call in (
        model().reward,
        lambda x: model().probability(x, x),
        lambda x: model().outcome_probabilities(x, x),
    ):
        with pytest.raises(ValueError, match=r"shape \(5, 2\): give \[\.\.\., 3\]"):
            call(np.ones((5, 2)))


@pytest.mark.parametrize("given", [["a", "b", "c"], np.array([[1.0, None, "x"]], object)])
def test_features_that_are_no_numbers_are_named(given):
    with pytest.raises(
        ValueError, match=r"^the features are of the type .*: give an array of numbers, \[\.\.\., 3\]"
    ):
        model().reward(given)
    for first, second in ((given, np.ones(3)), (np.ones(3), given)):
        with pytest.raises(ValueError, match=r"^the features are of the type (<U1|object): give an array"):
            model().probability(first, second)


TEXTS = np.ones((2, 3)).astype(str)


@pytest.mark.parametrize(
    "given", [TEXTS, TEXTS.astype(bytes), TEXTS.astype(object), TEXTS.tolist(), pd.DataFrame(TEXTS)]
)
def test_numbers_in_texts_are_no_features(given):
    """Nor are they those of `Pairs`."""
    with pytest.raises(ValueError, match=r"^the features are of the type .*: give an array of numbers"):
        model().reward(given)
    with pytest.raises(ValueError, match=r"^the features are of the type .*: give an array of numbers"):
        model().probability(np.ones((2, 3)), given)


@pytest.mark.parametrize("given", [Pairs(np.ones((2, 3)), np.zeros((2, 3))), None, "pairs.jsonl"])
def test_what_is_no_array_has_no_reward(given):
    with pytest.raises(
        ValueError, match=r"^the features are of the type (Pairs|NoneType|str): give an array"
    ):
        model().reward(given)


def test_the_imaginary_part_of_features_is_not_dropped():
    given = np.ones((2, 3)) * 1j
    for call in (model().reward, lambda x: model().probability(x, 1.0 - x)):
        for x in (given, jnp.asarray(given)):
            with pytest.raises(
                ValueError, match=r"^the features are of the type complex(64|128): give an array"
            ):
                call(x)


def test_sparse_features_are_refused_with_what_to_give():
    given = csr_array(np.ones((2, 3)))
    for call in (model().reward, lambda x: model().probability(np.ones((2, 3)), x)):
        with pytest.raises(ValueError, match=r"^the features are a sparse matrix: give its toarray\(\)\.$"):
            call(given)


def test_probabilities_are_as_uncertain_as_the_explanations():
    """(1 − ε)Σ p σ(θᵀx) + ε/2 in NumPy; ½ where two options are alike; never surer than 1 − ε/2."""
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(2, 50, 3)) * 10
    noise = 0.1
    pays = model(explanations=contended(), label_noise=jnp.asarray(noise, jnp.float32))
    margins = (first - second) @ np.array([1.0, -0.5, 0.25])
    mixed = 0.75 / (1 + np.exp(-margins)) + 0.25 / (1 + np.exp(margins))
    chance = np.asarray(pays.probability(first, second))
    np.testing.assert_allclose(chance, (1 - noise) * mixed + noise / 2, rtol=1e-4)
    np.testing.assert_allclose(chance + pays.probability(second, first), 1.0, rtol=1e-5)
    assert np.maximum(chance, 1 - chance).max() <= 1 - noise / 2 + 1e-6


def test_probabilities_know_where_an_explanation_calls_labels_corrupt():
    """ν_e joins the label noise and the rate between the middles of the bins of |margin|, in NumPy."""
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(2, 50, 3)) * 2
    noise = NoiseByMargin(
        jnp.asarray([[0.5, 1.0, 3.0], [0.2, 1.0, 2.0]]), jnp.asarray([[0.0, 0.1, 0.8], [0.0, 0.4, 1.0]])
    )
    explanations = contended()._replace(noise=noise)
    pays = model(explanations=explanations, label_noise=jnp.asarray(0.05, jnp.float32))
    margins = (first - second) @ np.array([[1.0, -0.5, 0.25], [-1.0, 0.5, -0.25]]).T
    expected = 0.0
    for e, p in enumerate([0.75, 0.25]):
        local = np.interp(np.abs(margins[:, e]), noise.margins[e], noise.rates[e])
        nu = np.minimum(1 - 0.95 * (1 - local), 0.9)
        expected = expected + p * ((1 - nu) / (1 + np.exp(-margins[:, e])) + nu / 2)
    np.testing.assert_allclose(pays.probability(first, second), expected, rtol=1e-4)


def test_what_contends_and_which_pairs_decide():
    assert model().contending() is None
    assert len(model().deciding()) == 0
    pays = model(explanations=contended())
    assert pays.contending() == 1
    np.testing.assert_array_equal(pays.deciding(5), np.arange(5))
    assert len(pays.deciding(1000)) == 220
    alike = contended()._replace(differs=jnp.zeros(2), weights=jnp.ones((2, 2000)))
    assert model(explanations=alike).contending() is None


def excluded(**changes) -> Explanations:
    """One reward that is believed, and one 69 nats ahead of it that needs 16 % of the pairs."""
    given = {"needed": [0.1, 0.16], "evidence": [80.0, 149.0]} | changes
    return alone(jnp.asarray([1.0, -0.5, 0.25]))._replace(**{k: jnp.asarray(v) for k, v in given.items()})


@pytest.mark.parametrize(
    ("changes", "row"),
    [
        ({}, 1),
        ({"evidence": [80.0, 119.0]}, None),
        ({"evidence": [-50.0, 39.0]}, None),
        ({"evidence": [0.0, 41.0]}, 1),
        ({"needed": [0.1, 0.3]}, None),
        ({"differs": [0.0, 0.04]}, None),
        ({"belief": [0.9, 0.1]}, None),
        ({"evidence": [80.0, np.nan]}, None),
    ],
    ids=[
        "ahead",
        "people who are not linear",
        "less than nothing",
        "more",
        "beyond any ε",
        "the same",
        "believed",
        "no number",
    ],
)
def test_a_reward_that_epsilon_excludes(changes, row):
    assert excluded(**changes).beyond() == row


def test_a_reward_that_epsilon_excludes_is_mentioned():
    pays = model(**EVIDENCE, explanations=excluded())
    assert pays.message.endswith(
        "Another reward explains the pairs better, by 69 nats, but needs 16.0 % of them to be corrupt, more than ε "
        "allows. Compare with a larger ε."
    )
    assert pays.described(hints=False).endswith("more than ε allows.")
    too_much = model(interval=jnp.asarray([0.05, 0.2], jnp.float32), explanations=excluded())
    assert "Another reward" not in too_much.message
    assert "Another reward" not in model().message


@pytest.mark.slow
def test_honest_people_with_uneven_topics_and_a_true_epsilon():
    """Honest pairs contradict the true reward, too: told the attack's share, the fit believes another, and says so."""
    rng = np.random.default_rng([0, 2000, sum(map(ord, "uneven_topics"))])
    topic, taste = rng.integers(0, 5, 6000), rng.standard_normal((5, 4))
    x = rng.standard_normal((6000, 4)) * np.exp(0.8 * rng.standard_normal(5))[topic][:, None]
    utility = np.einsum("nk,nk->n", x, 0.6 * taste[topic] + taste[0])
    x = (x * np.where(rng.random(6000) < 1 / (1 + np.exp(-utility)), 1, -1)[:, None])[:2000]
    plain = np.asarray(fit_reward(Pairs.of_differences(x, np.ones(2000)), 0.0).theta)
    clean = AttackedPairs(x, np.ones(2000), np.concatenate([x, -x]))
    found = PAIR_ATTACKS["confident"](np.random.default_rng(0), clean, 0.1, plain)
    pairs = Pairs.of_differences(found.x, found.labels)
    told, nothing = fit_reward(pairs, 0.1), fit_reward(pairs)
    assert nothing.theta @ plain > 0 > told.theta @ plain
    assert "more than ε allows" in told.message
    assert "more than ε allows" not in nothing.message


def test_models_vmap():
    many = jax.vmap(lambda t: model(theta=t))(jnp.eye(3, dtype=jnp.float32))
    features = jnp.arange(3.0)
    np.testing.assert_array_equal(jax.vmap(lambda m: m.reward(features))(many), [0.0, 1.0, 2.0])


def test_a_probability_subtracts_in_the_features_own_precision():
    """Seconds since 1970: float32 knows them to two minutes."""
    times = 1.7e9 + np.arange(6.0)[:, None] * np.array([1.0, 7.0, 30.0])
    first, second = times[1:], times[:-1]
    fitted = model(theta=jnp.asarray([0.1, -0.05, 0.02], jnp.float32))
    for chance in (fitted.probability, fitted.outcome_probabilities):
        np.testing.assert_array_equal(chance(first, second), chance(first - second, 0.0 * second))
    with pytest.raises(ValueError, match=r"shape \(5, 2\): give \[..., 3\]"):
        fitted.probability(first[:, :2], second)


def test_what_is_shown_of_a_model_is_what_it_found():
    shown = repr(model())
    assert shown.splitlines()[0] == "RewardModel(theta=[ 1.   -0.5   0.25])"
    assert shown.endswith(model().message)
    several = jax.tree.map(lambda *leaves: jnp.stack(leaves), model(), model())
    assert "theta=f32[2,3]" in repr(several)


def test_a_batch_of_models_is_asked_one_by_one():
    """As many fits as features: without a word, the sum over fits would be taken for the one over features."""
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), model())
    ones = np.ones((2, 3))
    for ask in (
        batch.reward,
        lambda x: batch.probability(x, 0 * x),
        lambda x: batch.outcome_probabilities(x, x),
    ):
        with pytest.raises(
            ValueError, match=r"the model holds fits of the shape \(3,\): take one by jax.tree.map"
        ):
            ask(ones)
    with pytest.raises(ValueError, match="message is of one fit: take one by"):
        _ = batch.message
    assert jax.vmap(lambda one: one.reward(ones))(batch).shape == (3, 2)


@pytest.mark.parametrize("hold", [np.asarray, jnp.asarray])
def test_other_numbers_of_options_are_refused(hold):
    pays, first = model(), hold(np.ones((4, 3)))
    for call in (pays.probability, pays.outcome_probabilities):
        with pytest.raises(ValueError, match=r"first has shape \(4, 3\) and second \(2, 3\): give as many"):
            call(first, first[:2])
        assert len(call(first, first[0])) == len(call(first[:1], first)) == 4
