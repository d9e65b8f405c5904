"""What a filter does in a step: scores of degree one and two, removal, and all of a robust mean's step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rivals import assert_same, rival_run, score_above_by_sort
from samples import EPSILON, corrupted_rows, size_of

from robust_rlhf_jax.kernels import removal, spectral
from robust_rlhf_jax.kernels.running_moments import follow, moments_of, updates_pay

PASSES = 2 * 32  # two thresholds by bisection


@jax.jit
def mean_step(x, weights, scores, moments):
    """(weights, scores) after a step of `robust_mean`: remove, centre, score anew, as `MeanFilter` does."""
    n = x.shape[0]
    budget = 2 * EPSILON * n
    left = removal.remove_softly(weights, scores, EPSILON * n, budget / 16, jnp.float32(budget))
    if moments is None:
        return left, spectral.linear_scores(x, left)[0]
    return left, spectral.scores_from_moments(x, follow(moments, x, weights, left))[0]


linear_scores = jax.jit(spectral.linear_scores)
quadratic_scores = jax.jit(spectral.quadratic_scores)
remove_softly = jax.jit(removal.remove_softly)


def removal_by_numpy(weights, scores, suspects, chop, budget):
    lowest = score_above_by_sort(scores, weights, suspects)
    highest = scores[weights > removal.GONE].max() / removal.TOP_RANGE
    share = np.minimum(scores / max(score_above_by_sort(scores, weights, chop), highest), 1)
    share[scores < lowest] = 0
    return (weights * (1 - min(1, budget / (weights @ share)) * share),)


def linear_by_numpy(x, weights):
    mean = weights @ x / weights.sum()
    centred = x - mean
    top = np.linalg.eigh((centred * weights[:, None]).T @ centred / weights.sum())[1][:, -1]
    return (centred @ top) ** 2


def step_by_numpy(x, weights, scores):
    n = len(x)
    left = removal_by_numpy(weights, scores, EPSILON * n, EPSILON * n / 8, 2 * EPSILON * n)[0]
    return left, linear_by_numpy(x, left)


def threshold_by_torch(scores, weights, mass):
    import torch

    order = torch.argsort(scores, descending=True)
    place = torch.searchsorted(torch.cumsum(weights[order].double(), 0), mass)
    return scores[order[place]]


def step_by_torch(x, weights, scores):
    import torch

    n = len(x)
    lowest = threshold_by_torch(scores, weights, EPSILON * n)
    highest = scores[weights > removal.GONE].max() / removal.TOP_RANGE
    threshold = torch.maximum(threshold_by_torch(scores, weights, EPSILON * n / 8), highest)
    share = torch.where(scores >= lowest, torch.clamp(scores / threshold, max=1), 0)
    left = weights * (1 - torch.clamp(2 * EPSILON * n / (weights @ share), max=1) * share)
    centred = x - left @ x / left.sum()
    top = torch.linalg.eigh((centred * left[:, None]).T @ centred / left.sum())[1][:, -1]
    return left, (centred @ top) ** 2


def quadratic(y, weights, dot, start):
    """The power iteration in words that NumPy and PyTorch share; `dot` sums rows of products."""
    total = weights.sum()

    def polynomial(m):
        form = dot(y @ m, y)
        return form - weights @ form / total

    m = start / (start**2).sum() ** 0.5
    for _ in range(spectral.POWER_STEPS):
        m = y.T @ (y * (weights * polynomial(m) / total)[:, None])
        m = m / (m**2).sum() ** 0.5
    scores = polynomial(m) ** 2
    return scores, weights @ scores / total


def quadratic_by_numpy(y, weights):
    farthest = y[np.argmax(weights * (y**2).sum(1))]
    return quadratic(y, weights, lambda a, b: np.einsum("nd,nd->n", a, b), np.outer(farthest, farthest))


def quadratic_by_torch(y, weights):
    farthest = y[(weights * (y**2).sum(1)).argmax()]
    return quadratic(y, weights, lambda a, b: (a * b).sum(1), farthest[:, None] * farthest)


STEPS = {"NumPy": step_by_numpy, "PyTorch": step_by_torch}
QUADRATIC = {"NumPy": quadratic_by_numpy, "PyTorch": quadratic_by_torch}


@pytest.fixture(scope="module")
def corrupted(rows):
    """(X, weights of one, their first scores)."""
    x = corrupted_rows(rows(100_000), 100)
    weights = jnp.ones(x.shape[0])
    return jax.block_until_ready((x, weights, linear_scores(x, weights)[0]))


@pytest.mark.parametrize("rival", STEPS)
def test_mean_step(measure, beside, corrupted, rival):
    """The rivals sum all rows anew; on a processor ours takes out of the sums what it removed."""
    x, weights, _ = corrupted
    name, run = rival_run(rival, STEPS, corrupted)
    moments = jax.jit(moments_of)(x, weights) if updates_pay(x.shape) else None
    what, work = "a step of `robust_mean`", (x.shape[0], "rows")
    found = measure(mean_step, *corrupted, moments, what=what, size=size_of(x), work=work)
    assert_same(found, run(), rtol=2e-2, atol=1e-2)
    beside(lambda: mean_step(*corrupted, moments), run, name=name)


def test_linear_scores(measure, against_product, corrupted):
    """The covariance takes 2nd² operations; its eigenvectors and the products with one are not counted."""
    x, weights, _ = corrupted
    n, d = x.shape
    measure(linear_scores, x, weights, what="`linear_scores`", size=size_of(x), work=(n, "rows"))
    against_product(2 * n * d**2, "2nd²")


@pytest.mark.parametrize("rival", QUADRATIC)
def test_quadratic_scores(measure, beside, against_product, rows, rival):
    y = corrupted_rows(rows(20_000), 50)
    (n, d), weights = y.shape, jnp.ones(y.shape[0])
    name, run = rival_run(rival, QUADRATIC, (y, weights))
    found = measure(
        quadratic_scores, y, weights, what="`quadratic_scores`", size=size_of(y), work=(n, "rows")
    )
    assert_same(found, run(), rtol=2e-2, atol=1.0)
    beside(lambda: quadratic_scores(y, weights), run, name=name)
    against_product(
        (4 * spectral.POWER_STEPS + 2) * n * d**2, f"4nd² in each of {spectral.POWER_STEPS} steps"
    )


def test_remove_softly(measure, beside, against_copy, rows):
    n = rows(2_000_000)
    scores = jax.random.normal(jax.random.key(0), (n,)) ** 2
    masses = [jnp.float32(share * n) for share in (EPSILON, EPSILON / 8, 2 * EPSILON)]
    arrays = (jnp.ones(n), scores, *masses)
    name, run = rival_run("NumPy", {"NumPy": removal_by_numpy}, arrays)
    found = measure(remove_softly, *arrays, what="`remove_softly`", size=f"n = {n:,}", work=(n, "rows"))
    assert_same((found,), run(), atol=1e-3)
    beside(lambda: remove_softly(*arrays), run, name=f"{name}, two sorts")
    against_copy(PASSES * 8 * n, f"{PASSES} passes of 8 bytes a row")
