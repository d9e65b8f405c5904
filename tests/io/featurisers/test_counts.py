"""The counts behind features of texts, beside regular expressions."""

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_rlhf_jax.io.featurisers import FORMAT_NAMES, FormatFeatures, HashedNgrams
from robust_rlhf_jax.io.texts import Texts

TEXTS = [
    "", "a", "One two two THREE", "naïve Größe 東京 東京 1984", "x" * 500, "- a\n* b\n 1. c\n12) d\n•\te",
    "# H\n#no\n### K\n",
    "**bold** `code` ?! 3.14 ٣", "snake_case don't e-mail", "\n\n", "a\u2028b c", "😀 ok ok",
]  # fmt: skip
EXPRESSIONS = {
    "log_lines": r"\n", "log_bullets": r"(?m)^\s*(?:[-*•]|\d+[.)])\s", "log_headings": r"(?m)^#{1,6}\s",
    "log_bold": r"\*\*", "log_code": r"`", "log_digits": r"\d", "log_questions": r"\?", "log_exclamations": r"!",
    "log_capitals": r"[A-Z]",
}  # fmt: skip


def check_formats(texts):
    found = np.expm1(FormatFeatures().transform(texts, texts))
    expected = [
        [len(t.split()), *(len(re.findall(EXPRESSIONS[name], t)) for name in FORMAT_NAMES[1:])] for t in texts
    ]
    np.testing.assert_allclose(found, np.reshape(expected, (-1, len(FORMAT_NAMES))), rtol=1e-9, atol=1e-9)


def test_formats_are_those_of_regular_expressions():
    check_formats(TEXTS)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.sampled_from(list("aA1٣ .)-*•#\n\t`?!é"))))
def test_formats_of_any_text(text):
    check_formats([text])


def test_a_repeated_text_has_the_features_of_a_single_one():
    texts = Texts(
        [""] * 4, ["alpha beta", "gamma delta", "alpha beta", "beta"], ["beta beta", "alpha", "gamma", ""]
    )
    made = HashedNgrams(components=2)
    chosen, rejected = made.fit(texts)
    np.testing.assert_array_equal(chosen[0], chosen[2])
    for row, responses in ((chosen, texts.chosen), (rejected, texts.rejected)):
        alone = [made.transform([""], [response])[0] for response in responses]
        np.testing.assert_allclose(row, alone, rtol=1e-6, atol=1e-7)


def test_directions_of_many_pairs_are_made_of_some(monkeypatch):
    from robust_rlhf_jax.io.featurisers import hashed

    monkeypatch.setattr(hashed, "MOST_PAIRS", 50)
    rng = np.random.default_rng(0)
    sides = [
        [" ".join(rng.choice(["alpha", "beta", "gamma", "delta"], 6)) for _ in range(200)] for _ in range(2)
    ]
    made = HashedNgrams(components=4)
    chosen, rejected = made.fit(Texts([""] * 200, *sides))
    assert chosen.shape == rejected.shape == (200, len(made.names))
    np.testing.assert_allclose(made.transform([""] * 200, sides[0]), chosen, rtol=1e-5, atol=1e-6)
