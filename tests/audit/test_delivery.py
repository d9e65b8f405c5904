"""What an audit writes: files in the format they came in, read back by other libraries; a reward head; thresholds."""

import json

import numpy as np
import pytest
from slow_parameters import slow
from text_pairs import few_buckets, made_up_fit

from robust_rlhf_jax.audit.config import Writing
from robust_rlhf_jax.audit.delivery import deliver, reward_head
from robust_rlhf_jax.audit.fail_if import ThresholdCrossed
from robust_rlhf_jax.audit.findings import find
from robust_rlhf_jax.audit.record import schema
from robust_rlhf_jax.io import Columns, RewardHead, export, load_pairs
from robust_rlhf_jax.spreadsheets import without_formula

pd = pytest.importorskip("pandas")
datasets = pytest.importorskip("datasets")

N, WRONG = 40, [3, 8]
ADDED = ["suspicion", "keep", "suggested_label", "weight", "margin"]
COLUMNS = {
    "id": [f"00{i}" for i in range(N)],
    "prompt": [f"Question {i}?" for i in range(N)],
    "chosen": [f"A good answer with words {i} and {i * i}" for i in range(N)],
    "rejected": [f"=HYPERLINK({i}) <script>alert(1)</script> \x1b[31mred" for i in range(N)],
}


def write(folder, form, columns=COLUMNS):
    frame = pd.DataFrame(columns)
    path = folder / f"pairs.{form}"
    if form == "csv":
        frame.to_csv(path, index=False)
    elif form == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif form == "parquet":
        frame.to_parquet(path)
    else:
        datasets.Dataset.from_pandas(frame).save_to_disk(str(path))
    return path


def read_back(path, form):
    """By the libraries that trainers use."""
    if form == "arrow":
        return datasets.load_from_disk(str(path)).to_pandas()
    if form == "parquet":
        return pd.read_parquet(path)
    if form == "csv":
        return pd.read_csv(path, dtype={"id": str})
    return pd.read_json(path, lines=True, dtype={"id": str}, precise_float=True)


@pytest.fixture(params=["csv", slow("jsonl"), "parquet", slow("arrow")])
def form(request):
    return request.param


def findings_of(path, wrong=tuple(WRONG), featuriser=None):
    pairs = load_pairs(path, featuriser=few_buckets() if featuriser is None else featuriser)
    return find(pairs, made_up_fit(pairs, wrong))


def test_an_export_is_the_file_with_columns_more(tmp_path, form):
    path = write(tmp_path, form)
    out = tmp_path / f"out.{form}"
    deliver(findings_of(path), Writing(export=out))
    back = read_back(out, form)
    assert list(back.columns) == [*COLUMNS, *ADDED]
    assert back["id"].tolist() == COLUMNS["id"]
    assert back["chosen"].tolist() == COLUMNS["chosen"]
    assert back["rejected"].tolist() == COLUMNS["rejected"]
    assert np.flatnonzero(~back["keep"].astype(bool)).tolist() == WRONG
    assert back["suggested_label"][3] == "rejected"
    np.testing.assert_allclose(back["margin"][WRONG], -3.0)
    assert (back["margin"].drop(WRONG) == 0).all()
    assert (back["weight"][WRONG] == 0).all()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([out.name, path.name])


def test_a_cleaned_copy_has_the_kept_rows_as_they_were(tmp_path, form):
    path = write(tmp_path, form)
    deliver(findings_of(path), Writing(clean=tmp_path / f"clean.{form}"))
    back = read_back(tmp_path / f"clean.{form}", form)
    assert list(back.columns) == list(COLUMNS)
    assert back["id"].tolist() == [i for n, i in enumerate(COLUMNS["id"]) if n not in WRONG]


def said(role, texts):
    return [[{"role": role, "content": text}] for text in texts]


NUMBERS = np.random.default_rng(0).standard_normal((2, N, 3)).round(3)
# What the columns of a kind are, apart from texts.
KINDS = {
    "embeddings": {f"{side}_embedding": NUMBERS[i].tolist() for i, side in enumerate(("chosen", "rejected"))},
    "messages": {
        "prompt": said("user", COLUMNS["prompt"]),
        "chosen": said("assistant", COLUMNS["chosen"]),
        "rejected": said("assistant", COLUMNS["rejected"]),
    },
    "scores": {
        "prompt": COLUMNS["prompt"],
        **{f"scores_{side}": NUMBERS[i, :, 0].tolist() for i, side in enumerate(("chosen", "rejected"))},
    },
    "numbers": {f"{side}_length": NUMBERS[i, :, 1].tolist() for i, side in enumerate(("chosen", "rejected"))},
}


