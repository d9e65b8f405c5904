"""The code of today gives the numbers that `docs/figures.toml` keeps, so that figures stamped with them are true."""

import pytest

SLOW = ("audit", "plain_cells", "robust_policy", "algorithms", "primal_dual")


def check(name):
    from figures import read
    from witnesses import numbers_of, same

    found, kept = numbers_of(name), read()["witness"][name]["numbers"]
    assert same(name, found, kept), (
        f"{name} gives other numbers than docs/figures.toml keeps ({found}, not {kept}), so that figures that show it "
        f"are old. If that was meant: python docs/tools/figures.py --witness {name}, which then names them."
    )


@pytest.mark.slow
def test_fit_reward_gives_the_numbers_that_the_figures_were_stamped_with():
    check("fit_reward")


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_the_other_witnesses_give_them_too(name):
    check(name)


def test_every_witness_is_checked():
    from witnesses import WITNESSES

    assert {"fit_reward", *SLOW} == set(WITNESSES)


def test_numbers_may_differ_in_the_last_digit_and_no_more():
    from witnesses import same

    assert same("audit", [0.5, 0.25], [0.501, 0.248])
    assert not same("audit", [0.5, 0.25], [0.5, 0.26])
    assert not same("audit", [0.5], [0.5, 0.25])
    assert same("primal_dual", [0.5], [0.52])
