"""Suspicion scores find what attacks changed, and agree with cleanlab's where both look at labels."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flipped_choices import surest_flipped
from representatives import REPRESENTATIVES

from robust_rlhf_jax import Pairs, changed_pairs, fit_reward, sample_preferences, sample_segments
from robust_rlhf_jax.audit import average_precision, flag, recall, suspicion_scores
from robust_rlhf_jax.audit.suspects import _Examined, _flag
from robust_rlhf_jax.lab.attacks import flip_confident, push_features
from robust_rlhf_jax.lab.worlds import delivery_grid
from robust_rlhf_jax.preferences import load_rail_choices, preferences_from_options, rail_people
from robust_rlhf_jax.rewards import Streaming
from robust_rlhf_jax.rewards.alternative import Alternative
from robust_rlhf_jax.sources import ArraySource

EPSILON = 0.1
CERTAIN = 0.1  # temperature: labels that say something


@pytest.fixture(scope="module")
def attacked(make_mdp):
    """attack → (data, mask of the pairs that it changed)."""
    mdp = make_mdp(n_states=12, dim=4, horizon=3)
    clean = sample_preferences(jax.random.key(0), mdp, 1000, temperature=CERTAIN)

    def damage(attack):
        data = attack(jax.random.key(1), clean, EPSILON, mdp)
        return data, np.asarray(changed_pairs(clean, data))

    return {attack.__name__: damage(attack) for attack in (push_features, flip_confident)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attack", "estimator", "least"),
    [
        ("push_features", "fit_reward", 0.95),
        ("flip_confident", "fit_reward", 0.8),
        ("push_features", "filtered", 0.95),
        ("push_features", "sever", 0.95),
        ("flip_confident", "filtered", 0.8),
        ("flip_confident", "confident_learning", 0.8),
    ],
)
def test_corrupt_pairs_come_first(attack, estimator, least, attacked):
    """Chance is ε = .1; of the estimators alone, which see no table."""
    data, corrupt = attacked[attack]
    scores = suspicion_scores(data, EPSILON, estimator=estimator, ask_table=False)
    assert scores.shape == (data.n_pairs,)
    assert average_precision(scores, corrupt) > least
    if estimator == "fit_reward":
        flagged = np.asarray(flag(data, EPSILON, ask_table=False))
        assert flagged.sum() == corrupt.sum() == 100
        assert scores[flagged].min() >= scores[~flagged].max()
        assert (flagged & corrupt).sum() > 70


@pytest.mark.slow
def test_labels_alone_do_not_show_planted_features(attacked):
    """Likelihood believes what was planted: why the default asks whether the rest contradicts it."""
    data, corrupt = attacked["push_features"]
    blind = suspicion_scores(data, EPSILON, estimator="maximum_likelihood", ask_table=False)
    assert average_precision(blind, corrupt) < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("estimator", REPRESENTATIVES)
def test_the_table_shows_planted_features_to_all(estimator, attacked):
    data, corrupt = attacked["push_features"]
    scores = np.asarray(suspicion_scores(data, EPSILON, estimator=estimator))
    assert scores[corrupt].min() > scores[~corrupt].max()
    np.testing.assert_array_equal(flag(data, EPSILON, estimator=estimator), corrupt)


@pytest.mark.slow
def test_a_table_against_most_pairs_is_not_heeded(attacked):
    data, _ = attacked["push_features"]
    other = dataclasses.replace(data, state_features=data.state_features + 1)
    asked, alone = (
        suspicion_scores(other, EPSILON, estimator="cdpo", ask_table=ask) for ask in (True, False)
    )
    np.testing.assert_array_equal(asked, alone)


@pytest.mark.slow
def test_agrees_with_cleanlab_on_labels(attacked):
    """Self-confidence of the same out-of-fold fits: the same order, turned round."""
    rank = pytest.importorskip("cleanlab.rank")
    data, corrupt = attacked["flip_confident"]
    scores = np.asarray(suspicion_scores(data, EPSILON, estimator="confident_learning"), float)
    chance = np.stack([scores, 1 - scores], axis=1)
    quality = rank.get_label_quality_scores(np.ones(data.n_pairs, int), chance, method="self_confidence")
    np.testing.assert_allclose(quality, 1 - scores, atol=1e-6)
    theirs = average_precision(-quality, corrupt)
    assert average_precision(suspicion_scores(data, EPSILON), corrupt) > theirs - 0.1


@pytest.mark.slow
def test_radius_batch_and_bad_arguments(attacked):
    data, _ = attacked["flip_confident"]
    timid = suspicion_scores(data, EPSILON, estimator="cdpo", radius=1e-3)
    np.testing.assert_allclose(timid, np.log(2), atol=1e-2)
    both = jax.vmap(lambda e: suspicion_scores(data, e, estimator="cdpo"))(np.array([0.05, 0.2], np.float32))
    assert both.shape == (2, data.n_pairs)
    with pytest.raises(
        ValueError, match="estimator='magic' is unknown: it is one of fit_reward, maximum_likelihood"
    ):
        suspicion_scores(data, EPSILON, estimator="magic")
    with pytest.raises(ValueError, match=r"epsilon=0\.5 is outside"):
        flag(data, 0.5)
    with pytest.raises(ValueError, match="estimator='cdpo' needs epsilon"):
        suspicion_scores(data, estimator="cdpo")
    with pytest.raises(ValueError, match="groups has shape"):
        flag(data, groups=np.zeros(3))


@pytest.mark.parametrize("exists", [False, True])
def test_the_other_explanation_names_a_share_of_the_flags(exists):
    """20 pairs, ε = .3: six flags, one of them off the table; of the other five .45 round to two."""
    scores = np.linspace(1.0, 0.0, 20)
    off = np.arange(20) == 19
    theirs = Alternative(jnp.asarray(exists), jnp.asarray(np.arange(20.0)))
    found = _Examined(jnp.where(off, 2.0, scores), jnp.asarray(0.0), jnp.asarray(off), theirs)
    flagged = np.flatnonzero(_flag(found, jnp.asarray(6), jnp.asarray(0.3)))
    np.testing.assert_array_equal(flagged, [0, 1, 2, 17, 18, 19] if exists else [0, 1, 2, 3, 4, 19])


def test_pairs_of_one_score_to_rounding_are_flagged_by_position():
    """Batches and machines round the rows of one comparison differently."""
    scores = np.array([0.2, 0.7, 0.5, 0.5, 0.5, 0.1], np.float32)
    nudged = scores + np.array([0, 0, -1, 0, 1, 0], np.float32) * np.float32(1e-7)
    found = _Examined(jnp.asarray(nudged), jnp.asarray(0.0), jnp.zeros(6, bool), None)
    np.testing.assert_array_equal(np.flatnonzero(_flag(found, jnp.asarray(3), jnp.asarray(0.5))), [1, 2, 3])


@pytest.mark.slow
def test_two_explanations_share_the_flags():
    """The surest third of the labels flipped: what is believed names honest pairs, the other reward corrupt ones."""
    data, corrupt = surest_flipped(0.33)
    scores = np.asarray(suspicion_scores(data, 0.35))
    flagged = np.asarray(flag(data, 0.35))
    count = int(0.35 * data.n_pairs)
    believed = np.argsort(-scores, kind="stable")[:count]
    assert corrupt[believed].mean() < 0.25
    assert flagged.sum() == count
    assert (flagged & corrupt).sum() > 0.3 * corrupt.sum()
    # At least half are still those of highest suspicion.
    np.testing.assert_array_equal(flagged[believed[: count // 2]], True)


@pytest.mark.slow
def test_flags_of_a_batch_of_epsilons():
    data, _ = surest_flipped(0.2)
    both = np.asarray(jax.vmap(lambda e: flag(data, e))(jnp.asarray([0.2, 0.0], jnp.float32)))
    np.testing.assert_array_equal(both, [flag(data, 0.2), np.zeros(data.n_pairs, bool)])


@pytest.mark.slow
def test_without_epsilon_as_many_are_flagged_as_there_is_evidence_for(attacked):
    data, corrupt = attacked["push_features"]
    flagged = np.asarray(flag(data, ask_table=False))
    assert corrupt.sum() <= flagged.sum() <= 1.3 * corrupt.sum()
    assert (flagged & corrupt).sum() > 0.95 * corrupt.sum()
    np.testing.assert_array_equal(np.asarray(flag(data))[corrupt], True)


@pytest.mark.slow
def test_without_epsilon_flags_are_as_many_as_the_message_says():
    rng = np.random.default_rng(0)
    x = np.vstack(
        [np.tile([[-4.0, 4.0]], (40, 1)) + 0.2 * rng.normal(size=(40, 2)), rng.normal(size=(360, 2))]
    )
    labels = np.where(rng.logistic(size=400) < x @ [2.0, -2.0], 1, -1)
    labels[:40] = 1
    pairs = Pairs.of_differences(x, labels)
    found = fit_reward(pairs)
    assert int(np.asarray(flag(pairs)).sum()) == round(float(found.epsilon) * 400)


@pytest.mark.slow
def test_honest_choices_are_not_flagged_without_epsilon():
    assert not np.asarray(flag(load_rail_choices(), groups=rail_people())).any()


@pytest.mark.slow
def test_honest_rare_pairs_are_no_more_suspicious_than_others():
    """A sparse, decisive feature: what filters of x take for an attack."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 3))
    x[:, 2] = rng.choice([-1, 0, 1], 2000, p=[0.04, 0.92, 0.04])
    labels = np.where(rng.uniform(size=2000) < 1 / (1 + np.exp(-x @ [1, -1, 3])), 1.0, -1.0)
    data = preferences_from_options(np.zeros_like(x), x, labels)
    rare = x[:, 2] != 0
    # A twentieth of honest labels on rare pairs do surprise; a filter flags most of the rare pairs.
    assert np.asarray(flag(data, 0.05))[rare].mean() < 0.12
    assert not np.asarray(flag(data)).any()


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["filtered", "maximum_likelihood"])
def test_segments_are_judged_by_the_table_and_by_their_labels(estimator):
    """Those off the table first, all and only they; those on it by a fit of θ shared over steps."""
    mdp = delivery_grid(jax.random.key(0), size=4, horizon=10)
    clean = sample_segments(jax.random.key(1), mdp, 600, 4, temperature=CERTAIN)
    off = push_features(jax.random.key(2), clean, EPSILON, mdp)
    corrupt = np.asarray(changed_pairs(clean, off))
    np.testing.assert_array_equal(flag(off, EPSILON, estimator=estimator), corrupt)
    lies = flip_confident(jax.random.key(2), clean, 0.02, mdp)
    told = suspicion_scores(lies, 0.02, estimator=estimator)
    np.testing.assert_array_equal(told, suspicion_scores(lies, 0.02, estimator=estimator, ask_table=False))
    assert average_precision(told, changed_pairs(clean, lies)) > 0.8


