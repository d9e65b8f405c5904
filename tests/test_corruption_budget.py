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
