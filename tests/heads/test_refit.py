"""Refits of a head on embeddings: the numbers are those of `fit_reward`, in memory and in shards."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.heads import RobustHead, refit_head
from robust_rlhf_jax.io import RewardHead
from robust_rlhf_jax.rewards import Streaming

N, D = 900, 4


@pytest.fixture(scope="module")
def sides():
    """Pairs preferred by a linear reward of tanh, the surest fifteenth flipped; (chosen, rejected, flipped)."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, N, D))
    margins = (np.tanh(first) - np.tanh(second)) @ np.array([3.0, -2.0, 1.0, 0.0])
    wins = margins + rng.logistic(size=N) > 0
    flipped = np.zeros(N, bool)
    flipped[np.argsort(-np.abs(margins))[: N // 15]] = True
    wins = np.where(flipped, margins < 0, wins)[:, None]
    return np.where(wins, first, second), np.where(wins, second, first), flipped


@pytest.fixture(scope="module")
def found(sides):
    return refit_head(np.tanh, *sides[:2])


@pytest.mark.slow
def test_it_is_fit_reward_on_the_embeddings(sides, found):
    chosen, rejected, flipped = sides
    z = np.tanh(chosen).astype(np.float32) - np.tanh(rejected).astype(np.float32)
    model = fit_reward(Pairs.of_differences(z, np.ones(N)))
    np.testing.assert_allclose(found.weights, model.weights, atol=1e-5)
    np.testing.assert_allclose(found.head.theta, model.theta, rtol=1e-4)
    assert found.message == model.message
    assert found.moved is None
    assert found.weights[flipped].mean() < 0.3 < 0.9 < found.weights[~flipped].mean()


@pytest.mark.slow
def test_batches_and_jax_arrays_change_nothing(sides, found):
    other = refit_head(jnp.tanh, jnp.asarray(sides[0]), jnp.asarray(sides[1]), batch=77)
    np.testing.assert_allclose(other.weights, found.weights, atol=1e-3)


@pytest.mark.slow
def test_lists_are_inputs_too(sides, found):
    chosen, rejected = (list(side) for side in sides[:2])
    other = refit_head(lambda rows: np.tanh(np.stack(rows)), chosen, rejected, batch=100)
    np.testing.assert_allclose(other.weights, found.weights, atol=1e-5)


def test_torch_gives_embeddings_of_any_precision(sides):
    torch = pytest.importorskip("torch")
    side = torch.tensor(sides[0][:40], requires_grad=True)
    embed = lambda rows: torch.tanh(rows).bfloat16()  # noqa: E731
    assert refit_head(embed, side, side.flip(0)).weights.shape == (40,)


@pytest.mark.slow
def test_shards_are_read_and_then_gone(sides, found, tmp_path):
    calls = []

    def embed(rows):
        calls.append(len(rows))
        return np.tanh(rows)

    other = refit_head(embed, *sides[:2], batch=250, folder=tmp_path / "scratch")
    np.testing.assert_allclose(other.weights, found.weights, atol=1e-5)
    assert list((tmp_path / "scratch").iterdir()) == []
    # Each pair once, and the first batch, which says what there is.
    assert sum(calls) == 2 * (N + 250)


@pytest.mark.slow
def test_pairs_that_do_not_fit_into_memory_are_refitted_by_passes(tmp_path):
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(2, 5000, 8)).astype(np.float32)
    margins = 2 * (np.tanh(first) - np.tanh(second)) @ np.linspace(-1, 1, 8)
    wrong = np.abs(margins) > np.quantile(np.abs(margins), 0.93)
    wins = ((margins + rng.logistic(size=5000) > 0) ^ wrong)[:, None]
    done = []
    streaming = Streaming(memory="2.5MB", tell=lambda doing, *_: done.append(doing))
    sides = np.where(wins, first, second), np.where(wins, second, first)
    weights = RobustHead(*sides, folder=tmp_path, streaming=streaming).after_epoch(np.tanh)
    assert len(set(done)) > 3
    assert weights[wrong].mean() < 0.2 < 0.95 < weights[~wrong].mean()


@pytest.mark.slow
def test_the_head_is_a_file_for_others(found, tmp_path):
    pytest.importorskip("safetensors")
    found.head.save(tmp_path / "head.safetensors")
    loaded = RewardHead.load(tmp_path / "head.safetensors")
    assert loaded.names == ("e0", "e1", "e2", "e3")
    assert loaded.facts["pairs"] == N


@pytest.mark.slow
def test_a_training_is_weighed_from_the_epoch_after_the_warm_up(sides):
    head = RobustHead(*sides[:2], warm_up=1)
    np.testing.assert_array_equal(head.weights, np.ones(N))
    np.testing.assert_array_equal(head.after_epoch(np.tanh), np.ones(N))
    assert head.last is None
    weights = head.after_epoch(np.tanh)
    assert head.last.moved == pytest.approx(np.mean(1.0 - weights), rel=1e-4)
    again = head.after_epoch(np.tanh)
    np.testing.assert_array_equal(again, head.weights)
    again *= 0.0  # it is the caller's own
    assert head.weights.max() > 0
    assert head.last.moved == pytest.approx(0.0, abs=1e-6)


BAD = {
    "give as many of both": lambda c, r: refit_head(np.tanh, c, r[1:]),
    "batch=0": lambda c, r: refit_head(np.tanh, c, r, batch=0),
    "warm_up=-1": lambda c, r: RobustHead(c, r, warm_up=-1),
    "a row for each input": lambda c, r: refit_head(lambda x: np.tanh(x)[:-1], c, r),
    "chosen is of the type generator": lambda c, r: RobustHead((row for row in c), r),
    "rejected is of the type NoneType": lambda c, r: refit_head(np.tanh, c, None),
    "not finite": lambda c, r: refit_head(lambda x: x / 0.0, c, r),
    "for both": lambda c, r: refit_head(lambda x: x[:, : 2 + (x[0, 0] == c[0, 0])], c, r),
}


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("sentence", BAD)
def test_bad_input_gets_a_sentence(sides, sentence):
    with pytest.raises(ValueError, match=sentence):
        BAD[sentence](*sides[:2])


@pytest.mark.slow
def test_embeddings_in_double_precision_are_subtracted_in_it(sides, found):
    far = refit_head(lambda x: np.tanh(x) + 1e8, *sides[:2])
    np.testing.assert_allclose(far.weights, found.weights, atol=1e-3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"batch": 2.5}, "batch=2.5"),
        ({"warm_up": 1.5}, "warm_up=1.5"),
        ({"epsilon": 3.0}, "epsilon"),
        ({"groups": [1, 2]}, "groups has shape"),
    ],
)
def test_what_is_no_option_is_refused_before_the_first_epoch(sides, given, said):
    with pytest.raises(ValueError, match=said):
        RobustHead(*sides[:2], **given)


