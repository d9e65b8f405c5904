"""Floats sorted by their bits beside XLA's and NumPy's sorts of floats."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rivals import assert_same

from robust_rlhf_jax.kernels import sorting

ascending = jax.jit(sorting.ascending)
by_comparison = jax.jit(jnp.sort)
RIVALS = {
    "`jnp.sort` of the floats": lambda x: by_comparison(x),
    "`np.sort`, 1 thread": lambda x: np.sort(np.asarray(x)),
}


@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("n", [4_000, 100_000])
def test_ascending(measure, beside, rows, n, rival):
    x = jax.block_until_ready(jax.random.normal(jax.random.key(0), (rows(n),)))
    found = measure(ascending, x, what="`ascending`", size=f"n = {len(x):,}", work=(len(x), "rows"))
    assert_same((found,), (RIVALS[rival](x),))
    beside(lambda: ascending(x), lambda: RIVALS[rival](x), name=rival)
