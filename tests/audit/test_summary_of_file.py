"""What the summary of a file says of corruption, from shares and intervals of every kind."""

from types import SimpleNamespace

import pytest

from robust_rlhf_jax.audit.summary import _corruption


@pytest.mark.parametrize(
    ("epsilon", "interval", "sentence"),
    [
        (
            0.0,
            (0.0, 0.073),
            "No evidence of corrupt labels; up to 7.3% of the pairs could be corrupt without a trace.",
        ),
        (
            0.0,
            (0.0, 0.5),
            "No evidence of corrupt labels, but too few certain predictions to exclude any share of random flips.",
        ),
        (0.1, (0.04, 0.5), "About 10.0% of the pairs are corrupt; between 4.0% and 50.0% may be."),
    ],
)
def test_what_it_says_of_corruption(epsilon, interval, sentence):
    assert _corruption(SimpleNamespace(epsilon=epsilon, interval=interval)) == sentence
