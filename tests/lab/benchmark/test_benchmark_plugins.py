"""What a file of somebody's own may hold, and what is said where it fails."""

import sys

import numpy as np
import pytest

from robust_rlhf_jax.lab.benchmark.plugins import players


@pytest.mark.parametrize("name", ["mine.py", "numpy.py"])
def test_a_plug_in_may_have_data_classes_and_annotations_that_are_texts(name, tmp_path):
    path = tmp_path / name
    path.write_text(
        "from __future__ import annotations\nimport dataclasses\n"
        "@dataclasses.dataclass\nclass Settings:\n    flips: int = 3\n"
        "def mine(rng, pairs, epsilon, theta): ...\nATTACKS = (mine,)\n",
        encoding="utf-8",
    )
    assert "mine" in players((path,)).attacks
    assert sys.modules["numpy"] is np


def test_an_attack_may_not_have_the_name_of_honest_pairs(tmp_path):
    """It would be left out without a word."""
    path = tmp_path / "mine.py"
    path.write_text("def none(rng, pairs, epsilon, theta): ...\nATTACKS = (none,)\n", encoding="utf-8")
    with pytest.raises(ValueError, match="the name none is taken"):
        players((path,))
