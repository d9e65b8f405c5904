import pytest

from robust_rlhf_jax.preferences.bundled import BUNDLED


@pytest.mark.parametrize("name", BUNDLED)
def test_people_and_features_fit_the_pairs(name):
    own = BUNDLED[name]
    data = own.load()
    assert data.differences().shape == (data.n_pairs, len(own.features))
    assert own.people().shape == (data.n_pairs,)
