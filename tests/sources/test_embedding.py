"""Texts as shards: the features of `load_pairs`, whole or absent, and going on where it was interrupted."""

import json

import numpy as np
import pytest

from robust_rlhf_jax import fit_reward
from robust_rlhf_jax.io import Columns, RewardHead, load_pairs
from robust_rlhf_jax.io.featurisers import HashedNgrams, LocalModel, local_model
from robust_rlhf_jax.sources import embedded, embedding, open_pairs
from robust_rlhf_jax.sources.unfinished_shards import FACTS
from robust_rlhf_jax.unfinished import unfinished_name

pytest.importorskip("sklearn")
WORDS = ("alpha", "beta", "gamma", "delta", "- epsilon", "zeta?", "eta 7")
N = 60


class Counted:
    """Lengths of texts; stops after so many calls."""

    LEARNS = False
    names = ("length", "words")

    def __init__(self, most=10**9):
        self.calls, self.most = 0, most

    def fit(self, texts):
        raise AssertionError("there is nothing to learn")

    def transform(self, prompts, responses):
        self.calls += 1
        if self.calls > self.most:
            raise KeyboardInterrupt
        return np.array([[len(text), len(text.split())] for text in responses], np.float64)

    def settings(self):
        return {"featuriser": "counted"}

    def arrays(self):
        return {}


@pytest.fixture
def file(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "pairs.jsonl"
    rows = [
        {side: " ".join(rng.choice(WORDS, rng.integers(1, 9))) for side in ("prompt", "chosen", "rejected")}
        | {"rater": f"r{i % 12}"}
        for i in range(N)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def differences(source):
    return np.concatenate(list(source.blocks(7)))


@pytest.mark.parametrize("featuriser", ["hashed", "format"])
def test_features_are_those_of_the_whole_file(file, tmp_path, featuriser):
    source = embedded(file, tmp_path / "shards", featuriser=featuriser, rows_per_shard=13)
    pairs = load_pairs(file, featuriser=featuriser)
    np.testing.assert_allclose(differences(source), pairs.differences(), atol=1e-5)
    np.testing.assert_array_equal(source.raters, pairs.raters)
    assert len(source.sides[0]) == 5
    np.testing.assert_array_equal(np.load(tmp_path / "shards" / "rows.npy"), np.arange(N))


@pytest.mark.slow
def test_a_head_fitted_to_shards_scores_texts(file, tmp_path):
    source = embedded(file, tmp_path / "shards", featuriser="hashed")
    model = fit_reward(source, 0.1)
    made = RewardHead.load(tmp_path / "shards" / "featuriser.safetensors")
    pairs = load_pairs(file)
    head = RewardHead(made.names, np.asarray(model.theta), made.featuriser)
    scores = head.reward_texts(pairs.texts.prompt, pairs.texts.chosen)
    np.testing.assert_allclose(scores, pairs.chosen @ np.asarray(model.theta), atol=1e-4)


def test_an_interrupted_embedding_goes_on(file, tmp_path):
    folder, stopped = tmp_path / "shards", Counted(most=5)
    with pytest.raises(KeyboardInterrupt):
        embedded(file, folder, featuriser=stopped, rows_per_shard=10)
    assert not folder.exists()
    assert len(list((tmp_path / "shards.partial").glob("chosen-*.npy"))) == 2
    with pytest.raises(ValueError, match="unfinished embedding of another file or with other settings"):
        embedded(file, folder, featuriser=Counted(), rows_per_shard=20)
    (tmp_path / "shards.partial" / "rejected-00000.npy").write_bytes(b"damaged")
    again = Counted()
    source = embedded(file, folder, featuriser=again, rows_per_shard=10)
    assert again.calls == 2 * 5  # of six shards one was whole
    assert not (tmp_path / "shards.partial").exists()
    fresh = embedded(file, tmp_path / "other", featuriser=Counted(), rows_per_shard=10)
    np.testing.assert_array_equal(differences(source), differences(fresh))


def stopped_after_a_shard(file, folder, **options):
    """What is in the `.partial` folder then."""
    with pytest.raises(KeyboardInterrupt):
        embedded(file, folder, featuriser=Counted(most=3), rows_per_shard=10, **options)
    return left_in(folder)


def left_in(folder):
    return {path.name: path.read_bytes() for path in folder.with_name("shards.partial").iterdir()}


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])  # in batches, and whole
@pytest.mark.parametrize(
    "options", [{"columns": Columns(chosen="rejected", rejected="chosen")}, {"encoding": "latin-1"}]
)
def test_an_embedding_of_other_columns_is_not_gone_on_with(file, tmp_path, suffix, options):
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    if suffix == ".json":
        file = file.with_suffix(suffix)
        file.write_text(json.dumps(rows))
    left = stopped_after_a_shard(file, tmp_path / "shards")
    with pytest.raises(ValueError, match="unfinished embedding of another file or with other settings"):
        embedded(file, tmp_path / "shards", featuriser=Counted(), rows_per_shard=10, **options)
    assert left_in(tmp_path / "shards") == left
    assert embedded(file, tmp_path / "shards", featuriser=Counted(), rows_per_shard=10).n_pairs == N


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
@pytest.mark.parametrize(("old", "new"), [('"winner": "a"', '"winner": "b"'), ("alpha", "delta")])
def test_a_label_or_a_text_changed_anywhere_is_seen(tmp_path, suffix, old, new):
    rows = [{"response_a": f"alpha {i}", "response_b": f"beta {i} " * 5, "winner": "a"} for i in range(2_000)]
    path = tmp_path / f"pairs{suffix}"
    text = json.dumps(rows) if suffix == ".json" else "\n".join(map(json.dumps, rows))
    path.write_text(text)
    before = embedding._fingerprint(path)
    left = stopped_after_a_shard(path, tmp_path / "shards")
    for at in range(10_000, 20_000, 500):  # between the samples of a fingerprint
        place = text.index(old, at)
        path.write_text(text[:place] + new + text[place + len(new) :])
        if embedding._fingerprint(path) == before:
            break
    assert embedding._fingerprint(path) == before
    with pytest.raises(ValueError, match="unfinished embedding of another file or with other settings"):
        embedded(path, tmp_path / "shards", featuriser=Counted(), rows_per_shard=10)
    assert left_in(tmp_path / "shards") == left


