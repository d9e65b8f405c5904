"""Lists of numbers in cells of a CSV file, as NumPy and others print them."""

import numpy as np
import pytest

from robust_rlhf_jax.io import load_pairs

X = np.random.default_rng(0).normal(size=(2, 12, 30))


def file_of(folder, written):
    path = folder / "pairs.csv"
    rows = [f'"{written(a)}","{written(b)}"' for a, b in zip(*X, strict=True)]
    path.write_text("\n".join(["chosen,rejected", *rows]))
    return path


def test_arrays_as_numpy_prints_them_are_embeddings(tmp_path):
    found = load_pairs(file_of(tmp_path, str))
    assert found.kind == "embeddings"
    np.testing.assert_allclose(found.chosen, X[0], rtol=1e-6)


@pytest.mark.parametrize(
    "written",
    [
        lambda row: np.array2string(row, threshold=5),
        lambda row: f"tensor([{', '.join(map(str, row))}])",
        lambda row: " ".join(map(str, row)),
        lambda row: ";".join(map(str, row)),
    ],
)
def test_other_lists_of_numbers_are_no_texts(written, tmp_path):
    with pytest.raises(
        ValueError, match=r"column chosen holds .* write lists of numbers whole, as \[0\.1, 0\.2\]"
    ):
        load_pairs(file_of(tmp_path, written))