def plain(cell):
    """A cell without the arrays that a library makes of lists."""
    return json.loads(json.dumps(cell, default=lambda array: array.tolist()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["jsonl", "parquet", "arrow"])
def test_whatever_the_columns_hold_comes_back(tmp_path, form, kind):
    """Written by pandas and datasets, exported, read back by them: the cells as they were, five columns more."""
    path, out = write(tmp_path, form, KINDS[kind]), tmp_path / f"out.{form}"
    deliver(findings_of(path), Writing(export=out))
    back = read_back(out, form)
    assert list(back.columns) == [*KINDS[kind], *ADDED]
    for name, cells in KINDS[kind].items():
        assert [plain(cell) for cell in back[name]] == cells, name
    assert np.flatnonzero(~back["keep"].astype(bool)).tolist() == WRONG
    assert load_pairs(out).n_pairs == N


def test_the_export_is_read_by_the_loader_of_trainers(tmp_path):
    path = write(tmp_path, "jsonl")
    deliver(findings_of(path), Writing(export=tmp_path / "out.jsonl"))
    loaded = datasets.load_dataset(
        "json", data_files=str(tmp_path / "out.jsonl"), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert loaded.features["margin"].dtype == "float64"
    assert loaded["margin"][3] == -3.0


def test_a_second_audit_of_an_export_replaces_its_columns(tmp_path, form):
    path = write(tmp_path, form)
    deliver(findings_of(path), Writing(export=tmp_path / f"one.{form}"))
    deliver(findings_of(tmp_path / f"one.{form}", ()), Writing(export=tmp_path / f"two.{form}"))
    back = read_back(tmp_path / f"two.{form}", form)
    assert list(back.columns) == [*COLUMNS, *ADDED]
    assert back["keep"].astype(bool).all()


@pytest.fixture(params=[np.float32, np.float16, ">f8"], ids=str)
def arrays(request, tmp_path):
    """Two `.npy` files whose names tell no partner, of some precision and byte order."""
    values = np.random.default_rng(0).standard_normal((2, N, 5)).astype(request.param)
    paths = tmp_path / "a.npy", tmp_path / "b.npy"
    for path, side in zip(paths, values, strict=True):
        np.save(path, side)
    pairs = load_pairs(paths[0], embeddings=paths)
    return values, find(pairs, made_up_fit(pairs, tuple(WRONG)))


def test_two_arrays_are_exported_as_a_folder_of_arrays(tmp_path, arrays):
    values, found = arrays
    out = tmp_path / "out"
    deliver(found, Writing(export=out, clean=tmp_path / "clean"))
    for name, side in zip(("chosen", "rejected"), values, strict=True):
        back, kept = (np.load(folder / f"{name}.npy") for folder in (out, tmp_path / "clean"))
        np.testing.assert_array_equal(back, side, strict=True)
        np.testing.assert_array_equal(kept, np.delete(side, WRONG, axis=0), strict=True)
    assert sorted(p.stem for p in out.iterdir()) == sorted(["chosen", "rejected", *ADDED])
    assert sorted(p.stem for p in (tmp_path / "clean").iterdir()) == ["chosen", "rejected"]
    assert np.flatnonzero(~np.load(out / "keep.npy")).tolist() == WRONG
    np.testing.assert_allclose(np.load(out / "margin.npy")[WRONG], -3.0)
    assert np.load(out / "suggested_label.npy")[3] == "rejected"
    assert load_pairs(out / "chosen.npy").n_pairs == N


def test_skipped_rows_of_arrays_stay_out_of_the_export(tmp_path):
    values = np.random.default_rng(0).standard_normal((2, N, 5))
    values[1, 7, 2] = np.nan
    for name, side in zip(("chosen", "rejected"), values, strict=True):
        np.save(tmp_path / f"{name}.npy", side)
    pairs = load_pairs(tmp_path / "chosen.npy", skip_bad=1)
    deliver(find(pairs, made_up_fit(pairs, ())), Writing(export=tmp_path / "out"))
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "rejected.npy"), np.delete(values[1], 7, axis=0))
    assert len(np.load(tmp_path / "out" / "weight.npy")) == N - 1


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("out.npy", "give a name without a suffix"),
        ("taken", "is a file that exists"),
        ("", "is a folder that exists"),
    ],
)
def test_a_folder_of_arrays_needs_a_free_name(tmp_path, arrays, name, sentence):
    (tmp_path / "taken").write_text("")
    with pytest.raises(ValueError, match=sentence):
        Writing(export=tmp_path / name).check(arrays[1].pairs, 0.0)


