"""Numbers of tables, as people write them."""

import pytest

from robust_rlhf_jax.io import load_pairs


def written(tmp_path, *prices):
    rows = "".join(f"{price};{740 - i}\n" for i, price in enumerate(prices))
    (tmp_path / "a.csv").write_text("chosen_price;rejected_price\n" + rows)
    return tmp_path / "a.csv"


@pytest.mark.parametrize(
    "prices", [("12.500", "740", "980"), ("1.234.000", "2.500", "120"), ("-3.250", "800", "0")]
)
def test_points_that_part_thousands_are_asked_about(tmp_path, prices):
    with pytest.raises(
        ValueError, match=r"chosen_price holds '.*0' beside '...', as if points separated thousands: write"
    ):
        load_pairs(written(tmp_path, *prices))


@pytest.mark.parametrize(
    "prices",
    [("12.500", "740.000", "98.125"), ("0.500", "740", "1.250"), ("12.125", "740", "3.333"), ("12.5", "740", "3.250"),
     ("2.500", "3", "1.250"), ("17.500", "1740", "1.250")],
)  # fmt: skip
def test_decimals_are_read(tmp_path, prices):
    found = load_pairs(written(tmp_path, *prices))
    assert found.chosen[:, 0].tolist() == [float(price) for price in prices]


def test_codes_with_underscores_are_no_numbers(tmp_path):
    """Python's own numbers may have them."""
    (tmp_path / "a.csv").write_text(
        "chosen_x,rejected_x,chosen_card,rejected_card\n1,2,1_7,2_3\n4,3,1_2,1_4\n"
    )
    found = load_pairs(tmp_path / "a.csv")
    assert found.names == ("x",)
    assert "no numbers" in found.unused["chosen_card"]
    (tmp_path / "b.csv").write_text("chosen_x,rejected_x\n1,2\n4,3_0\n")
    with pytest.raises(ValueError, match=r"column rejected_x is not numeric \(row 2 holds '3_0'\)"):
        load_pairs(tmp_path / "b.csv")
