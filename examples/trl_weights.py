"""Weights of pairs in TRL's RewardTrainer, refitted after each epoch: `python examples/trl_weights.py --way weights`.

    pip install 'robust-rlhf-jax[embed,trl]'

A tiny model with random weights learns on a CPU from generated pairs, of which a twelfth, the surest, is labelled the
wrong way round; nothing is downloaded. `--way weights` weighs the loss, `--way draws` draws pairs by their weights. The
script prints how many pairs are left out, how many of them were labelled wrongly, and how often the model is right on
new pairs, beside the same training without weights. docs/heads.md explains it.
"""

import argparse
import tempfile

import numpy as np
from trl_margin import tiny_model

WORDS, LENGTH, SHARE = 12, 6, 12
NAMES = [f"w{i}" for i in range(WORDS)]
VALUES = 2.0 * np.random.default_rng(7).normal(size=WORDS)


def generated(n: int, seed: int, corrupt: bool = True):
    """(`datasets.Dataset` of n pairs of words, better the more their words are worth; which are labelled wrongly)."""
    import datasets

    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, WORDS, size=(2, n, LENGTH))
    margins = VALUES[first].sum(1) - VALUES[second].sum(1)
    wins, wrong = margins + rng.logistic(size=n) > 0, np.zeros(n, bool)
    if corrupt:
        wrong[np.argsort(-np.abs(margins))[: n // SHARE]] = True
    wins = np.where(wrong, margins < 0, wins)[:, None]
    sides = {"chosen": np.where(wins, first, second), "rejected": np.where(wins, second, first)}
    texts = {side: [" ".join(NAMES[word] for word in row) for row in rows] for side, rows in sides.items()}
    return datasets.Dataset.from_dict(texts), wrong


def made(trainer: type, rows, epochs: int = 4):
    """A trainer of that class for a tiny model, not yet trained."""
    import datasets
    import torch
    from trl import RewardConfig

    datasets.disable_progress_bars()
    torch.manual_seed(0)
    model, tokenizer = tiny_model(NAMES)
    options = RewardConfig(
        output_dir=tempfile.gettempdir(), num_train_epochs=epochs, per_device_train_batch_size=16, learning_rate=1e-2,
        report_to=[], use_cpu=True, save_strategy="no", logging_strategy="no", seed=0, bf16=False, disable_tqdm=True,
    )  # fmt: skip
    return trainer(model=model, args=options, train_dataset=rows, processing_class=tokenizer)


def accuracy(trainer, n: int = 1000) -> float:
    """How often the model is right on new honest pairs."""
    rows, _ = generated(n, seed=1, corrupt=False)
    return trainer.evaluate(rows)["eval_accuracy"]


def main() -> None:
    from trl import RewardTrainer

    from robust_rlhf_jax.heads import resampling_trainer, trl_callback, weighted_trainer

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--way", choices=("weights", "draws"), default="weights")
    parser.add_argument("--pairs", type=int, default=800)
    given = parser.parse_args()
    rows, wrong = generated(given.pairs, seed=0)
    callback = trl_callback()
    way = {"weights": weighted_trainer, "draws": resampling_trainer}[given.way]
    plain, trainer = made(RewardTrainer, rows), made(way(callback), rows)
    plain.train()
    trainer.train()
    out = callback.weights < 0.5
    print(callback.last.message)
    print(f"left out: {out[wrong].mean():.1%} of the wrong labels, {out[~wrong].mean():.1%} of the others")
    print(f"{accuracy(plain):.1%} of new pairs right without weights, {accuracy(trainer):.1%} with them")


if __name__ == "__main__":
    main()