def planted(n=3_000):
    """Differences of which a tenth are planted far out against what the others prefer, and which those are."""
    rng = np.random.default_rng(5)
    theta = rng.normal(size=8)
    x = rng.normal(size=(n, 8))
    z = x * np.where(rng.random(n) < 1 / (1 + np.exp(-x @ theta)), 1, -1)[:, None]
    z[: n // 10] = -6 * theta + 0.2 * rng.normal(size=(n // 10, 8))
    return z.astype(np.float32), np.arange(n) < n // 10


BY_PASSES = Streaming(memory=1_800_000, sample=1_500)


# Told ε, the other explanation names .15 of the flags, and it may be another one by passes.
@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "apart"), [(None, 0.0), (0.1, 2 * 0.15 * 0.1)])
def test_a_source_is_flagged_as_its_pairs_are(epsilon, apart):
    z, lies = planted()
    expected = flag(Pairs.of_differences(z, np.ones(len(z))), epsilon)
    np.testing.assert_array_equal(flag(ArraySource(z), epsilon), expected)
    found = flag(ArraySource(z), epsilon, streaming=BY_PASSES)
    assert np.mean(np.asarray(found) != np.asarray(expected)) <= apart + 0.001
    assert recall(found, lies) > (0.95 if epsilon is None else 0.8)


