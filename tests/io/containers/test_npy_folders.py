"""Folders of `.npy` files: what lies beside many parts belongs to the same rows as in `sources.open_pairs`."""

import numpy as np
import pytest

from robust_rlhf_jax.io import Columns, load_pairs
from robust_rlhf_jax.sources import open_pairs

WHO = np.array([f"rater {row}" for row in range(12)])


@pytest.fixture
def folder(tmp_path):
    for number in range(12):
        np.save(tmp_path / f"chosen-{number}.npy", np.full((1, 2), number, np.float32))
        np.save(tmp_path / f"rejected-{number}.npy", np.zeros((1, 2), np.float32))
    return tmp_path


@pytest.mark.parametrize("name", ["rater", "raters"])
def test_raters_beside_many_parts_are_those_of_their_rows(folder, name):
    np.save(folder / f"{name}.npy", WHO)
    pairs = load_pairs(folder)
    np.testing.assert_array_equal(pairs.chosen[:, 0], np.arange(12))
    np.testing.assert_array_equal(pairs.raters, WHO)


def test_labels_beside_many_parts_are_those_of_their_rows(folder):
    np.save(folder / "labels.npy", np.where(np.arange(12) < 2, -1, 1))
    pairs = load_pairs(folder, columns=Columns(label="labels", first_is="1"))
    (preferred,) = open_pairs(folder).blocks(12)
    np.testing.assert_array_equal(pairs.differences() * pairs.labels[:, None], preferred)
