"""The logistic likelihood with its derivatives beside the memory that it must read and beside its rivals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from machine import fastest_copy
from rivals import assert_same, rival_run
from samples import size_of, trimmed_rows

from robust_rlhf_jax.kernels import logistic

# X does not fit into a processor's cache: margins read it once, the gradient again. A GPU's kernel can keep the row.
READS = 2 if jax.default_backend() == "cpu" else 1
SCALING = [(10_000, 64), (100_000, 64), (1_000_000, 64), (100_000, 16), (100_000, 256)]

value_gradient = jax.jit(logistic.value_gradient)
by_autodiff = jax.jit(jax.value_and_grad(logistic.mean_log_likelihood))


@jax.jit
def value_gradient_hessian(theta, x, labels, weights):
    """Mean log-likelihood, gradient and negative Hessian, as Newton's method takes them."""
    margins = logistic.margins_of(theta, x, labels)
    value, gradient = logistic.value_gradient_at(margins, x, labels, weights)
    return value, gradient, logistic.curvature_at(margins, x, weights)


def sample(n, d):
    """(θ, X [n, d], labels, weights); an eighth of the rows was trimmed away."""
    k_theta, k_labels = jax.random.split(jax.random.key(0))
    x, weights = trimmed_rows(n, d)
    theta = jax.random.normal(k_theta, (d,)) / jnp.sqrt(d)
    labels = jnp.where(jax.random.bernoulli(k_labels, 0.5, (n,)), 1.0, -1.0)
    return jax.block_until_ready((theta, x, labels, weights))


@pytest.fixture(scope="module")
def tall(rows):
    """Half a gigabyte."""
    return sample(rows(1_000_000), 128)


@pytest.fixture(scope="module")
def narrow(rows):
    return sample(rows(100_000), 64)


def by_numpy(theta, x, labels, weights):
    margins, total = labels * (x @ theta), weights.sum()
    value = weights @ -np.logaddexp(0, -margins) / total
    return value, (weights * labels / (1 + np.exp(margins))) @ x / total


def hessian_by_numpy(theta, x, labels, weights):
    margins = labels * (x @ theta)
    slope = 1 / (1 + np.exp(margins))
    curvature = (x * (weights * slope * (1 - slope))[:, None]).T @ x
    return *by_numpy(theta, x, labels, weights), curvature / weights.sum()


def by_torch(theta, x, labels, weights):
    import torch

    margins, total = labels * (x @ theta), weights.sum()
    value = torch.dot(weights, torch.nn.functional.logsigmoid(margins)) / total
    return value, (weights * labels * torch.sigmoid(-margins)) @ x / total


def hessian_by_torch(theta, x, labels, weights):
    import torch

    slope = torch.sigmoid(-labels * (x @ theta))
    curvature = (x * (weights * slope * (1 - slope))[:, None]).T @ x
    return *by_torch(theta, x, labels, weights), curvature / weights.sum()


FIRST_ORDER = {"NumPy": by_numpy, "PyTorch": by_torch}
SECOND_ORDER = {"NumPy": hessian_by_numpy, "PyTorch": hessian_by_torch}


def measured(measure, program, problem, what):
    """The program's result, timed on `problem`."""
    x = problem[1]
    return measure(program, *problem, what=what, size=size_of(x), work=(x.shape[0], "rows"))


def test_beside_the_copy(measure, beside, benchmark, tall):
    """How fast the kernel reads what it must, as a fraction of the machine's copying, which reads and writes.

    In turns with the copy, unlike the other fractions: this one has a target.
    """
    x = tall[1]
    name, copy = fastest_copy(x)
    measured(measure, value_gradient, tall, "`value_gradient`")
    ours, theirs = beside(lambda: value_gradient(*tall), copy, name=f"{name} of X", turns=15)
    rate = 2 * x.nbytes / theirs
    benchmark.extra_info.update(
        fraction=READS * x.nbytes / ours / rate,
        fraction_of=f"of the copy's bytes per second ({READS} × X)",
        target=0.6 if READS == 2 else 0.7,
    )


def test_beside_autodiff(measure, beside, tall):
    found = measured(measure, value_gradient, tall, "`value_gradient`")
    assert_same(found, by_autodiff(*tall), atol=1e-5)
    beside(lambda: value_gradient(*tall), lambda: by_autodiff(*tall), name="`jax.value_and_grad`")


@pytest.mark.parametrize("rival", FIRST_ORDER)
def test_beside_rivals(measure, beside, tall, rival):
    name, run = rival_run(rival, FIRST_ORDER, tall)
    assert_same(measured(measure, value_gradient, tall, "`value_gradient`"), run(), atol=1e-5)
    beside(lambda: value_gradient(*tall), run, name=name)


@pytest.mark.parametrize("rival", SECOND_ORDER)
def test_hessian(measure, beside, against_product, narrow, rival):
    """XᵀDX takes 2nd² operations; those of the value and the gradient are not counted."""
    n, d = narrow[1].shape
    name, run = rival_run(rival, SECOND_ORDER, narrow)
    found = measured(measure, value_gradient_hessian, narrow, "`value_gradient_hessian`")
    assert_same(found, run(), atol=1e-5)
    beside(lambda: value_gradient_hessian(*narrow), run, name=name)
    against_product(2 * n * d**2, "2nd²")


@pytest.mark.parametrize(("n", "d"), SCALING)
def test_scaling(measure, rows, n, d):
    measured(measure, value_gradient, sample(rows(n), d), "`value_gradient`, scaling")
