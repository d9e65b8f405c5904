import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.checks import check_epsilon, is_traced


@pytest.mark.parametrize(
    "epsilon",
    [0, 0.0, 0.1, 0.4999999, np.float32(0.25), np.array(0.3), np.array([0.0, 0.49]), jnp.asarray([0.1, 0.2])],
)
def test_fractions_below_one_half_pass(epsilon):
    assert check_epsilon(epsilon) is None


@pytest.mark.parametrize(
    ("epsilon", "named"),
    [
        (0.5, "0.5"),
        (1, "1"),
        (-1e-9, "-1e-09"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (-float("inf"), "-inf"),
        (np.array([0.1, 0.7, 0.9]), "0.7"),
        (jnp.asarray([[0.1], [-0.25]]), "-0.25"),
    ],
)
def test_other_numbers_are_named(epsilon, named):
    with pytest.raises(ValueError, match=r"outside \[0, 0\.5\)") as error:
        check_epsilon(epsilon)
    assert str(error.value).startswith(f"epsilon={named} ")
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("epsilon", ["much", [0.1, "x"], {}])
def test_what_is_no_number_is_named(epsilon):
    with pytest.raises(ValueError, match="is not a number"):
        check_epsilon(epsilon)


def test_traced_values_are_skipped():
    seen = []

    def body(epsilon):
        seen.append(is_traced(epsilon))
        check_epsilon(epsilon)
        return epsilon

    jax.jit(body)(0.9)
    jax.vmap(body)(jnp.array([0.1, 0.9]))
    jax.grad(body)(0.9)
    assert seen == [True] * 3
    assert not is_traced(0.9)
    assert not is_traced(jnp.asarray(0.9))
