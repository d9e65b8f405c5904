import csv
import json

import jax
import numpy as np
import pytest

from robust_rlhf_jax.audit import audit, plot
from robust_rlhf_jax.audit.command import FILES, audit_warnings, run_audit, worst_first
from robust_rlhf_jax.preferences import load_rail_choices, preferences_from_options, rail_people, save
from robust_rlhf_jax.rewards.registry import DEFAULT, ESTIMATORS

THETA = np.array([1.0, -0.5, 0.25])
# Against other people than those who rated; with trusted pairs, of which an audit has none.
ELSEWHERE = ("kldpo", "influence_pruning")
ROBUST = [name for name, entry in ESTIMATORS.items() if entry.robust and name != DEFAULT]


def make_data(n=400, seed=0, scale=1.0):
    """Options with heavy tails, so that flipped confident labels have leverage."""
    rng = np.random.default_rng(seed)
    options = rng.standard_t(4, size=(2, n, 3)) * scale
    chance = 1 / (1 + np.exp(-(options[1] - options[0]) @ THETA / scale))
    return preferences_from_options(*options, np.where(rng.uniform(size=n) < chance, 1.0, -1.0))


@pytest.fixture(scope="module")
def data():
    return make_data()


@pytest.fixture(scope="module")
def corrupted(data):
    return audit(jax.random.key(0), data, 0.1, folds=4, repeats=1, inject=0.1)


def write_table(path, data):
    x, labels = np.asarray(data.features)[:, :, 0], np.asarray(data.labels)
    best = (labels > 0).astype(int)
    rows = np.arange(len(x))
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([kind + name for kind in ("chosen_", "rejected_") for name in ("a", "b", "[c]")])
        writer.writerows(np.concatenate([x[rows, best], x[rows, 1 - best]], axis=1).tolist())
    return path


@pytest.mark.slow
def test_robust_fit_is_ahead_of_the_plain_fit_on_corrupted_labels(corrupted):
    assert corrupted.robust.accuracy > corrupted.plain.accuracy + 0.04
    assert corrupted.gain > 2 * corrupted.gain_error
    assert corrupted.precision > 0.6
    assert corrupted.precision == corrupted.recall  # as many flagged as injected
    assert corrupted.injected.sum() == corrupted.flagged.sum() == 40


@pytest.mark.slow
def test_injected_labels_are_flipped_and_nothing_else(data, corrupted):
    clean = np.asarray(data.labels)
    np.testing.assert_array_equal(corrupted.labels, np.where(corrupted.injected, -clean, clean))
    np.testing.assert_array_equal(corrupted.differences, data.differences())


@pytest.mark.slow
def test_flagged_pairs_are_the_most_suspicious(corrupted):
    assert corrupted.suspicion[corrupted.flagged].min() >= corrupted.suspicion[~corrupted.flagged].max()
    assert set(worst_first(corrupted)[:40]) == set(np.flatnonzero(corrupted.flagged))


@pytest.mark.slow
def test_without_injection_all_is_finite_and_nothing_is_lost(data):
    result = audit(jax.random.key(0), data, 0.1, folds=4, repeats=1)
    for name in ("suspicion", "gain", "gain_error"):
        assert np.isfinite(getattr(result, name)).all(), name
    for fit in (result.plain, result.robust):
        for name in ("accuracy", "accuracy_error", "log_loss", "theta", "margins"):
            assert np.isfinite(getattr(fit, name)).all(), name
    assert np.isnan([result.precision, result.recall, result.average_precision]).all()
    assert abs(result.gain) < 0.03
    assert not result.injected.any()
    assert result.rank == 3
    assert audit_warnings(result) == []
    np.testing.assert_allclose(result.plain.theta, THETA, atol=0.6)


@pytest.mark.slow
def test_without_epsilon_the_evidence_decides(data, corrupted):
    clean = audit(jax.random.key(0), data, folds=4, repeats=1)
    assert clean.epsilon == 0.0
    assert not clean.flagged.any()
    np.testing.assert_allclose(clean.robust.accuracy, clean.plain.accuracy, atol=0.005)
    np.testing.assert_allclose(clean.robust.log_loss, clean.plain.log_loss, atol=0.01)
    result = audit(jax.random.key(0), data, folds=4, repeats=1, inject=0.1)
    assert 0.05 < result.epsilon < 0.2
    assert result.flagged.sum() == int(result.epsilon * 400 + 1e-6)
    assert corrupted.epsilon == 0.1


