"""Embeddings by models in local folders: tiny ones with random weights, made here. Needs the extra `embed`."""

import json

import numpy as np
import pytest

from robust_rlhf_jax.io import load_pairs
from robust_rlhf_jax.io.featurisers.local_model import BATCH, LocalModel

WORDS = ("alpha", "beta", "gamma", "delta")
N = BATCH + 3


def bert(folder):
    """A tiny BERT whose words are `WORDS`."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    vocabulary = folder.with_suffix(".txt")
    vocabulary.write_text("\n".join(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS)))
    tokenizer = transformers.BertTokenizerFast(str(vocabulary), model_max_length=16)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=16,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def sentence_model(folder):
    models = pytest.importorskip("sentence_transformers.models")
    sentence = pytest.importorskip("sentence_transformers")
    word = models.Transformer(str(bert(folder.with_name("word"))), max_seq_length=16)
    size = getattr(word, "get_embedding_dimension", None) or word.get_word_embedding_dimension
    sentence.SentenceTransformer(modules=[word, models.Pooling(size())], device="cpu").save(str(folder))
    return folder


@pytest.fixture(params=[bert, sentence_model], ids=["transformers", "sentence_transformers"])
def model(request, tmp_path):
    return request.param(tmp_path / "model")


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "pairs.jsonl"
    chance = np.random.default_rng(0)
    rows = [{side: " ".join(chance.choice(WORDS, chance.integers(1, 9))) for side in ("prompt", "chosen", "rejected")}
            for _ in range(N)]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_a_model_by_its_path_makes_the_features(model, texts):
    pairs = load_pairs(texts, featuriser=str(model))
    assert pairs.names == tuple(f"e{i}" for i in range(8))
    assert pairs.chosen.shape == pairs.rejected.shape == (N, 8)
    assert np.isfinite(pairs.chosen).all()
    assert np.ptp(pairs.chosen, axis=0).min() > 0
    # Alone, without the padding of a batch.
    alone = LocalModel(model).transform([pairs.texts.prompt[2]], [pairs.texts.chosen[2]])
    np.testing.assert_allclose(alone[0], pairs.chosen[2], rtol=1e-4, atol=1e-5)


def test_the_mean_is_over_words_that_are_there(tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = bert(tmp_path / "model")
    text = "alpha\n\nbeta gamma"
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    with torch.no_grad():
        states = transformers.AutoModel.from_pretrained(folder).eval()(**tokens).last_hidden_state[0]
    found = LocalModel(folder).transform(["alpha", ""], ["beta gamma", "delta " * 40])
    np.testing.assert_allclose(found[0], states.numpy().mean(0), rtol=1e-4, atol=1e-5)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"neither config\.json nor modules\.json"):
        LocalModel(tmp_path)


def test_a_model_without_its_packages_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ImportError, match=r"robust-rlhf-jax\[embed\]"):
        LocalModel(tmp_path).transform([""], ["a"])
