import pytest

from robust_rlhf_jax.audit.fail_if import check_thresholds, parse_threshold


def test_conditions():
    shares = {"corrupt": 0.06, "identical": 0.0}
    assert check_thresholds(["corrupt>0.05", "identical > 1%"], shares) == [
        "corrupt is 0.0600, and --fail-if says corrupt>0.05"
    ]
    assert check_thresholds(["corrupt<=5%"], shares) == []
    assert parse_threshold("a_b >= 2%") == ("a_b", ">=", 0.02)


@pytest.mark.parametrize(
    "condition", ["", "corrupt", "corrupt>", "corrupt>x", "corrupt=1", "1>corrupt", "c>1>2"]
)
def test_what_is_no_condition(condition):
    with pytest.raises(ValueError, match=r"write a name, > or <, and a share"):
        check_thresholds([condition], {"corrupt": 0.0})


def test_an_unknown_share():
    with pytest.raises(ValueError, match="there is no corupt; there are corrupt"):
        check_thresholds(["corupt>0.1"], {"corrupt": 0.0})
