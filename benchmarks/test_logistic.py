"""The logistic likelihood with its derivatives beside the memory that it must read and beside its rivals."""

import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from machine import fastest_copy, multiplication

from robust_rlhf_jax.kernels import logistic

GROUP = "value_gradient"
# X does not fit into a processor's cache: margins read it once, the gradient again. A GPU's kernel can keep the row.
READS = 2 if jax.default_backend() == "cpu" else 1
OF_COPY, OF_MATMUL = "of the copy's bytes per second", "of a product's operations per second"

value_gradient = jax.jit(logistic.value_gradient)
value_gradient_hessian = jax.jit(logistic.value_gradient_hessian)
by_autodiff = jax.jit(jax.value_and_grad(logistic.mean_log_likelihood))
torch_installed = importlib.util.find_spec("torch") is not None


def sample(n, d):
    """(θ, X [n, d], labels, weights); an eighth of the rows was trimmed away."""
    k_theta, k_x, k_labels = jax.random.split(jax.random.key(0), 3)
    theta = jax.random.normal(k_theta, (d,)) / jnp.sqrt(d)
    x = jax.random.normal(k_x, (n, d))
    labels = jnp.where(jax.random.bernoulli(k_labels, 0.5, (n,)), 1.0, -1.0)
    weights = (jnp.arange(n) % 8 > 0).astype(x.dtype)
    return jax.block_until_ready((theta, x, labels, weights))


def size_of(x):
    return f"n = {x.shape[0]:,}, d = {x.shape[1]}"


@pytest.fixture(scope="module")
def tall(small):
    """Half a gigabyte."""
    return sample(10_000 if small else 1_000_000, 128)


@pytest.fixture(scope="module")
def narrow(small):
    return sample(2_000 if small else 100_000, 64)


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


def rivals(tall):
    """(name, run) for the same numbers from the same memory."""
    yield "`jax.value_and_grad`", lambda: by_autodiff(*tall)
    host = [np.asarray(part) for part in tall]
    yield "NumPy", lambda: by_numpy(*host)
    if torch_installed:
        import torch

        lent = [torch.from_dlpack(part) for part in tall]
        yield "PyTorch", lambda: by_torch(*lent)


def test_beside_the_copy(measure, beside, benchmark, tall):
    """How fast the kernel reads what it must, as a fraction of the machine's copying, which reads and writes."""
    x = tall[1]
    name, copy = fastest_copy(x)
    measure(lambda: value_gradient(*tall), what="`value_gradient`", size=size_of(x), group=GROUP)
    ours, theirs = beside(lambda: value_gradient(*tall), copy, name=f"{name} of X", turns=15)
    rate = 2 * x.nbytes / theirs
    benchmark.extra_info.update(
        fraction=READS * x.nbytes / ours / rate,
        fraction_of=OF_COPY,
        target=0.6 if READS == 2 else 0.7,
        copy_gb_per_s=rate / 1e9,
        reads_of_x=READS,
    )


@pytest.mark.parametrize("rival", ["`jax.value_and_grad`", "NumPy", "PyTorch"])
def test_beside_rivals(measure, beside, tall, rival):
    runs = dict(rivals(tall))
    if rival not in runs:
        pytest.skip(f"{rival} is not installed")
    found = measure(
        lambda: value_gradient(*tall), what="`value_gradient`", size=size_of(tall[1]), group=GROUP
    )
    for mine, other in zip(found, runs[rival](), strict=True):
        np.testing.assert_allclose(mine, np.asarray(other), atol=1e-5)
    beside(lambda: value_gradient(*tall), runs[rival], name=rival)


def test_hessian(measure, beside, benchmark, narrow):
    """XᵀDX takes 2nd² operations; those of the value and the gradient are not counted."""
    x = narrow[1]
    host = [np.asarray(part) for part in narrow]
    found = measure(
        lambda: value_gradient_hessian(*narrow),
        what="`value_gradient_hessian`",
        size=size_of(x),
        group="hessian",
    )
    for mine, other in zip(found, hessian_by_numpy(*host), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-5)
    operations, product = multiplication(2048)
    ours, theirs = beside(lambda: value_gradient_hessian(*narrow), product, name="a square product")
    benchmark.extra_info.update(
        fraction=2 * x.shape[0] * x.shape[1] ** 2 / ours / (operations / theirs),
        fraction_of=OF_MATMUL,
        product_gflops=operations / theirs / 1e9,
    )
    # Stored last: the row shows NumPy.
    beside(lambda: value_gradient_hessian(*narrow), lambda: hessian_by_numpy(*host), name="NumPy")