@pytest.mark.parametrize(
    ("writing", "sentence"),
    [
        ({"export": "out.csv"}, "so give a name that ends in .jsonl"),
        ({"clean": "pairs.jsonl"}, "is the file itself"),
        ({"export": "missing/out.jsonl"}, "does not exist: make it first"),
        ({"head": "head.npz"}, "ends in .safetensors"),
        ({"fail_if": ("corrupt",)}, "write a name, > or <, and a share"),
    ],
)
def test_places_that_cannot_be_written_are_refused_first(tmp_path, writing, sentence):
    pairs = load_pairs(write(tmp_path, "jsonl"))
    given = {k: tmp_path / v if isinstance(v, str) else v for k, v in writing.items()}
    with pytest.raises(ValueError, match=sentence):
        Writing(**given).check(pairs, 0.0)


def test_thresholds_come_after_all_is_written(tmp_path):
    path = write(tmp_path, "jsonl")
    out = tmp_path / "out.jsonl"
    with pytest.raises(ThresholdCrossed, match=r"corrupt is 0\.05"):
        deliver(findings_of(path), Writing(export=out, fail_if=("corrupt>0.01", "tie>0")))
    assert out.exists()


def test_a_reward_head_scores_new_texts_as_it_did(tmp_path):
    pytest.importorskip("safetensors")
    found = findings_of(write(tmp_path, "jsonl"), featuriser="hashed")
    head = reward_head(found)
    head.save(tmp_path / "head.safetensors")
    again = RewardHead.load(tmp_path / "head.safetensors")
    texts = COLUMNS["prompt"], COLUMNS["chosen"]
    expected = found.pairs.chosen @ found.held_out.audit.robust.theta
    np.testing.assert_allclose(again.reward_texts(*texts), expected, rtol=1e-4, atol=1e-5)
    assert again.facts["kept"] == N - 2
    assert again.names == found.pairs.names
    (tmp_path / "no.safetensors").write_bytes(b"12345678")
    with pytest.raises(ValueError, match="is no reward head"):
        RewardHead.load(tmp_path / "no.safetensors")


def test_all_files_are_delivered_or_none(tmp_path, monkeypatch):
    found = findings_of(write(tmp_path, "jsonl"))
    names = {"export": "out.jsonl", "clean": "clean.jsonl", "head": "head.safetensors"}
    writing = Writing(**{option: tmp_path / name for option, name in names.items()})

    def full_disk(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(RewardHead, "write", full_disk)
    with pytest.raises(OSError, match="No space left"):
        deliver(found, writing)
    assert [p.name for p in tmp_path.iterdir()] == ["pairs.jsonl"]
    monkeypatch.undo()
    deliver(found, writing)
    assert {p.name for p in tmp_path.iterdir()} == {"pairs.jsonl", *names.values()}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            {"export": "a.jsonl", "clean": "a.jsonl"},
            "--export and --clean both name .*a.jsonl: give two names.",
        ),
        ({"head": "none/a.safetensors"}, "the folder .*none does not exist: make it first."),
        ({"head": "a.bin"}, "give a name that ends in .safetensors."),
    ],
)
def test_places_that_cannot_be_are_refused_before_any_work(tmp_path, names, message):
    pairs = load_pairs(write(tmp_path, "jsonl"))
    with pytest.raises(ValueError, match=message):
        Writing(**{option: tmp_path / name for option, name in names.items()}).check(pairs, 0.0)


