"""The fit by passes: that of memory, whatever the blocks, the precision and the interruptions."""

import dataclasses
import itertools
import os
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.preferences import as_labelled
from robust_rlhf_jax.rewards import RobustFit, Streaming, fit_differences, fit_source
from robust_rlhf_jax.rewards.streamed import by_passes, passes
from robust_rlhf_jax.rewards.streamed.fit import _groups_of
from robust_rlhf_jax.sources import ArraySource, GeneratedSource

N, K = 6_000, 12
# Less than a fit in memory takes, more than one by passes.
MEMORY = 3_000_000
STREAMING = Streaming(memory=MEMORY, sample=2_000)


def differences(kind):
    """Preferred less other [N, K] in float32 with unequal columns; a tenth planted far out against θ if `planted`."""
    rng = np.random.default_rng(0)
    scale = np.arange(1, K + 1) ** -1.0
    x, theta = rng.normal(size=(N, K)) * scale, rng.normal(size=K) / scale * 0.6
    z = x * np.where(rng.random(N) < 1 / (1 + np.exp(-x @ theta)), 1.0, -1.0)[:, None]
    if kind == "planted":
        far = -6.0 * scale**2 * theta / np.linalg.norm(scale * theta)
        z[rng.permutation(N)[: N // 10]] = far
    return z.astype(np.float32)


def in_memory(z, epsilon=0.1):
    return fit_differences(jnp.asarray(z), jnp.ones(len(z), jnp.float32), jnp.float32(epsilon))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["clean", "planted"])
def test_fit_by_passes_is_that_of_memory(kind):
    z = differences(kind)
    found, expected = fit_source(ArraySource(z), 0.1, streaming=STREAMING), in_memory(z)
    size = np.linalg.norm(expected.theta * z.std(axis=0))
    assert np.linalg.norm((found.theta - expected.theta) * z.std(axis=0)) < 2e-3 * size
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-3)
    np.testing.assert_allclose(found.epsilon, expected.epsilon, atol=1e-3)
    np.testing.assert_allclose(found.interval, expected.interval, atol=5e-3)
    assert (float(found.epsilon) > 0.05) == (kind == "planted")
    assert int(found.status) == int(expected.status) == 0
    assert int(found.rank) == K


@pytest.mark.slow
def test_pairs_that_fit_in_memory_are_fitted_there():
    z = differences("clean")
    found = fit_source(ArraySource(z), 0.1, streaming=Streaming(memory="1GB"))
    np.testing.assert_array_equal(found.theta, in_memory(z).theta)


@pytest.mark.slow
def test_front_door_takes_a_source_by_labels_or_chosen_first():
    z = differences("planted")
    turned = np.where(np.arange(N) % 3 == 0, -1.0, 1.0).astype(np.float32)
    first = fit_reward(ArraySource(z), 0.1, streaming=STREAMING)
    other = fit_reward(ArraySource(z * turned[:, None], labels=turned), 0.1, streaming=STREAMING)
    np.testing.assert_array_equal(first.theta, other.theta)
    assert first.message == other.message
    assert first.message.startswith("600 of 6,000 pairs (10.0 %)")


def test_streaming_of_pairs_in_memory_is_refused():
    pairs = Pairs.of_differences(differences("clean"), np.ones(N))
    with pytest.raises(ValueError, match="streaming is for a PairSource"):
        fit_reward(pairs, streaming=STREAMING)


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [64 * K, 700 * K, 10**6])
def test_blocks_change_nothing(numbers, monkeypatch):
    z = differences("planted")
    expected = fit_source(ArraySource(z), 0.1, streaming=STREAMING)
    monkeypatch.setattr(passes, "NUMBERS", numbers)
    found = fit_source(ArraySource(z), 0.1, streaming=STREAMING)
    np.testing.assert_allclose(found.theta, expected.theta, rtol=2e-3)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-3)


@pytest.mark.slow
def test_half_precision_is_read_as_it_is():
    z = differences("planted").astype(np.float16)
    found = fit_source(ArraySource(z), 0.1, streaming=STREAMING)
    expected = fit_source(ArraySource(z.astype(np.float32)), 0.1, streaming=STREAMING)
    np.testing.assert_allclose(found.theta, expected.theta, rtol=1e-5)


