"""Without their packages the parts for TRL say what to install."""

import sys

import pytest

from robust_rlhf_jax.heads import resampling_trainer, trl_callback, weighted_trainer

MADE = {"transformers": trl_callback, "torch": weighted_trainer, "trl": lambda: resampling_trainer(None)}


@pytest.mark.parametrize("package", MADE)
def test_a_missing_package_names_the_extras(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"pip install 'robust-rlhf-jax\[embed,trl\]'"):
        MADE[package]()
