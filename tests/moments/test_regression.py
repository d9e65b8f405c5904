"""Linear regression with corrupted covariates and corrupted targets."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels.regression import clip_level
from robust_rlhf_jax.kernels.units import LONGEST
from robust_rlhf_jax.moments import prepare_design, regression, robust_covariance, robust_linear_regression
from robust_rlhf_jax.moments.influence import SUSPECT_WEIGHT
from robust_rlhf_jax.moments.regression import covariate_weights

EPSILON = 0.1
NOISE = 0.5


def sample(kind="clean", n=1000, d=4, seed=0):
    """(φ, y, w, which rows are clean); a tenth of the rows is corrupted."""
    rng = np.random.default_rng(seed)
    phi, w = rng.normal(size=(n, d)), rng.normal(size=d)
    targets = phi @ w + NOISE * rng.normal(size=n)
    bad = rng.choice(n, int(EPSILON * n), replace=False)
    if kind == "targets":
        targets[bad] += 20.0 * np.sign(phi[bad, 0])
    elif kind == "leverage":
        phi[bad] = 6.0 * np.eye(d)[0] + 0.1 * rng.normal(size=(len(bad), d))
        targets[bad] = -10.0
    elif kind == "both":
        phi[bad] = 6.0 * np.eye(d)[0] + 0.1 * rng.normal(size=(len(bad), d))
        targets[bad[::2]], targets[bad[1::2]] = 1e3, -20.0
    return phi, targets, w, ~np.isin(np.arange(n), bad)


@pytest.mark.slow
@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-4), (True, 1e-9)])
@pytest.mark.parametrize("deficient", [False, True])
def test_without_corruption_it_is_least_squares(wide, tolerance, deficient):
    phi, targets, _, _ = sample(seed=1)
    if deficient:  # the third column repeats the difference of the first two
        phi[:, 2] = phi[:, 0] - phi[:, 1]
    expected = np.linalg.lstsq(phi, targets, rcond=1e-6)[0]
    with jax.enable_x64(wide):
        found = robust_linear_regression(jnp.asarray(phi), jnp.asarray(targets), 0.0)
        rank = jax.jit(prepare_design)(jnp.asarray(phi), jnp.asarray(0.0)).rank
        assert found.dtype == (jnp.float64 if wide else jnp.float32)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    assert rank == (3 if deficient else 4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["clean", "targets", "leverage", "both"])
def test_corrupted_rows(kind):
    """Error at most 2√ε·σ; plain least squares on the same rows is far off unless they are clean."""
    for seed in range(3):
        phi, targets, _, clean = sample(kind, seed=seed)
        oracle = np.linalg.lstsq(phi[clean], targets[clean], rcond=None)[0]
        plain = np.linalg.lstsq(phi, targets, rcond=None)[0]
        found = robust_linear_regression(phi.astype(np.float32), targets.astype(np.float32), EPSILON)
        error = np.linalg.norm(found - oracle)
        assert error < 2 * np.sqrt(EPSILON) * NOISE
        if kind != "clean":
            assert np.linalg.norm(plain - oracle) > 4 * error


def test_the_size_of_corrupted_targets_does_not_matter():
    """A robust estimate has bounded influence: a hundred times larger lies do no further harm."""
    phi, targets, _, clean = sample("targets", seed=0)
    errors = []
    oracle = np.linalg.lstsq(phi[clean], targets[clean], rcond=None)[0]
    for size in (1.0, 100.0):
        corrupted = np.where(clean, targets, size * targets)
        found = robust_linear_regression(phi.astype(np.float32), corrupted.astype(np.float32), EPSILON)
        errors.append(np.linalg.norm(found - oracle))
    assert max(errors) < 0.1 * np.sqrt(EPSILON) * NOISE


@pytest.mark.slow
def test_design_serves_any_number_of_targets(x64):
    phi, targets, _, clean = sample("leverage", seed=2)
    many = np.stack([targets, -2.0 * targets, np.ones(len(targets))])
    design = jax.jit(prepare_design)(jnp.asarray(phi), jnp.asarray(EPSILON))
    batch = jax.vmap(design.fit)(jnp.asarray(many))
    single = eqx.filter_jit(design.fit)
    for row, found in zip(many, batch, strict=True):
        np.testing.assert_allclose(found, single(jnp.asarray(row)), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(batch[1], -2.0 * batch[0], rtol=1e-9)
    moments = robust_covariance(jnp.asarray(phi), EPSILON, assume_centered=True)
    assert design.status == moments.status == Status.CONVERGED
    np.testing.assert_allclose(design.second_moment, moments.covariance, rtol=1e-10)
    np.testing.assert_allclose(design.weights, np.maximum(moments.weights, SUSPECT_WEIGHT), atol=1e-10)
    assert np.mean(np.asarray(design.weights)[~clean]) < 0.05
    np.testing.assert_allclose(design.multiple, 1 / np.sqrt(EPSILON))
    gram = (phi.T * np.asarray(design.weights)) @ phi
    root = np.asarray(design.gram_root_inverse)
    np.testing.assert_allclose(root @ gram @ root, np.eye(4), atol=1e-10)


@pytest.mark.slow
def test_a_direction_that_only_suspects_cover_stays_identified(x64):
    """Rare rows own the last direction: the filter takes them for outliers, and yet nobody contradicts them."""
    rng = np.random.default_rng(3)
    phi = np.hstack([rng.normal(size=(1000, 3)), np.zeros((1000, 1))])
    phi[:30] = [0.0, 0.0, 0.0, 1.0]
    w = np.array([1.0, -1.0, 0.5, 2.0])
    found = robust_linear_regression(jnp.asarray(phi), jnp.asarray(phi @ w), EPSILON)
    np.testing.assert_allclose(found, w, rtol=1e-6)


@pytest.mark.slow
def test_hopeless_covariates_keep_all_rows(x64):
    """A few tight clusters with rare ones far out: no clean level is found, the status says so, no row is lost."""
    rng = np.random.default_rng(4)
    phi = np.eye(4)[rng.choice(4, 2000, p=[0.85, 0.06, 0.05, 0.04])]
    design = jax.jit(prepare_design)(jnp.asarray(phi), jnp.asarray(0.01))
    assert design.status == Status.FILTER_REMOVED_TOO_MUCH
    np.testing.assert_array_equal(design.weights, 1.0)


@pytest.mark.parametrize(
    ("phi", "targets", "epsilon", "message"),
    [
        (np.ones(3), np.ones(3), 0.1, r"must be \[n, d\]"),
        (np.ones((3, 2)), np.ones(4), 0.1, r"must be \[n\]"),
        (np.ones((3, 2)), np.ones(2), 0.1, r"must be \[n\]"),
        (np.ones((3, 2, 2)), np.ones(3), 0.1, r"must be \[n, d\]"),
        (np.ones((3, 2)), np.ones((3, 1)), 0.1, r"must be \[n\]"),
        (np.ones((3, 2)), np.ones(3), 0.5, r"outside \[0, 0\.5\)"),
    ],
)
def test_bad_arguments_are_named(phi, targets, epsilon, message):
    with pytest.raises(ValueError, match=message):
        robust_linear_regression(phi.astype(np.float32), targets.astype(np.float32), epsilon)


@pytest.mark.slow
def test_the_roots_of_a_gram_matrix_in_units_far_apart(x64):
    """R with RRᵀ = (Σ_i w_iφ_iφ_iᵀ)⁻¹, and the weights are those of the filter with their floor."""
    phi, _, _, _ = sample("leverage", seed=2)
    phi = phi * np.array([1e-4, 1.0, 8.0, 1e5])
    design = jax.jit(prepare_design)(jnp.asarray(phi), jnp.asarray(EPSILON))
    gram = (phi.T * np.asarray(design.weights)) @ phi
    root = np.asarray(design.gram_root_inverse)
    np.testing.assert_allclose(gram @ root @ root.T, np.eye(4), atol=1e-6)
    np.testing.assert_allclose(root.T @ gram @ root, np.eye(4), atol=1e-9)
    np.testing.assert_array_equal(design.columns, phi.T)
    weights, status = jax.jit(covariate_weights)(jnp.asarray(phi), jnp.asarray(EPSILON))
    np.testing.assert_allclose(weights, design.weights, atol=1e-10)
    assert status == design.status


@pytest.mark.slow
@pytest.mark.parametrize("refinements", [0, 1, 3])
def test_a_regression_refines_its_own_result_and_then_leaves_out_what_is_clipped(
    refinements, monkeypatch, x64
):
    monkeypatch.setattr(regression, "REFINEMENTS", refinements)
    phi, targets, _, _ = sample("targets", seed=1)
    design = jax.jit(prepare_design)(jnp.asarray(phi), jnp.asarray(EPSILON))
    fit = jax.jit(design.fit)
    w = fit(jnp.asarray(targets))
    for _ in range(refinements):
        w = fit(jnp.asarray(targets), w)
    residuals = targets - phi @ np.asarray(w)
    clip = clip_level(*map(jnp.asarray, (residuals, design.weights, design.multiple)))
    root = np.sqrt(np.where(np.abs(residuals) <= clip, design.weights, 0.0))
    expected = np.linalg.lstsq(phi * root[:, None], targets * root, rcond=None)[0]
    found = jax.jit(lambda *args: regression._refined(*args))(*map(jnp.asarray, (phi, targets, EPSILON)))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.slow
def test_a_far_target_is_as_good_as_infinite_unless_all_are_trusted(x64):
    phi, targets, _, _ = sample("targets", seed=3)
    unit = 2.0 ** np.floor(np.log2(np.sort(np.abs(targets))[500]))
    answers = []
    for size in (LONGEST, 1e3 * LONGEST):
        targets[:20] = size * unit * np.where(np.arange(20) % 2 == 0, 1.0, -1.0)
        answers.append(robust_linear_regression(jnp.asarray(phi), jnp.asarray(targets), EPSILON))
        least_squares = np.linalg.lstsq(phi, targets, rcond=None)[0]
        found = robust_linear_regression(jnp.asarray(phi), jnp.asarray(targets), 0.0)
        np.testing.assert_allclose(found, least_squares, rtol=1e-8)
    np.testing.assert_array_equal(*answers)


def test_targets_of_zero_have_coefficients_of_zero():
    phi, targets, _, _ = sample()
    found = robust_linear_regression(phi.astype(np.float32), np.zeros(len(targets), np.float32), EPSILON)
    np.testing.assert_array_equal(found, 0.0)


@pytest.mark.slow
def test_half_precision_is_prepared_in_single():
    phi = jnp.asarray(sample()[0], jnp.float16)
    design = jax.jit(prepare_design)(phi, jnp.float32(EPSILON))
    assert design.columns.dtype == design.weights.dtype == jnp.float32
    np.testing.assert_array_equal(design.columns, np.asarray(phi, np.float32).T)


@pytest.mark.parametrize(
    ("phi", "said"),
    [
        (np.ones((3, 2), int), r"phi must be floating-point; got int.*phi\.astype\(float\)"),
        (np.ones((0, 2), np.float32), r"phi has shape \(0, 2\): give one row"),
        (np.ones((3, 0), np.float32), r"phi has shape \(3, 0\): give one row"),
    ],
)
def test_covariates_that_no_regression_takes_are_named(phi, said):
    with pytest.raises(ValueError, match=said):
        robust_linear_regression(phi, np.ones(len(phi), np.float32), 0.1)


@pytest.mark.slow
def test_dependent_columns_get_the_least_norm_in_columns_of_typical_size_one():
    """Columns a and 8a, target a: with columns of one size, the least norm gives each half of the target."""
    a = np.random.default_rng(0).uniform(1.0, 2.0, 50).astype(np.float32)
    found = robust_linear_regression(np.stack([a, 8 * a], axis=1), a, 0.0)
    np.testing.assert_allclose(found, [0.5, 0.5 / 8], rtol=1e-4)
