"""Words for directions of hashed texts."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
from robust_rlhf_jax.io.featurisers.topic_words import topic_words
from robust_rlhf_jax.io.texts import Texts


def test_a_direction_is_named_by_what_its_texts_say():
    rng = np.random.default_rng(0)
    noise = [" ".join(rng.choice(["the", "of", "and", "with"], 6)) for _ in range(80)]
    texts = Texts([""] * 40, [f"{t} kettle" for t in noise[:40]], [f"{t} violin" for t in noise[40:]])
    values = np.repeat([1.0, -1.0], 40) + 0.1 * rng.normal(size=80)
    ((more, less),) = topic_words(texts, values[:, None])
    assert any("kettle" in ngram for ngram in more)
    assert any("violin" in ngram for ngram in less)
    order = rng.permutation(40)
    turned = topic_words(texts.take(order), np.concatenate([values[:40][order], values[40:][order]])[:, None])
    assert turned == [(more, less)]
    assert topic_words(texts, -values[:, None]) == [(less, more)]


def test_texts_without_a_word_name_nothing():
    texts = Texts([""] * 2, ["!", "?"], ["1", "…"])
    assert topic_words(texts, np.ones((4, 2))) == [([], [])] * 2
