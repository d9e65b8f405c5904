import numpy as np
import pytest

from robust_rlhf_jax.io import check_pairs
from robust_rlhf_jax.preferences import load_rail_choices
from robust_rlhf_jax.preferences.bundled import BUNDLED


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_pairs_know_who_chose(name):
    pairs = BUNDLED[name]()
    check_pairs(pairs)
    assert pairs.raters is not None


def test_rail_pairs_are_the_choices_with_a_table():
    pairs, data = BUNDLED["rail"](), load_rail_choices()
    np.testing.assert_array_equal(pairs.labels, data.labels)
    np.testing.assert_allclose(pairs.differences(), data.differences(), atol=1e-6)