@pytest.mark.slow
@pytest.mark.parametrize("value", [1e4, 1e6])
def test_one_bad_cell_in_the_rail_file_is_survived(value):
    x, labels = np.asarray(load_rail_choices().differences()).copy(), np.asarray(load_rail_choices().labels)
    clean = preferences_from_options(np.zeros_like(x), x, labels)
    x[17, 0] = value
    bad = preferences_from_options(np.zeros_like(x), x, labels)
    before, after = (
        audit(jax.random.key(0), data, folds=4, repeats=1, groups=rail_people()) for data in (clean, bad)
    )
    assert after.robust.accuracy > before.robust.accuracy - 0.01
    assert after.flagged[17]
    assert not before.flagged.any()


@pytest.mark.slow
def test_epsilon_zero_flags_nothing(data):
    result = audit(jax.random.key(0), data, 0.0, folds=4, repeats=1)
    assert not result.flagged.any()
    assert abs(result.gain) < 0.01


@pytest.mark.slow
def test_same_key_same_result(data, corrupted):
    again = audit(jax.random.key(0), data, 0.1, folds=4, repeats=1, inject=0.1)
    for a, b in zip(jax.tree.leaves(corrupted), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(a, b)
    other = audit(jax.random.key(1), data, 0.1, folds=4, repeats=1, inject=0.1)
    assert (other.suspicion != corrupted.suspicion).any()
    np.testing.assert_array_equal(
        other.injected, corrupted.injected
    )  # the worst labels are no matter of chance


@pytest.mark.slow
def test_units_and_the_order_of_options_play_no_part_in_the_injection(data, corrupted):
    x, labels = np.asarray(data.features)[:, :, 0] * np.array([1e4, 1.0, 1e-4]), np.asarray(data.labels)
    turned = preferences_from_options(x[:, 1], x[:, 0], -labels)
    result = audit(jax.random.key(0), turned, 0.1, folds=4, repeats=1, inject=0.1)
    assert (result.injected == corrupted.injected).mean() > 0.99
    np.testing.assert_allclose(result.robust.accuracy, corrupted.robust.accuracy, atol=0.02)
    np.testing.assert_allclose(result.plain.accuracy, corrupted.plain.accuracy, atol=0.02)


@pytest.mark.slow
def test_random_flips(data):
    result = audit(jax.random.key(0), data, 0.1, folds=4, repeats=1, inject=0.1, injection="flip_random")
    assert result.injected.sum() == 40
    assert min(result.plain.accuracy, result.robust.accuracy) > 0.65


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ROBUST)
def test_every_estimator_beats_the_plain_fit(data, estimator):
    """Ours by a margin; of the rivals some only know random flips, and some guard against something else."""
    result = audit(jax.random.key(0), data, 0.1, folds=4, repeats=1, inject=0.1, estimator=estimator)
    ahead = result.robust.accuracy - result.plain.accuracy
    allowed = 2 * result.gain_error if estimator in ELSEWHERE else 1e-6
    assert ahead > 0.02 if ESTIMATORS[estimator].ours else ahead > -allowed


@pytest.mark.slow
def test_rail_default_is_ahead_of_plain():
    result = audit(
        jax.random.key(0), load_rail_choices(), 0.1, folds=4, repeats=1, groups=rail_people(), inject=0.1
    )
    assert result.plain.accuracy < 0.55
    assert result.robust.accuracy > 0.67
    assert result.precision > 0.75
    assert audit_warnings(result) == []


@pytest.mark.slow
def test_progress_counts_every_fold(data):
    seen = []
    audit(jax.random.key(0), data, 0.1, folds=4, repeats=2, progress=lambda *c: seen.append(c))
    assert seen == [(i, 8) for i in range(9)]