@pytest.mark.slow
def test_fit_killed_at_ten_moments_goes_on_and_ends_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(passes, "NUMBERS", 500 * K)
    z, rng = differences("planted"), np.random.default_rng(1)
    expected = fit_source(ArraySource(z), 0.1, streaming=STREAMING)
    left = kills = 0

    def tell(doing, done, total):
        nonlocal left
        left -= 1
        if left == 0:
            raise InterruptedError

    for _ in range(10):
        left = int(rng.integers(1, 25))
        streaming = Streaming(memory=MEMORY, sample=2_000, checkpoint=tmp_path, tell=tell)
        try:
            fit_source(ArraySource(z), 0.1, streaming=streaming)
        except InterruptedError:
            kills += 1
    assert kills == 10
    found = fit_source(
        ArraySource(z), 0.1, streaming=Streaming(memory=MEMORY, sample=2_000, checkpoint=tmp_path)
    )
    np.testing.assert_array_equal(found.theta, expected.theta)
    np.testing.assert_array_equal(found.weights, expected.weights)


@pytest.mark.slow
def test_checkpoint_of_other_pairs_is_not_read(tmp_path):
    clean, planted = differences("clean"), differences("planted")
    streaming = Streaming(memory=MEMORY, sample=2_000, checkpoint=tmp_path)
    fit_source(ArraySource(clean), 0.1, streaming=streaming)
    found = fit_source(ArraySource(planted), 0.1, streaming=streaming)
    expected = fit_source(ArraySource(planted), 0.1, streaming=STREAMING)
    np.testing.assert_array_equal(found.theta, expected.theta)


@pytest.mark.slow
def test_checkpoint_of_pairs_that_were_changed_where_nobody_looked_is_refused(tmp_path):
    """A fingerprint sees 1,024 of the 6,000 rows: the label of row 3 is none of them."""
    z, streaming = differences("planted"), Streaming(memory=MEMORY, sample=2_000, checkpoint=tmp_path)
    expected = fit_source(ArraySource(z), 0.1, streaming=streaming)
    changed = z.copy()
    changed[3] *= -1
    assert ArraySource(changed).fingerprint() == ArraySource(z).fingerprint()
    with pytest.raises(ValueError, match="is of pairs that were changed since: remove it"):
        fit_source(ArraySource(changed), 0.1, streaming=streaming)
    again = fit_source(ArraySource(z), 0.1, streaming=streaming)
    np.testing.assert_array_equal(again.theta, expected.theta)


@pytest.mark.slow
def test_checkpoint_of_other_blocks_is_not_read(tmp_path, monkeypatch):
    """Another number of devices, with blocks of another length, pads otherwise."""
    source = ArraySource(differences("planted"))
    told = []
    streaming = Streaming(
        memory=MEMORY, sample=2_000, checkpoint=tmp_path, tell=lambda *now: told.append(now)
    )
    expected = fit_source(source, 0.1, streaming=streaming)
    told.clear()
    monkeypatch.setattr(passes, "NUMBERS", 1_000 * K)
    found = fit_source(source, 0.1, streaming=streaming)
    assert any(doing.startswith("pass 1:") for doing, *_ in told)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-4)


@pytest.mark.slow
def test_numbers_of_numpy_in_a_configuration(tmp_path):
    config = RobustFit(certainty=np.float32(7))
    streaming = Streaming(memory=MEMORY, sample=2_000, checkpoint=tmp_path)
    assert fit_source(ArraySource(differences("clean")), 0.1, config=config, streaming=streaming).epsilon == 0


@pytest.mark.slow
def test_units_do_not_matter():
    z = differences("planted")
    units = np.logspace(-6, 6, K).astype(np.float32)
    found = fit_source(ArraySource(z * units), 0.1, streaming=STREAMING)
    expected = fit_source(ArraySource(z), 0.1, streaming=STREAMING)
    np.testing.assert_allclose(found.theta * units, expected.theta, rtol=5e-3, atol=1e-3)
    np.testing.assert_allclose(found.weights, expected.weights, atol=2e-3)