def test_an_epoch_whose_refit_fails_does_not_count(sides):
    head = RobustHead(*sides[:2])
    with pytest.raises(ValueError, match="finite"):
        head.after_epoch(lambda x: np.full((len(x), 2), np.nan))
    assert (head.epochs, head.last) == (0, None)
    head.after_epoch(np.tanh)
    assert head.epochs == 1


def test_bad_options_of_a_refit(sides, tmp_path):
    with pytest.raises(ValueError, match="before has shape"):
        refit_head(np.tanh, *sides[:2], before=np.ones(3))
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is no folder"):
        refit_head(np.tanh, *sides[:2], folder=tmp_path / "file")


def test_sides_whose_rows_stand_in_another_order_are_refused(sides):
    """They count by their place: what was chosen would stand beside what another pair rejected."""
    chosen, rejected = map(pd.DataFrame, sides[:2])
    for given in (refit_head, lambda _, *both: RobustHead(*both)):
        with pytest.raises(ValueError, match="chosen and rejected have the same index in another order"):
            given(np.tanh, chosen, rejected[::-1])
    turned = pd.Series(np.ones(len(chosen)))[::-1]
    for name, given in (
        ("groups", lambda: refit_head(np.tanh, chosen, rejected, groups=turned)),
        ("before", lambda: refit_head(np.tanh, chosen, rejected, before=turned)),
        ("groups", lambda: RobustHead(chosen, rejected, groups=turned)),
    ):
        with pytest.raises(ValueError, match=f"chosen and {name} have the same index in another order"):
            given()


@pytest.mark.slow
def test_a_data_set_gives_its_slices_as_columns_and_columns_alone_are_refused(sides, found):
    datasets = pytest.importorskip("datasets")
    chosen, rejected = ({"x": side.tolist()} for side in sides[:2])
    embed = lambda batch: np.tanh(np.asarray(batch["x"]))  # noqa: E731
    given = map(datasets.Dataset.from_dict, (chosen, rejected))
    np.testing.assert_allclose(refit_head(embed, *given, batch=400).weights, found.weights, atol=1e-5)
    with pytest.raises(ValueError, match="chosen is a dict of columns"):
        refit_head(embed, chosen, rejected)


def test_a_head_shows_its_pairs_and_epochs():
    head = RobustHead(np.ones((1200, 2)), np.zeros((1200, 2)), warm_up=1)
    assert repr(head) == "RobustHead(1,200 pairs after 0 epochs; they weigh 1.00 on average)"
    head.after_epoch(lambda x: x)
    assert repr(head).startswith("RobustHead(1,200 pairs after 1 epoch; they weigh 1.00")
