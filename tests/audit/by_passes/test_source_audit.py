"""What passes say of a source: who is left out, what is repeated, who rates against the others."""

import threading

import numpy as np
import pytest

from robust_rlhf_jax import fit_reward
from robust_rlhf_jax.audit import audit_source
from robust_rlhf_jax.audit.by_passes import source_raters as module
from robust_rlhf_jax.audit.by_passes.look import blocks_of, look
from robust_rlhf_jax.rewards import Streaming
from robust_rlhf_jax.sources import ArraySource

N, K = 3_000, 8
BY_PASSES = Streaming(memory=1_800_000, sample=1_500)


def differences():
    """A tenth planted far out against what the others prefer; rater 3 means the opposite."""
    rng = np.random.default_rng(5)
    theta, who = rng.normal(size=K), np.arange(N) % 20
    x = rng.normal(size=(N, K))
    z = x * np.where(rng.random(N) < 1 / (1 + np.exp(-x @ theta)), 1, -1)[:, None]
    z[who == 3] *= -1
    z[: N // 10] = -6 * theta + 0.2 * x[: N // 10]
    return z.astype(np.float32), who


def test_empty_repeated_and_contradicted_pairs_are_counted():
    z, _ = differences()
    z[10] = z[12] = z[4]
    z[20] = -z[21]
    z[30] = 0.0
    z[31] = -0.0
    seen = look(ArraySource(z))
    assert np.flatnonzero(seen.repeats).tolist() == [10, 12]
    assert np.flatnonzero(seen.opposite).tolist() == [20, 21]
    assert np.flatnonzero(seen.empty).tolist() == [30, 31]


def test_features_that_are_not_finite_are_named():
    z, _ = differences()
    z[7, 2], z[70, 0] = np.nan, np.inf
    with pytest.raises(ValueError, match=r"^pair 7 \(from 0\) has a feature that is not finite, and 1 more"):
        audit_source(ArraySource(z))


class Buffer(np.ndarray):
    """An array that is copied late: when it has been filled again, if anybody does that meanwhile."""

    again: threading.Event

    def astype(self, *args, **kwargs):
        self.again.wait(0.1)
        return np.array(super().astype(*args, **kwargs))


class OneBuffer:
    """A source of 3 · 4 pairs that fills one array again and again."""

    n_pairs, n_features, groups = 12, 2, None

    def blocks(self, rows):
        buffer = np.empty((4, 2), np.float32).view(Buffer)
        buffer.again = threading.Event()
        for number in range(3):
            buffer[:] = number
            buffer.again.set()
            buffer.again = threading.Event()
            yield buffer

    def fingerprint(self):
        return "one buffer"


def test_a_source_may_fill_one_array_again_and_again():
    blocks = list(blocks_of(OneBuffer()))
    np.testing.assert_array_equal([block[0, 0] for block in blocks], [0, 1, 2])


@pytest.mark.slow
def test_an_audit_by_passes_is_of_the_fit_and_its_margins():
    z, who = differences()
    found = audit_source(ArraySource(z, raters=who), 0.2, streaming=BY_PASSES)
    model = fit_reward(ArraySource(z, raters=who), 0.2, streaming=BY_PASSES)
    np.testing.assert_array_equal(found.model.theta, model.theta)
    assert max(rater.left_out for rater in found.raters) < 0.3
    np.testing.assert_allclose(found.margins, z @ np.asarray(model.theta), atol=1e-4)
    assert not found.keep[: N // 10].any()
    assert set(found.worst()[: N // 10]) == set(range(N // 10))
    assert found.sentences()[0] == model.message
    (said,) = found.sentences()[1:]
    assert said.startswith("1 of 20 raters is surely less than 0.6 times as reliable")
    assert said.endswith(": 3.")


@pytest.mark.slow
def test_the_contrary_rater_is_least_reliable():
    z, who = differences()
    found = audit_source(ArraySource(z[N // 10 :], raters=who[N // 10 :]))
    first = found.raters[0]
    assert first.name == "3"
    assert first.high < 0
    assert first.agreement < 0.4
    assert min(rater.low for rater in found.raters[1:]) > 0
    assert any("Kinds and tastes of raters" in sentence for sentence in found.not_done())


@pytest.mark.slow
def test_few_pairs_of_each_rater_are_enough(monkeypatch):
    z, who = differences()
    margins = z @ np.asarray(fit_reward(ArraySource(z), 0.2).theta)
    monkeypatch.setattr(module, "MOST_PAIRS", 1_000)
    some = module._some_of_each(who, np.bincount(who))
    assert np.bincount(who[some]).tolist() == [50] * 20
    found = module.source_raters(who, margins, np.ones(N, bool))
    assert [rater.pairs for rater in found] == [N // 20] * 20
    assert found[0].name == "3"


def test_one_rater_is_no_crowd():
    assert module.source_raters(np.zeros(5), np.ones(5), np.ones(5, bool)) == ()


@pytest.mark.slow
def test_raters_of_mixed_types_are_raters():
    z, who = differences()
    mixed = np.array([w if w % 2 else (None if w == 4 else f"r{w}") for w in who.tolist()], object)
    found = audit_source(ArraySource(z, raters=mixed), 0.2, streaming=BY_PASSES)
    same = audit_source(ArraySource(z, raters=who), 0.2, streaming=BY_PASSES)
    assert {rater.name for rater in found.raters} == {
        *map(str, range(1, 20, 2)),
        *(f"r{w}" for w in range(0, 20, 2)),
    } - {"r4"}
    np.testing.assert_array_equal(found.model.weights, same.model.weights)
    assert found.raters[0].name == same.raters[0].name
    there = who != 4
    alone = module.source_raters(who[there], same.margins[there], same.keep[there])
    np.testing.assert_allclose(found.raters[0][1:], alone[0][1:], rtol=1e-4)


def test_a_number_and_its_word_are_two_raters():
    who = np.array([1, "1", 1, "1", None], object)
    names = {rater.name for rater in module.source_raters(who, np.ones(5), np.ones(5, bool))}
    assert names == {"1", "'1'"}


@pytest.mark.parametrize("nobody", [None, float("nan"), "nan", ""])
def test_pairs_without_a_name_are_nobodys(nobody):
    """Six of them contradict the fit: one rater of both would be listed, and change the others' scale."""
    rng, who = np.random.default_rng(0), np.repeat([1, 2, 3], 30).astype(object)
    margins = rng.normal(1.0, 1.0, 96)
    margins[90:] = -2.0
    who = np.array([*who, *[nobody] * 6], object)
    found = module.source_raters(who, margins, np.ones(96, bool))
    assert {rater.name for rater in found} == {"1", "2", "3"}
    assert found == module.source_raters(who[:90], margins[:90], np.ones(90, bool))
    assert module.source_raters(who[80:], margins[80:], np.ones(16, bool)) == ()


@pytest.mark.slow
def test_pairs_that_are_left_out_do_not_make_their_rater_unreliable():
    rng, who = np.random.default_rng(0), np.repeat(np.arange(10), 100)
    margins, keep = rng.normal(1.0, 1.0, 1_000), np.ones(1_000, bool)
    margins[300:360], keep[300:360] = -50.0, False
    found = {rater.name: rater for rater in module.source_raters(who, margins, keep)}
    assert found["3"].left_out == 0.6
    assert found["3"].low > 0.3
    gone = module.source_raters(who, margins, who != 3)  # nothing is known of a rater without pairs
    assert {rater.name: rater for rater in gone}["3"].left_out == 1.0