@pytest.mark.slow
def test_labels_of_one_rater_are_dependent():
    z = differences("clean")
    groups = np.repeat(np.arange(N // 40), 40)
    streamed = fit_source(ArraySource(z, groups=groups), 0.1, streaming=STREAMING)
    expected = fit_differences(
        jnp.asarray(z), jnp.ones(N, jnp.float32), jnp.float32(0.1), jnp.asarray(groups, jnp.int32)
    )
    np.testing.assert_allclose(streamed.interval, expected.interval, atol=5e-3)
    np.testing.assert_allclose(streamed.theta, expected.theta, rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize(
    ("groups", "raters"),
    [
        (np.arange(N) % 3, np.array([f"r{i % 40}" for i in range(N)])),
        (None, np.array(["" if i < 3 else f"r{i % 8}" for i in range(N)], object)),
        (np.arange(N) % 3, None),
    ],
)
def test_groups_are_those_of_the_same_pairs_in_memory(groups, raters):
    z = differences("clean")
    found = _groups_of(ArraySource(z, groups=groups, raters=raters), None)
    expected = as_labelled(Pairs.of_differences(z, np.ones(N), groups=groups, raters=raters)).groups
    assert (found is None) == (expected is None)
    if expected is not None:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("length", [1e3, 1e4])
def test_one_row_that_is_absurdly_long_does_not_keep_a_fit_from_settling(length):
    z = differences("clean")
    z[77] = length * z.std(axis=0)
    found = fit_source(ArraySource(z), 0.1, streaming=STREAMING)
    assert int(found.status) == 0
    assert float(found.epsilon) == 0
    expected, size = in_memory(differences("clean")).theta, z.std(axis=0)
    assert np.linalg.norm((found.theta - expected) * size) < 0.3 * np.linalg.norm(expected * size)


@pytest.mark.slow
def test_passes_are_few():
    told = []
    streaming = Streaming(memory=MEMORY, sample=2_000, tell=lambda doing, *_: told.append(doing))
    fit_source(ArraySource(differences("clean")), 0.1, streaming=streaming)
    assert len({doing for doing in told if doing.startswith("pass")}) <= 9


@pytest.mark.slow
def test_each_pass_gives_back_what_it_freed(monkeypatch):
    """What the C library keeps of it grew by 15 MB in each pass over 100,000 pairs of 256 features."""
    log = []
    monkeypatch.setattr(by_passes, "give_back", lambda: log.append("given back"))
    streaming = dataclasses.replace(STREAMING, tell=lambda doing, *_: log.append(doing))
    fit_source(ArraySource(differences("planted")), 0.1, streaming=streaming)
    after = {then for doing, then in itertools.pairwise(log) if doing.startswith("pass") and doing != then}
    assert after == {"given back"}


@pytest.mark.slow
def test_the_plain_fit_is_maximum_likelihood_whatever_it_makes_of_contradictions():
    """At its best point for contradictions the plain fit would be the sample's."""
    z = differences("planted")
    found, expected = fit_source(ArraySource(z), 0.1, streaming=STREAMING), in_memory(z)
    plain, other = (fit.explanations.theta[0] * z.std(axis=0) for fit in (found, expected))
    # Its last step promises .05 nats at most: .8 % of so short a θ.
    assert np.linalg.norm(plain - other) < 1e-2 * np.linalg.norm(other)


@pytest.mark.parametrize("memory", [MEMORY, "1GB"])
def test_bad_features_end_in_one_sentence_in_memory_and_beyond(memory):
    z = differences("clean")
    z[17, 2] = np.inf
    with pytest.raises(
        ValueError, match=r"pair 17 \(from 0\) has features that are not finite: leave it out"
    ):
        fit_source(ArraySource(z), 0.1, streaming=Streaming(memory=memory, sample=2_000))


def test_features_that_are_not_finite_are_named():
    z = differences("clean")
    z[4_321, 3] = np.nan
    with pytest.raises(ValueError, match=r"pair 4,321 \(from 0\) has features that are not finite"):
        fit_source(ArraySource(z), 0.1, streaming=STREAMING)


def test_a_source_without_differences_is_refused():
    with pytest.raises(ValueError, match="the same features"):
        fit_source(ArraySource(np.zeros((N, K), np.float32)), 0.1, streaming=STREAMING)


def test_a_source_that_changes_is_refused():
    z, calls = differences("clean"), []

    def make():
        calls.append(1)
        yield z if len(calls) < 2 else z[:-5]

    with pytest.raises(ValueError, match="gave 5995 rows"):
        fit_source(GeneratedSource(make, n_pairs=N), 0.1, streaming=STREAMING)


@pytest.mark.slow
def test_a_source_that_gives_other_pairs_in_each_pass_is_refused():
    rng = np.random.default_rng(0)
    source = GeneratedSource(lambda: iter([rng.normal(size=(N, K))]), n_pairs=N)
    with pytest.raises(
        ValueError, match=r"gave another pair \d+ \(from 0\) in pass 3 than in the first: it must"
    ):
        fit_source(source, 0.1, streaming=STREAMING)


@pytest.mark.slow
def test_a_source_that_gives_other_pairs_at_last_is_refused():
    z, passes_made = differences("clean"), []

    def make():
        passes_made.append(1)
        # The first one looks at the form alone.
        yield z if len(passes_made) < 5 else -z

    with pytest.raises(ValueError, match=r"gave another pair \d+ \(from 0\) in pass [56] than in the first"):
        fit_source(GeneratedSource(make, n_pairs=N), 0.1, streaming=dataclasses.replace(STREAMING, passes=6))


@pytest.mark.slow
def test_a_source_that_changed_during_a_fit_is_refused_once(tmp_path):
    """What was found of both is not kept: the next fit with the same checkpoint is of the pairs as they are now."""
    z = differences("clean")
    source = ArraySource(z[::-1])
    given, blocks = [], source.blocks

    def changing(rows):
        given.append(1)
        return ArraySource(z).blocks(rows) if len(given) <= 2 else blocks(rows)

    source.blocks = changing
    streaming = dataclasses.replace(STREAMING, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"gave another pair \d+ \(from 0\) in pass 3"):
        fit_source(source, 0.1, streaming=streaming)
    found = fit_source(source, 0.1, streaming=streaming)
    np.testing.assert_array_equal(
        found.theta, fit_source(ArraySource(z[::-1]), 0.1, streaming=STREAMING).theta
    )


def test_too_little_memory_is_said():
    with pytest.raises(ValueError, match=r"needs 2\.41 MB of memory, and there are 1 MB"):
        fit_source(ArraySource(differences("clean")), 0.1, streaming=Streaming(memory="1MB"))


@pytest.mark.slow
def test_proposals_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="unknown"):
        fit_source(
            ArraySource(differences("clean")),
            0.1,
            config=RobustFit(proposals=("nobody",)),
            streaming=STREAMING,
        )


IN_FOUR = """
import numpy as np
from robust_rlhf_jax.rewards import Streaming, fit_source
from robust_rlhf_jax.sources import open_pairs
found = fit_source(open_pairs("pairs.npy"), 0.1, streaming=Streaming(memory=3_000_000, sample=2_000))
np.savez("found.npz", theta=found.theta, weights=found.weights)
"""


@pytest.mark.slow
def test_four_devices_give_the_numbers_of_one(tmp_path):
    z = differences("planted")
    np.save(tmp_path / "pairs.npy", z)
    flags = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    subprocess.run([sys.executable, "-c", IN_FOUR], cwd=tmp_path, env=flags, check=True)
    expected = fit_source(ArraySource(z), 0.1, streaming=STREAMING)
    with np.load(tmp_path / "found.npz") as found:
        np.testing.assert_allclose(found["theta"], expected.theta, rtol=1e-4)
        np.testing.assert_allclose(found["weights"], expected.weights, atol=1e-4)
