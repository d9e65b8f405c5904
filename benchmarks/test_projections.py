"""Quadratic models on a ball and on a ball cut by a half-space beside SciPy; many projections beside the copy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from rivals import assert_same, rival_run

from robust_rlhf_jax.kernels import ball, halfspace

DIMENSIONS = [10, 50, 200]
RADIUS = 1.0

project_rows = jax.jit(jax.vmap(ball.project_ball, (0, None)))
in_ball = jax.jit(ball.minimise_quadratic_in_ball)
in_cut_ball = jax.jit(halfspace.minimise_quadratic_in_cut_ball)


def rows_by_numpy(x, radius):
    norms = np.sqrt(np.einsum("nd,nd->n", x, x))
    return (x * np.minimum(1, radius / norms)[:, None],)


def rows_by_torch(x, radius):
    return (x * (radius / x.norm(dim=1)).clamp(max=1)[:, None],)


PROJECTIONS = {"NumPy": rows_by_numpy, "PyTorch": rows_by_torch}


@pytest.mark.parametrize("rival", PROJECTIONS)
def test_project_ball(measure, beside, against_copy, rows, rival):
    x = jax.random.normal(jax.random.key(0), (rows(1_000_000), 64))
    radius = jnp.float32(8.0)
    name, run = rival_run(rival, PROJECTIONS, (x, radius))
    n, d = x.shape
    found = measure(
        project_rows, x, radius, what="`project_ball`, vmapped", size=f"{n:,} × {d}", work=(n, "projections")
    )
    assert_same((found,), run(), atol=1e-5)
    beside(lambda: project_rows(x, radius), run, name=name)
    against_copy(2 * x.nbytes, "read and written once")


def quadratic(k):
    """(A ≻ 0, b, radius) of which the free minimiser lies outside."""
    k_a, k_b = jax.random.split(jax.random.key(0))
    factor = jax.random.normal(k_a, (2 * k, k))
    b = 10 * jax.random.normal(k_b, (k,))
    return jax.block_until_ready((factor.T @ factor / (2 * k) + jnp.eye(k), b, jnp.float32(RADIUS)))


def in_ball_by_scipy(a, b, radius):
    """Eigenvectors, then a root of the secular equation."""
    values, vectors = np.linalg.eigh(a)
    rotated = vectors.T @ b
    excess = lambda nu: np.linalg.norm(rotated / (values + nu)) - radius  # noqa: E731
    nu = scipy.optimize.brentq(excess, 0.0, np.linalg.norm(b) / radius, xtol=1e-6)
    return (vectors @ (rotated / (values + nu)),)


@pytest.mark.parametrize("k", DIMENSIONS)
def test_quadratic_in_ball(measure, beside, k):
    arguments = quadratic(k)
    name, run = rival_run("SciPy", {"SciPy": in_ball_by_scipy}, arguments)
    found = measure(
        in_ball, *arguments, what="`minimise_quadratic_in_ball`", size=f"k = {k}", work=(1, "solves")
    )
    assert_same((found,), run(), atol=1e-4)
    beside(lambda: in_ball(*arguments), run, name=f"{name}: `eigh` and `brentq`")


def in_cut_ball_by_scipy(a, b, normal, level, radius):
    """Sequential quadratic programming from the centre, in double precision as SciPy has it."""
    a, b, normal = (np.asarray(part, np.float64) for part in (a, b, normal))
    inside = {"type": "ineq", "fun": lambda u: radius**2 - u @ u, "jac": lambda u: -2 * u}
    above = {"type": "ineq", "fun": lambda u: normal @ u - level, "jac": lambda u: normal}
    found = scipy.optimize.minimize(
        lambda u: (0.5 * u @ (a * u) - b @ u, a * u - b),
        np.zeros_like(b),
        jac=True,
        method="SLSQP",
        constraints=[inside, above],
        options={"ftol": 1e-10, "maxiter": 200},
    )
    return (found.x,)


@pytest.mark.parametrize("k", DIMENSIONS)
def test_quadratic_in_cut_ball(measure, beside, k):
    """Both constraints hold with equality."""
    k_a, k_b = jax.random.split(jax.random.key(1))
    a = 1 + jax.random.uniform(k_a, (k,))
    b = 10 * jax.random.normal(k_b, (k,))
    normal = jnp.zeros(k).at[0].set(-jnp.sign(b[0]))
    arguments = (a, b, normal, jnp.float32(0.5), jnp.float32(RADIUS))
    name, run = rival_run("SciPy", {"SciPy": in_cut_ball_by_scipy}, arguments)
    found = measure(
        in_cut_ball, *arguments, what="`minimise_quadratic_in_cut_ball`", size=f"k = {k}", work=(1, "solves")
    )
    assert_same((found.point,), run(), atol=1e-2)
    beside(lambda: in_cut_ball(*arguments), run, name=f"{name}: SLSQP")
