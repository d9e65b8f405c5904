"""Weights and draws in TRL's RewardTrainer, by a tiny model with random weights. Needs the extras `embed` and `trl`."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("trl")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import torch
from trl import RewardTrainer
from trl_weights import NAMES, generated, made, tiny_model

from robust_rlhf_jax.heads import last_states, resampling_trainer, trl_callback, weighted_trainer


@pytest.fixture(scope="module")
def rows():
    return generated(48, seed=3)[0]


class Fixed:
    """A callback whose weights somebody else has decided."""

    def __init__(self, weights):
        self.weights = weights

    def __getattr__(self, name):
        if name.startswith("on_"):
            return lambda *given, **named: None
        raise AttributeError(name)


def batch_of(trainer, places):
    """The batch of the pairs at these places, as the trainer's own loader makes it."""
    rows = trainer._remove_unused_columns(trainer.train_dataset)
    return trainer.data_collator([rows[int(place)] for place in places])


def losses(trainer, places):
    """Each pair's −log σ(margin), by the model alone."""
    batch = batch_of(trainer, places)
    with torch.no_grad():
        scores = trainer.model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    chosen, rejected = scores.squeeze(-1).numpy().reshape(2, -1)
    return np.logaddexp(0.0, rejected - chosen)


def test_the_embedding_is_what_the_score_is_given():
    model, _ = tiny_model(NAMES)
    ids = [[3, 4, 5, 1], [6, 1], [7, 8, 1, 3, 9, 1]]
    model.train()
    states = last_states(model, ids)
    assert model.training
    assert states.shape == (3, 16)
    with torch.no_grad():
        alone = [model(input_ids=torch.tensor([row])).logits[0, 0] for row in ids]
        scores = model.score(states).squeeze(-1)
    np.testing.assert_allclose(scores.numpy(), np.array(alone), atol=1e-5)


def test_a_model_without_a_score_is_refused():
    with pytest.raises(ValueError, match="has no layer named score"):
        last_states(tiny_model(NAMES)[0].model, [[3, 1]])


def test_the_loss_is_weighed(rows):
    weights = np.linspace(0.0, 1.0, 48)
    trainer, places = made(weighted_trainer(Fixed(weights)), rows), np.array([5, 40, 0, 17])
    found = trainer.compute_loss(trainer.model, batch_of(trainer, places)).item()
    assert found == pytest.approx(
        np.mean(weights[places] / weights.mean() * losses(trainer, places)), rel=1e-5
    )


def test_the_column_weight_is_enough(rows):
    weights = np.where(np.arange(48) < 12, 0.0, 2.0)
    trainer = made(weighted_trainer(), rows.add_column("weight", weights))
    found = trainer.compute_loss(trainer.model, batch_of(trainer, [0, 3, 20])).item()
    assert found == pytest.approx(losses(trainer, [20])[0] * 4 / 3 / 3, rel=1e-5)


def test_without_weights_it_is_trl(rows):
    plain, trainer = made(RewardTrainer, rows, epochs=1), made(weighted_trainer(), rows, epochs=1)
    for each in (plain, trainer):
        each.train()
    for one, other in zip(plain.model.parameters(), trainer.model.parameters(), strict=True):
        torch.testing.assert_close(one, other)
    assert set(trainer.evaluate(rows)) == set(plain.evaluate(rows))


def test_pairs_of_weight_0_are_drawn_in_no_epoch(rows):
    seen = []

    class Watching(RewardTrainer):
        def compute_loss(self, model, inputs, *args, **kwargs):
            seen.extend(map(tuple, inputs["input_ids"].chunk(2)[0].tolist()))
            return super().compute_loss(model, inputs, *args, **kwargs)

    weights = np.where(np.arange(48) < 12, 0.0, 1.0)
    trainer = made(resampling_trainer(Fixed(weights), Watching), rows, epochs=3)
    trainer.train()
    drawn = Counter(seen)
    ids = [tuple(row) for row in trainer.train_dataset["chosen_ids"]]
    gone = set(ids[:12]) - set(ids[12:])
    assert sum(drawn.values()) == 3 * 48
    assert not gone & set(drawn)
    assert set(drawn) == set(ids[12:])


def test_weights_are_of_the_pairs_that_the_trainer_keeps(rows):
    long = rows.add_item({"chosen": "w1 " * 2000, "rejected": "w2"})
    callback = trl_callback(embed=lambda model, ids: np.array([[len(row), row[0]] for row in ids]))
    assert callback.weights is None
    trainer = made(weighted_trainer(callback), long, epochs=2)
    trainer.train()
    assert callback.weights.shape == (48,) == (len(trainer.train_dataset),)
    assert callback.head.epochs == 2
    assert callback.last.moved is not None


@pytest.mark.slow
@pytest.mark.parametrize("way", [weighted_trainer, resampling_trainer])
def test_wrong_labels_are_found_while_trl_trains(way):
    rows, wrong = generated(800, seed=0)
    callback = trl_callback()
    trainer = made(way(callback), rows)
    trainer.train()
    out = callback.weights < 0.5
    assert out[wrong].mean() > 0.8
    assert out[~wrong].mean() < 0.05
    # For another trainer: the pairs that are believed, or the weights as a column.
    kept = trainer.train_dataset.select(np.flatnonzero(~out))
    assert len(kept) == 800 - out.sum()
    made(RewardTrainer, kept, epochs=1).train()
    weighed = trainer.train_dataset.add_column("weight", callback.weights)
    again = made(weighted_trainer(), weighed, epochs=1)
    np.testing.assert_allclose(again._weights(), callback.weights / callback.weights.mean(), rtol=1e-5)
