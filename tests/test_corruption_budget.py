from decimal import Decimal
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.corruption_budget import corruption_count


@pytest.mark.parametrize("n_pairs", [1, 7, 100, 999, 20_000])
def test_count_of_every_fraction(n_pairs):
    wanted = np.unique(np.linspace(0, n_pairs // 2 - (n_pairs % 2 == 0), 500).astype(int))
    counts = jax.vmap(lambda e: corruption_count(e, n_pairs))(jnp.asarray(wanted / n_pairs))
    np.testing.assert_array_equal(counts, wanted)


@pytest.mark.parametrize(("epsilon", "n_pairs"), [(0.4, 3_000_000), (0.25, 10_000_000), (0.1, 1_000_000)])
def test_count_of_large_data_never_exceeds_the_budget(epsilon, n_pairs):
    assert corruption_count(epsilon, n_pairs) <= round(epsilon * n_pairs)


@pytest.mark.parametrize("n_pairs", [100, 500, 29_000])
@pytest.mark.parametrize("dtype", [np.float16, jnp.float16, jnp.bfloat16, np.float32, jnp.float32])
def test_the_decimal_that_was_meant_counts_in_any_precision(dtype, n_pairs):
    """.1 in float16 is .09998, which is 49.99 of 500 pairs."""
    for percent in range(50):
        assert corruption_count(dtype(percent / 100), n_pairs) == percent * n_pairs // 100


@pytest.mark.parametrize("epsilon", [Fraction(29, 100), Decimal("0.29"), np.array(Fraction(29, 100))])
def test_exact_fractions_count(epsilon):
    assert corruption_count(epsilon, 100) == 29


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.float32])
def test_a_rounded_epsilon_counts_as_meant_where_it_is_traced_and_in_float64(dtype, x64):
    count = jax.jit(lambda epsilon: corruption_count(epsilon, 100))
    assert [int(count(jnp.asarray(percent / 100, dtype))) for percent in range(50)] == list(range(50))
