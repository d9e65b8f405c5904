import pytest

from robust_rlhf_jax.audit.fail_if import SHARES, check_thresholds, parse_threshold
from robust_rlhf_jax.audit.issues import ISSUES


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


def test_an_unknown_share_is_told_before_any_work(robust_rlhf, tmp_path):
    (tmp_path / "p.csv").write_text("chosen_x,rejected_x\n1,2\n3,1\n")
    status, _, errors = robust_rlhf("audit", tmp_path / "p.csv", "--dry-run", "--fail-if", "corupt>0.1")
    assert status == 2
    assert "--fail-if corupt>0.1: there is no corupt; there are " in errors
    assert robust_rlhf("audit", tmp_path / "p.csv", "--dry-run", "--fail-if", "identical>1%")[0] == 0


def test_every_share_of_an_audit_has_a_name_that_is_known():
    assert set(SHARES).isdisjoint(ISSUES)


def test_an_unknown_share():
    with pytest.raises(ValueError, match="there is no corupt; there are corrupt"):
        check_thresholds(["corupt>0.1"], {"corrupt": 0.0})
