"""From an audit's export to TRL's RewardTrainer: the `margin` column arrives in the loss.

    pip install 'robust-rlhf-jax[cli,trl]'
    python examples/trl_margin.py scored.jsonl

The file is what `robust-rlhf audit FILE --export scored.jsonl` wrote, as in docs/tutorials/audit.md. A tiny model with
random weights is trained for a few steps on a CPU; nothing is downloaded. All rows are taken, since those that the
audit doubts have a margin. The script prints the margins that the trainer's batches carried, and the loss with and
without them.
"""

import argparse
import tempfile
from pathlib import Path

KEPT = ("prompt", "chosen", "rejected", "margin")


def as_trl_set(path: Path, everything: bool = False):
    """The export as a `datasets.Dataset` of TRL's columns; without the rows to drop unless `everything`."""
    import datasets

    rows = datasets.Dataset.from_json(str(path))
    rows = rows if everything or "keep" not in rows.column_names else rows.filter(lambda row: row["keep"])
    return rows.remove_columns([name for name in rows.column_names if name not in KEPT])


def tiny_model(words: list[str]):
    """(model, tokenizer): one layer of 16 units with random weights, a vocabulary of the words given."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForSequenceClassification, PreTrainedTokenizerFast

    vocabulary = {"<pad>": 0, "<eos>": 1, "<unk>": 2}
    for word in sorted(set(words)):
        vocabulary.setdefault(word, len(vocabulary))
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )
    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, num_labels=1, pad_token_id=0, eos_token_id=1, bos_token_id=1,
    )  # fmt: skip
    return LlamaForSequenceClassification(config), tokenizer


def train(rows, steps: int = 4) -> dict:
    """Train for a few steps; what the batches carried and what the trainer logged."""
    import torch
    from trl import RewardConfig, RewardTrainer

    torch.manual_seed(0)
    words = [w for name in KEPT[:3] for text in rows[name] for w in text.replace(".", " . ").split()]
    model, tokenizer = tiny_model(words)
    seen = []

    class Watching(RewardTrainer):
        def compute_loss(self, model, inputs, *args, **kwargs):
            seen.append(inputs["margin"].detach().clone() if "margin" in inputs else None)
            return super().compute_loss(model, inputs, *args, **kwargs)

    with tempfile.TemporaryDirectory() as folder:
        options = RewardConfig(
            output_dir=folder, max_steps=steps, per_device_train_batch_size=8, logging_steps=1, report_to=[],
            use_cpu=True, save_strategy="no", seed=0, bf16=False, gradient_checkpointing=False,
        )  # fmt: skip
        trainer = Watching(model=model, args=options, train_dataset=rows, processing_class=tokenizer)
        trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return {"margins": seen, "losses": losses}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path)
    given = parser.parse_args()
    rows = as_trl_set(given.path, everything=True)
    if "margin" not in rows.column_names:
        parser.error(
            f"{given.path} has no column margin: give the file that --export wrote, not that of --clean."
        )
    with_margin = train(rows)
    carried = [round(float(m), 3) for batch in with_margin["margins"] if batch is not None for m in batch]
    print(f"{len(rows)} pairs; margins in the batches: {carried}")
    without = train(rows.remove_columns("margin"))
    print(f"loss with margin {with_margin['losses']}, without {without['losses']}")


if __name__ == "__main__":
    main()