def test_the_schema_is_one():
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.slow
def test_the_command_from_texts_to_a_cleaned_file(tmp_path, robust_rlhf):
    jsonschema = pytest.importorskip("jsonschema")
    path = write(tmp_path, "jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[5]["chosen"] = rows[5]["rejected"]
    rows.append({"prompt": "bad"})
    path.write_text("\n".join(map(json.dumps, rows)))
    names = {"export": "out.jsonl", "clean": "clean.jsonl", "head": "head.safetensors", "out": "audit"}
    options = [word for k, v in names.items() for word in (f"--{k}", tmp_path / v)]
    status, printed, errors = robust_rlhf(
        "audit", path, "--folds", 2, "--repeats", 1, "--skip-bad", 1, *options, "--fail-if", "identical>0"
    )
    assert status == 3, errors
    assert errors == "robust-rlhf: identical is 0.0250, and --fail-if says identical>0.\n"
    assert "1 unusable rows were skipped" in printed
    assert sorted(p.name for p in (tmp_path / "audit").iterdir()) == [
        "ask.csv", "audit.html", "audit.json", "suspects.csv", "suspicion.png"
    ]  # fmt: skip
    record = json.loads((tmp_path / "audit" / "audit.json").read_text())
    jsonschema.validate(record, schema())
    assert record["issues"]["identical"]["flagged"] == 1
    assert record["skipped_rows"] == [{"row": 41, "column": "chosen", "reason": "is missing"}] + [
        {"row": 41, "column": name, "reason": reason}
        for name, reason in (("rejected", "is missing"), ("id", "is missing"))
        if name == "rejected"
    ]
    assert len((tmp_path / "clean.jsonl").read_text().splitlines()) == record["summary"]["kept"]
    page = (tmp_path / "audit" / "audit.html").read_text()
    assert page.count("<script") == 2  # the packed pairs and the one script that the page's policy names
    assert "\x1b" not in page + printed


@pytest.mark.parametrize(
    ("cell", "safe"),
    [("=1+1", "'=1+1"), ("-1.5", "-1.5"), ("@x", "'@x"), ("-cmd", "'-cmd"), ("plain", "plain"), ("", "")],
)
def test_formulas_become_texts_in_suspects_and_numbers_stay(cell, safe):
    assert without_formula(cell) == safe


def test_a_column_of_the_file_is_not_replaced(tmp_path, form, capsys):
    mine = COLUMNS | {"weight": [2.0] * N, "margin": [0.3] * N}
    path, out = write(tmp_path, form, mine), tmp_path / f"out.{form}"
    deliver(findings_of(path), Writing(export=out))
    back = read_back(out, form)
    assert back["weight"].tolist() == mine["weight"]
    assert back["margin"].tolist() == mine["margin"]
    assert {"suspicion", "audit_weight", "audit_margin"} <= set(back.columns)
    said = "columns weight, margin of its own, so the audit's are called audit_weight, audit_margin."
    assert said in capsys.readouterr().out
    again = tmp_path / f"again.{form}"
    deliver(findings_of(out), Writing(export=again))
    third = read_back(again, form)
    assert third["margin"].tolist() == mine["margin"]
    assert set(third.columns) == set(back.columns)
    assert said in capsys.readouterr().out


def test_small_weights_are_not_rounded_away(tmp_path):
    small = COLUMNS | {"w": [1.234567e-07 * (1 + i) for i in range(N)]}
    path, out = write(tmp_path, "csv", small), tmp_path / "out.csv"
    pairs = load_pairs(path, featuriser="format", columns=Columns(weight="w"))
    deliver(find(pairs, made_up_fit(pairs)), Writing(export=out))
    back = read_back(out, "csv")
    back = back[back["keep"]]
    np.testing.assert_allclose(back["weight"], back["w"], rtol=1e-5)
    assert len(back) > N / 2


def test_what_cleaning_leaves_is_counted(tmp_path, capsys):
    path = write(tmp_path, "jsonl")
    found = findings_of(path)
    deliver(found, Writing(clean=tmp_path / "clean.jsonl"))
    assert f"--clean: kept {int(found.verdicts.keep.sum())} of {N} pairs." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("ties", "said"), [(0, ""), (1, ", and left out 1 tie"), (2, ", and left out 2 ties")]
)
def test_ties_that_cleaning_leaves_out_are_counted(tmp_path, capsys, ties, said):
    path = write(tmp_path, "jsonl", COLUMNS | {"tie": [i < ties for i in range(N)]})
    found = findings_of(path, wrong=())
    deliver(found, Writing(clean=tmp_path / "clean.jsonl"))
    kept = int(found.verdicts.keep.sum())
    assert f"--clean: kept {kept} of {N} pairs{said}." in capsys.readouterr().out
    assert len(read_back(tmp_path / "clean.jsonl", "jsonl")) == kept <= N - ties


def test_one_column_of_the_file_is_not_taken_for_an_earlier_export(tmp_path):
    path, out = write(tmp_path, "csv", COLUMNS | {"suspicion": ["mine"] * N}), tmp_path / "out.csv"
    export(load_pairs(path, featuriser="format"), out, {"suspicion": [0.5] * N})
    back = read_back(out, "csv")
    assert back["suspicion"].tolist() == ["mine"] * N
    assert back["audit_suspicion"].tolist() == [0.5] * N
