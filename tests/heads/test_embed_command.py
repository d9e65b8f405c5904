"""`robust-rlhf embed`: from a file of texts to shards, and on to a reward head of texts."""

import json

import numpy as np
import pytest

from robust_rlhf_jax.heads.command import fit_command
from robust_rlhf_jax.heads.embed_command import embed_command
from robust_rlhf_jax.io import RewardHead


@pytest.mark.slow
def test_a_head_of_texts_from_shards(tmp_path, capsys):
    rng, path = np.random.default_rng(0), tmp_path / "pairs.jsonl"
    words = ("good", "bad", "kettle", "chair?")
    rows = [{side: " ".join(rng.choice(words, 6)) for side in ("chosen", "rejected")} for _ in range(80)]
    path.write_text("\n".join(map(json.dumps, rows)))
    embed_command(path, tmp_path / "shards", quiet=True, featuriser="format", rows_per_shard=30)
    assert "Wrote 80 pairs of 10 features in 3 shards" in " ".join(capsys.readouterr().out.split())
    model = fit_command(tmp_path / "shards", 0.1, out=tmp_path / "fit", quiet=True)
    head = RewardHead.load(tmp_path / "fit" / "reward_head.safetensors")
    assert head.names[:2] == ("log_words", "log_lines")
    np.testing.assert_allclose(head.theta, model.theta)
    assert head.reward_texts([""], ["a chair?"]).shape == (1,)


def test_a_stopped_command_says_how_to_go_on(tmp_path, monkeypatch):
    path = tmp_path / "pairs.csv"
    path.write_text("chosen,rejected\n" + "a b,c\n" * 9)

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("robust_rlhf_jax.sources.unfinished_shards.UnfinishedShards.save", stop)
    with pytest.raises(KeyboardInterrupt, match=r"goes on with the first shard .*shards.partial"):
        embed_command(path, tmp_path / "shards", quiet=True, featuriser="format")
    monkeypatch.undo()
    assert embed_command(path, tmp_path / "shards", quiet=True, featuriser="format").n_pairs == 9


def test_no_texts_end_in_one_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        embed_command(tmp_path / "pairs.jsonl", tmp_path / "shards", quiet=True)


def test_rows_that_are_left_out_are_counted(tmp_path, capsys):
    path = tmp_path / "pairs.csv"
    path.write_text("response_a,response_b,preference\n" + "a b,c,A\nb,c d,tie\n" * 9)
    embed_command(path, tmp_path / "shards", quiet=True, featuriser="format")
    said = " ".join(capsys.readouterr().out.split())
    assert "Wrote 9 pairs of" in said
    assert said.endswith("9 of 18 rows are left out: ties, pairs of weight 0, unusable rows.")
