"""What a fitted reward says in words."""

import jax
import jax.numpy as jnp
import pytest

from robust_rlhf_jax._iterate import Status

from .test_model import EVIDENCE, contended, model


def test_hints_in_python_can_be_left_out():
    contradicted = model(interval=jnp.asarray([0.05, 0.2], jnp.float32))
    assert contradicted.described(hints=False).endswith("and corrupt ones may decide.")
    too_few = model(**EVIDENCE | {"interval": jnp.asarray([0.105, 0.105], jnp.float32)})
    assert too_few.described(hints=False).endswith("more look corrupt than ε allows.")
    two = model(**EVIDENCE, explanations=contended())
    assert two.described(hints=False).endswith("it needs 11.0 % of them to be corrupt.")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "No evidence of corruption: maximum likelihood on all 2,000 pairs."),
        (
            {"label_noise": jnp.asarray(1 / 16, jnp.float32)},
            "No evidence of corruption: all 2,000 pairs count, and about 3.1 % of the labels look like slips.",
        ),
        (
            EVIDENCE,
            "210 of 2,000 pairs (10.5 %) are contradicted by the rest and left out; "
            "between 10.0 and 20.0 % may be corrupt.",
        ),
        (
            EVIDENCE | {"interval": jnp.asarray([0.105, 0.105], jnp.float32)},
            "210 of 2,000 pairs (10.5 %) are contradicted by the rest and left out; more look corrupt than ε allows. "
            "Give a larger ε.",
        ),
        (
            EVIDENCE | {"epsilon": jnp.asarray(1 / 2000, jnp.float32)},
            "1 of 2,000 pairs (0.1 %) is contradicted by the rest and left out; "
            "between 10.0 and 20.0 % may be corrupt.",
        ),
        (
            {"interval": jnp.asarray([0.05, 0.2], jnp.float32)},
            "At least 5.0 % of the pairs contradict every reward, more than ε allows: all 2,000 pairs count, "
            "and corrupt ones may decide. Give a larger ε.",
        ),
        (
            EVIDENCE | {"doubted": jnp.asarray([[0.1, 0.99, 0.0], [1.0, 0.0, 0.0]])},
            "210 of 2,000 pairs (10.5 %) are contradicted by the rest and left out; "
            "between 10.0 and 20.0 % may be corrupt. "
            "Only pairs that were left out tell what feature 0, 1 is worth: doubt θ there.",
        ),
        ({"doubted": jnp.zeros((3, 3))}, "No evidence of corruption: maximum likelihood on all 2,000 pairs."),
        (
            {"status": Status.SEPARABLE.array()},
            "No evidence of corruption: maximum likelihood on all 2,000 pairs. "
            "The labels ask for a longer θ than the prior allows, as they do where a reward explains them all: the "
            "length of θ comes from the prior.",
        ),
        (
            EVIDENCE | {"explanations": contended()},
            "210 of 2,000 pairs (10.5 %) are contradicted by the rest and left out; "
            "between 10.0 and 20.0 % may be corrupt. Another reward explains the pairs, too (25 % likely): it needs "
            "11.0 % of them to be corrupt. Ask raters again about the pairs that `deciding()` lists.",
        ),
        (
            {
                "weights": jnp.ones(60),
                "suspicion": jnp.zeros(60),
                "undisputed": jnp.ones(60),
                "n_decided": jnp.asarray(60),
            },
            "No evidence of corruption: maximum likelihood on all 60 pairs. 60 pairs are too few to doubt any of them.",
        ),
        (
            {
                "weights": jnp.ones(1),
                "suspicion": jnp.zeros(1),
                "undisputed": jnp.ones(1),
                "n_decided": jnp.asarray(1),
            },
            "No evidence of corruption: maximum likelihood on one pair.",
        ),
        (
            {"interval": jnp.zeros(2)},
            "ε = 0 allows no corruption: maximum likelihood on all 2,000 pairs, none of them doubted.",
        ),
        (
            {"interval": jnp.zeros(2), "status": Status.SEPARABLE.array()},
            "No evidence of corruption: maximum likelihood on all 2,000 pairs. "
            "The labels ask for a longer θ than the prior allows, as they do where a reward explains them all: the "
            "length of θ comes from the prior.",
        ),
        (
            {"status": Status.MAX_STEPS.array()},
            "No evidence of corruption: maximum likelihood on all 2,000 pairs. The fit stopped at its step limit.",
        ),
    ],
)
def test_the_message(changes, message):
    assert model(**changes).message == message


def test_the_message_of_what_is_not_finite():
    assert model(status=Status.NONFINITE.array()).message.endswith("The fit met a number that is not finite.")


def test_features_are_called_by_their_names():
    told = model(**EVIDENCE, doubted=jnp.asarray([[0.1, 0.99, 0.0], [1.0, 0.0, 0.0]]))
    assert "what feature price, time is worth" in told.described(["price", "time", "comfort"])


def test_no_message_under_jit():
    with pytest.raises(ValueError, match="outside of jit"):
        jax.jit(lambda m: m.reward(jnp.ones(3)) + len(m.message))(model())


def test_no_pair_that_was_left_out_is_spoken_of_where_none_was():
    doubted = jnp.asarray([[0.0, 1.0, 0.0]], jnp.float32)
    assert "left out" not in model(doubted=doubted).message
    assert "what feature 1 is worth" in model(doubted=doubted, epsilon=jnp.float32(0.1)).message