@pytest.mark.slow
def test_scores_by_passes_order_pairs_as_those_of_memory_do():
    z, _ = planted()
    found = np.asarray(suspicion_scores(ArraySource(z), streaming=BY_PASSES))
    np.testing.assert_allclose(found, suspicion_scores(ArraySource(z)), atol=0.02)


@pytest.mark.slow
def test_other_estimators_need_all_pairs_in_memory():
    z, _ = planted()
    expected = suspicion_scores(Pairs.of_differences(z, np.ones(len(z))), 0.1, estimator="trimmed")
    np.testing.assert_array_equal(suspicion_scores(ArraySource(z), 0.1, estimator="trimmed"), expected)
    with pytest.raises(ValueError, match="estimator='trimmed' fits all pairs at once, which for 3,000 pairs"):
        suspicion_scores(ArraySource(z), 0.1, estimator="trimmed", streaming=BY_PASSES)


@pytest.mark.parametrize("radius", [-1.0, 0.0, np.nan, "wide"])
@pytest.mark.parametrize("function", [flag, suspicion_scores])
def test_a_radius_is_positive(function, radius):
    with pytest.raises(ValueError, match=f"radius={radius} must be positive and finite"):
        function(load_rail_choices(), 0.1, estimator="trimmed", radius=radius)