@pytest.mark.parametrize(("dtype", "stored"), [("float16", np.float16), (None, np.float32)])
def test_types(file, tmp_path, dtype, stored):
    embedded(file, tmp_path / "shards", featuriser=Counted(), dtype=dtype)
    assert np.load(tmp_path / "shards" / "chosen-00000.npy").dtype == stored


def test_a_folder_whose_facts_were_not_yet_written_is_ours(file, tmp_path):
    """All that a process leaves which is killed while it writes them."""
    (tmp_path / "shards.partial").mkdir()
    (tmp_path / "shards.partial" / unfinished_name(FACTS)).write_text("{")
    assert embedded(file, tmp_path / "shards", featuriser=Counted()).n_pairs == N
    assert not any(path.name.startswith(".") for path in (tmp_path / "shards").iterdir())


@pytest.mark.parametrize("name", ["notes.txt", "chosen-00000.npy"])
def test_a_folder_of_somebody_else_stays(file, tmp_path, name):
    (tmp_path / "shards.partial").mkdir()
    (tmp_path / "shards.partial" / name).write_text("mine")
    for made in (Broken(np.nan), Counted()):
        with pytest.raises(ValueError, match=r"shards.partial is there already, and holds no unfinished emb"):
            embedded(file, tmp_path / "shards", featuriser=made)
        assert left_in(tmp_path / "shards") == {name: b"mine"}


def test_two_at_once_do_not_share_a_folder(file, tmp_path):
    class Other(Counted):
        def transform(self, prompt, answer):
            with pytest.raises(ValueError, match=r"Another process writes to .*shards\.partial: wait for it"):
                embedded(file, tmp_path / "shards", featuriser=Counted())
            return super().transform(prompt, answer)

    embedded(file, tmp_path / "shards", featuriser=Other())
    assert [path.name for path in tmp_path.glob("shards*")] == ["shards"]


def test_a_file_with_the_name_of_the_unfinished_folder_is_refused(file, tmp_path):
    (tmp_path / "shards.partial").write_text("mine")
    with pytest.raises(ValueError, match=r"shards.partial is there already"):
        embedded(file, tmp_path / "shards", featuriser=Counted())
    assert (tmp_path / "shards.partial").read_text() == "mine"