@pytest.mark.slow
def test_null_directions_and_separable_labels_are_reported():
    rng = np.random.default_rng(0)
    options = rng.normal(size=(2, 12, 2))
    options = np.concatenate([options, options[..., :1], np.ones((2, 12, 11))], axis=-1)
    labels = np.where(options[1, :, 0] > options[0, :, 0], 1.0, -1.0)
    few = preferences_from_options(*options, labels)
    result = audit(jax.random.key(0), few, 0.0, folds=2, repeats=1, estimator="row_normalised")
    text = " ".join(audit_warnings(result))
    assert result.rank == 2
    assert "fewer pairs (12) than features (14)" in text
    assert "span 2 of 14 dimensions" in text
    assert "only a bound keeps it finite" in text
    for theta in (result.plain.theta, result.robust.theta):
        np.testing.assert_allclose(theta[0], theta[2], rtol=1e-3)
        np.testing.assert_array_equal(theta[3:], 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.5}, "outside"),
        ({"epsilon": float("nan")}, "outside"),
        ({"inject": 0.5}, "inject=0.5 is outside"),
        ({"inject": -0.1}, "inject=-0.1 is outside"),
        ({"inject": float("nan")}, "inject=nan is outside"),
        ({"injection": "flip"}, "injection='flip' is unknown"),
        ({"estimator": "best"}, "estimator='best' is unknown"),
        ({"folds": 1}, "folds=1"),
        ({"folds": 401}, "folds=401"),
        ({"repeats": 0}, "repeats=0"),
        ({"groups": np.zeros(3)}, "groups has shape"),
        ({"estimator": "trimmed", "epsilon": None}, "estimator='trimmed' needs epsilon"),
    ],
)
def test_bad_options(data, options, message):
    arguments = {"epsilon": 0.1} | options
    with pytest.raises(ValueError, match=message):
        audit(jax.random.key(0), data, **arguments)


@pytest.mark.slow
def test_report_of_a_table(tmp_path, data, capsys):
    table, out = write_table(tmp_path / "pairs[x].csv", data), tmp_path / "deep" / "out"
    run_audit(str(table), epsilon=0.1, inject=0.1, folds=4, repeats=1, out=out)
    assert sorted(p.name for p in out.iterdir()) == sorted(FILES)
    assert [p.name for p in out.parent.iterdir()] == ["out"]
    record = json.loads((out / "audit.json").read_text())
    assert record["config"]["epsilon"] == 0.1
    assert record["features"] == ["a", "b", "[c]"]
    assert record["robust"]["accuracy"] > record["plain"]["accuracy"]
    rows = list(csv.DictReader((out / "suspects.csv").open()))
    assert sorted(int(row["row"]) for row in rows) == list(range(1, 401))
    scores = [float(row["suspicion"]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert sum(int(row["flagged"]) for row in rows) == sum(int(row["injected"]) for row in rows) == 40
    assert (out / "suspicion.png").read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    for word in ("rank 3 of 3", "precision", "recall", "plain", "robust", "injected"):
        assert word in printed


def test_archive_without_injection_and_without_out(tmp_path, data, capsys):
    save(tmp_path / "pairs.npz", data)
    run_audit(str(tmp_path / "pairs.npz"), folds=4, repeats=1, top=2)
    printed = capsys.readouterr().out
    assert "No evidence of corruption: no pair is flagged." in printed
    assert "ε from evidence" in printed
    assert "f0" in printed
    assert "injected" not in printed
    assert [p.name for p in tmp_path.iterdir()] == ["pairs.npz"]


def test_failure_leaves_the_old_files_and_nothing_half_written(tmp_path, data, monkeypatch):
    out = tmp_path / "out"
    out.mkdir()
    (out / "audit.json").write_text("old")

    def fail(*_):
        raise RuntimeError("no picture")

    monkeypatch.setattr(plot, "plot_suspicion", fail)
    save(tmp_path / "pairs.npz", data)
    with pytest.raises(RuntimeError, match="no picture"):
        run_audit(str(tmp_path / "pairs.npz"), folds=4, repeats=1, out=out)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "pairs.npz"]
    assert [(p.name, p.read_text()) for p in out.iterdir()] == [("audit.json", "old")]


@pytest.mark.parametrize(
    ("source", "content", "error"),
    [
        ("missing.csv", None, FileNotFoundError),
        ("empty.csv", "", ValueError),
        ("words.txt", "hello", ValueError),
        ("text.csv", "chosen_a,rejected_a\n1,x\n", ValueError),
        ("lonely.csv", "chosen_a,rejected_a\n1,2\n", ValueError),
    ],
)
def test_bad_files_leave_no_output(tmp_path, source, content, error):
    if content is not None:
        (tmp_path / source).write_text(content)
    with pytest.raises(error):
        run_audit(str(tmp_path / source), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_out_must_be_a_folder(tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(ValueError, match="is a file: give a folder"):
        run_audit("rail", out=tmp_path / "taken")
    with pytest.raises(ValueError, match="top=-1"):
        run_audit("rail", top=-1)
