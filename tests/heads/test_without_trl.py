"""What the parts for TRL say where packages are missing, or where a data set cannot be weighed."""

import sys
from types import SimpleNamespace

import pytest

from robust_rlhf_jax.heads import resampling_trainer, trl_callback, weighted_trainer
from robust_rlhf_jax.heads.training_callback import check_length, check_tokens

MADE = {"transformers": trl_callback, "torch": weighted_trainer, "trl": lambda: resampling_trainer(None)}


@pytest.mark.parametrize("package", MADE)
def test_a_missing_package_names_the_extras(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"pip install 'robust-rlhf-jax\[embed,trl\]'"):
        MADE[package]()


def test_data_sets_that_cannot_be_weighed_are_refused():
    with pytest.raises(ValueError, match="is streamed"):
        check_length(iter([1, 2]))
    with pytest.raises(ValueError, match="input_ids, and neither chosen_ids nor rejected_ids"):
        check_tokens(SimpleNamespace(column_names=["prompt", "input_ids"]))
