"""Featurisers are chosen by name or by the folder of a model."""

import pytest

from robust_rlhf_jax.io.featurisers.choose import make_featuriser


def test_an_unknown_name_is_told_what_there_is():
    said = r"^featuriser 'bert' is neither hashed, format nor a folder that exists: give one of .*\.$"
    with pytest.raises(ValueError, match=said):
        make_featuriser("bert")