@pytest.mark.parametrize("featuriser", ["hashed", "format"])
def test_a_file_put_into_the_unfinished_folder_stays(file, tmp_path, monkeypatch, featuriser):
    def fail(*_):
        (tmp_path / "shards.partial" / "notes.txt").write_text("mine")
        raise ValueError("no more")

    monkeypatch.setattr(embedding, "_write_missing", fail)
    with pytest.raises(ValueError, match="no more"):
        embedded(file, tmp_path / "shards", featuriser=featuriser)
    assert left_in(tmp_path / "shards") == {"notes.txt": b"mine"}


class OfModel(Counted):
    """As the model in a folder."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def settings(self):
        return {"featuriser": "model", "path": str(self.path)}


def test_features_of_a_model_are_in_half_precision_and_those_of_another_model_are_not_gone_on_with(
    file, tmp_path
):
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    stopped = OfModel(model)
    stopped.most = 3
    with pytest.raises(KeyboardInterrupt):
        embedded(file, tmp_path / "shards", featuriser=stopped, rows_per_shard=10)
    assert np.load(tmp_path / "shards.partial" / "chosen-00000.npy").dtype == np.float16
    (model / "config.json").write_text("{ }")
    with pytest.raises(ValueError, match="of another file or with other settings"):
        embedded(file, tmp_path / "shards", featuriser=OfModel(model), rows_per_shard=10)


class Broken(Counted):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def transform(self, prompts, responses):
        found = super().transform(prompts, responses)
        found[min(3, len(found) - 1)] = self.value
        return found


def test_bad_features_and_files_leave_nothing(file, tmp_path):
    folder = tmp_path / "shards"
    with pytest.raises(ValueError, match="row 4: the chosen text has a feature that is not finite"):
        embedded(file, folder, featuriser=Broken(np.nan))
    with pytest.raises(ValueError, match="The feature 70000 is too large for float16"):
        embedded(file, folder, featuriser=Broken(70_000), dtype="float16")
    file.write_text(file.read_text() + "\n{}")
    with pytest.raises(ValueError, match="row 61, column"):
        embedded(file, folder, featuriser="format")
    with pytest.raises(ValueError, match="is there already"):
        embedded(file, tmp_path, featuriser="format")
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.jsonl"]


class Unfinished:
    names = ("a",)

    def fit(self, texts):
        raise AssertionError("this is work")

    transform = fit


@pytest.mark.parametrize(
    ("featuriser", "says"),
    [
        (Unfinished(), "featuriser is without settings and arrays: give"),
        (Counted, "featuriser is a class, Counted"),
    ],
)
def test_what_is_no_featuriser_is_refused_before_any_work(tmp_path, featuriser, says):
    with pytest.raises(ValueError, match=says):
        embedded(tmp_path / "is not read", tmp_path / "shards", featuriser=featuriser)
    assert not list(tmp_path.iterdir())


class OwnHashed(HashedNgrams):
    """Another one than `hashed`, of whose settings a file would make that one."""

    def transform(self, prompts, responses):
        return 2 * super().transform(prompts, responses)


@pytest.mark.parametrize("featuriser", [Counted(), OwnHashed()])
def test_of_an_own_featuriser_the_names_are_kept(file, tmp_path, featuriser):
    embedded(file, tmp_path / "shards", featuriser=featuriser)
    made = RewardHead.load(tmp_path / "shards" / "featuriser.safetensors")
    assert made.names == tuple(featuriser.names)
    assert made.featuriser is None


def test_a_model_is_found_from_another_folder(file, tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    lengths = np.vectorize(len, otypes=[np.float32])
    monkeypatch.setattr(local_model, "_embedder", lambda path: lambda texts: lengths(texts)[:, None])
    monkeypatch.chdir(tmp_path)
    given = LocalModel("model")
    embedded(file, "shards", featuriser=given)
    monkeypatch.chdir("/")
    made = RewardHead.load(tmp_path / "shards" / "featuriser.safetensors").featuriser
    assert made.path == tmp_path / "model"
    assert str(given.path) == "model"


def test_a_file_of_numbers_has_no_texts(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("chosen_price,rejected_price\n1,2\n3,4\n")
    with pytest.raises(ValueError, match="texts"):
        embedded(path, tmp_path / "shards")


def test_what_was_embedded_opens_as_a_folder(file, tmp_path):
    embedded(file, tmp_path / "shards", featuriser="format", rows_per_shard=25)
    assert open_pairs(tmp_path / "shards").n_pairs == N
