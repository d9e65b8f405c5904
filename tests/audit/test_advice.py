"""Advice: a gain where corruption is planted, none on honest choices, the same whatever the order of rows and sides."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from text_pairs import faulty_file, made_up_fit, read

from robust_rlhf_jax.audit import Advice, advise, cross_fitted_gain, find, hold_out
from robust_rlhf_jax.audit.advice import _meaning
from robust_rlhf_jax.audit.advice_commands import Commands
from robust_rlhf_jax.audit.ask_pairs import ask_sides, write_ask
from robust_rlhf_jax.audit.config import AuditConfig, Reading, Writing
from robust_rlhf_jax.audit.contention import Contention
from robust_rlhf_jax.audit.gain import Gain, Interval, broken_features, interval_of
from robust_rlhf_jax.audit.source import read_source

CONFIG = AuditConfig(folds=3, repeats=1)


def findings_of(pairs):
    return find(pairs, hold_out(pairs, folds=3, repeats=1))


def flipped(pairs, rows):
    chosen, rejected = np.array(pairs.chosen), np.array(pairs.rejected)
    chosen[rows], rejected[rows] = np.array(pairs.rejected)[rows], np.array(pairs.chosen)[rows]
    return dataclasses.replace(pairs, chosen=chosen, rejected=rejected)


@pytest.fixture(scope="module")
def clean():
    return findings_of(read_source("rail"))


@pytest.fixture(scope="module")
def corrupted(clean):
    """A tenth of the rail choices flipped, the most confident first."""
    margins = clean.held_out.margins
    return findings_of(flipped(clean.pairs, np.argsort(-margins)[: len(margins) // 10]))


@pytest.mark.slow
def test_honest_choices_are_left_as_they_are(clean):
    advice = advise(clean, CONFIG)
    assert advice.action == "leave"
    assert advice.gain is None
    assert len(advice.drop) == len(advice.ask) == advice.flagged == 0
    assert "no gain is expected" in advice.sentences[0]


@pytest.mark.slow
def test_confident_flips_are_advised_out_with_their_gain(corrupted):
    advice = advise(corrupted, CONFIG)
    assert advice.action == "drop"
    assert advice.gain.all_pairs.low > 0.02
    assert advice.gain.unflagged.value > advice.gain.all_pairs.value
    assert advice.gain.after - advice.gain.before == pytest.approx(advice.gain.all_pairs.value, abs=1e-9)
    assert advice.gain.groups == 235
    assert set(advice.drop) == set(np.flatnonzero(~corrupted.verdicts.keep))
    assert advice.sentences[0].startswith(f"Drop {len(advice.drop)} pairs")
    assert not set(advice.ask) & set(advice.drop)


@pytest.mark.slow
def test_the_order_of_sides_says_nothing(corrupted):
    pairs = corrupted.pairs
    turned = find(dataclasses.replace(pairs, swapped=~pairs.swapped), corrupted.held_out)
    assert cross_fitted_gain(turned, CONFIG) == cross_fitted_gain(corrupted, CONFIG)


@pytest.mark.slow
def test_the_order_of_rows_says_nothing(corrupted):
    order = np.random.default_rng(0).permutation(corrupted.pairs.n_pairs)
    gain = cross_fitted_gain(findings_of(corrupted.pairs.take(order)), CONFIG)
    assert gain is not None
    assert gain.all_pairs == pytest.approx(cross_fitted_gain(corrupted, CONFIG).all_pairs, abs=0.03)


@pytest.mark.slow
def test_flags_that_teach_nothing_gain_nothing(tmp_path):
    """Pairs of identical sides, which no fit learns from: the interval is [0, 0], and they stay in."""
    path, faulty, _ = faulty_file(tmp_path, "identical", 0.1, n=200)
    pairs = read(path, rater="rater")
    advice = advise(
        find(pairs, made_up_fit(pairs)), dataclasses.replace(CONFIG, estimator="row_normalised", epsilon=0.1)
    )
    assert advice.flagged == faulty.sum()
    assert advice.action == "leave"
    assert len(advice.drop) == 0


@pytest.mark.slow
def test_a_gain_is_not_known_where_no_training_fold_flags_a_pair(corrupted, monkeypatch):
    """All fits of a fold are then the same, and an interval of no width would claim to know."""
    nothing = Gain(Interval(0.0, 0.0, 0.0), Interval(0.0, 0.0, 0.0), 0.7, 0.7, 3, 235, 0.0)
    monkeypatch.setattr("robust_rlhf_jax.audit.advice.cross_fitted_gain", lambda *args, **kwargs: nothing)
    advice = advise(corrupted, CONFIG)
    assert (advice.action, advice.gain) == ("leave", None)
    assert advice.flagged > 0
    assert "too little evidence to flag any" in advice.sentences[0]


@pytest.mark.slow
def test_planted_pairs_do_not_speak_for_themselves(clean):
    """A twentieth of the pairs are planted far off, against the reward: held out, they agree with the fit to them."""
    pairs, rng = clean.pairs, np.random.default_rng(0)
    at = rng.permutation(pairs.n_pairs)[: pairs.n_pairs // 20]
    chosen, rejected = np.array(pairs.chosen, float), np.array(pairs.rejected, float)
    theta = clean.held_out.audit.robust.theta.reshape(-1, chosen.shape[1]).mean(axis=0)
    size = np.sqrt(np.mean((chosen - rejected) ** 2, axis=0))
    away = -theta * size / np.linalg.norm(theta * size)
    chosen[at] = rejected[at] + 30 * size * away
    planted = findings_of(dataclasses.replace(pairs, chosen=chosen, rejected=rejected))
    assert broken_features(planted)[at].mean() > 0.9
    gain = cross_fitted_gain(planted, CONFIG)
    assert gain is not None
    assert gain.all_pairs.low > 0.05
    assert advise(planted, CONFIG).action in ("drop", "ask")


def test_pairs_that_the_gain_leaves_out_are_not_said_to_be_unasked(monkeypatch):
    """The advice beside it says which pairs to ask raters about, and these may be among them."""
    monkeypatch.setattr("robust_rlhf_jax.audit.advice.broken_features", lambda findings: np.arange(4) < 2)
    findings = SimpleNamespace(pairs=SimpleNamespace(fitted=np.ones(4, bool)))
    nothing = Gain(Interval(0.0, 0.0, 0.0), Interval(0.0, 0.0, 0.0), 0.7, 0.7, 3, 235, 0.0)
    assert _meaning(findings, nothing).endswith(" The 2 pairs whose features look broken are not scored.")


def test_the_interval_is_that_of_student():
    values = np.random.default_rng(0).normal(0.1, 1.0, 50)
    told = ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert interval_of(values, np.arange(50)) == pytest.approx((values.mean(), told.low, told.high))
    # Each group twice: as much is known as from one of each.
    twice = interval_of(np.repeat(values, 2), np.repeat(np.arange(50), 2))
    assert twice == pytest.approx((values.mean(), told.low, told.high))
    assert interval_of(values, np.zeros(50)) == Interval(values.mean(), -1.0, 1.0)


def test_points_are_written_with_signs():
    assert Interval(0.008, -0.0001, 0.0173).percent_points == "+0.8 points (95 % interval +0.0 to +1.7)"


def contended(tmp_path):
    path, faulty, _ = faulty_file(tmp_path, "label", 0.05)
    pairs = read(path)
    fit = made_up_fit(pairs, np.flatnonzero(faulty))
    theta = np.zeros((2, len(pairs.names)))
    theta[:, 0] = 3.0, -3.0
    two = Contention(theta, np.array([0.6, 0.4]), np.array([0.0, 0.1]))
    return find(pairs, dataclasses.replace(fit, audit=dataclasses.replace(fit.audit, contention=two)))


def first_wins(found, one):
    """σ(θᵀ(φ(first) − φ(second))) under the first reward, by the text that is shown first."""
    i, pairs = one.pair - 1, found.pairs
    way = 1.0 if one.cells[1] == pairs.texts.chosen[i] else -1.0
    margin = (
        np.asarray(pairs.chosen[i]) - np.asarray(pairs.rejected[i])
    ) @ found.held_out.audit.contention.theta[0]
    return 1 / (1 + np.exp(-way * margin))


def test_the_side_that_is_shown_first_tells_nothing_of_the_label(tmp_path):
    path, _, _ = faulty_file(tmp_path, "identical", 0.1, n=300)
    pairs = read(path)
    advice = Advice("ask", np.arange(0), np.arange(300), 0, None, ("Said.",))
    asked = ask_sides(find(pairs, made_up_fit(pairs)), advice)
    first = np.mean([one.cells[1] == pairs.texts.chosen[one.pair - 1] for one in asked])
    assert abs(first - 0.5) < 5 * 0.5 / np.sqrt(300)


def test_two_rewards_are_for_raters_to_decide(tmp_path):
    found = contended(tmp_path)
    advice = advise(found)
    assert advice.action == "ask"
    assert advice.gain is None
    assert len(advice.drop) == 0
    assert 0 < len(advice.ask) <= 20
    assert "Two rewards explain the labels" in advice.sentences[0]
    one = ask_sides(found, advice)[0]
    chances = [float(cell.rstrip("%")) for cell in one.cells[-2:]]
    assert abs(chances[0] - chances[1]) > 10
    for one in ask_sides(found, advice):
        assert float(one.cells[-2].rstrip("%")) == pytest.approx(100 * first_wins(found, one), abs=1)
    write_ask(tmp_path / "ask.csv", found, advice)
    assert len((tmp_path / "ask.csv").read_text().splitlines()) == 1 + len(advice.ask)


def test_commands_repeat_how_the_file_was_read():
    called = Commands(
        "a b.csv", AuditConfig(folds=3), Reading(chosen="x y", scale=(1.0, 5.0)), Writing(), ".csv"
    )
    assert (
        called.audit("--out o")
        == "robust-rlhf audit 'a b.csv' --folds 3 --chosen 'x y' --scale 1.0 5.0 --out o"
    )


def test_each_advice_names_its_command(tmp_path):
    found = contended(tmp_path)
    commands = [
        command for _, command in advise(found, commands=Commands("p.jsonl", suffix=".jsonl")).commands
    ]
    assert commands == [
        "robust-rlhf audit p.jsonl --out audit", "robust-rlhf clean p.jsonl decisions.json --out cleaned.jsonl"
    ]  # fmt: skip


@pytest.mark.slow
def test_a_folder_that_was_asked_for_needs_no_second_audit(tmp_path):
    called = Commands("p.jsonl", writing=Writing(out=tmp_path), suffix=".jsonl")
    (command,) = [command for _, command in advise(contended(tmp_path), commands=called).commands]
    assert command.startswith("robust-rlhf clean")
