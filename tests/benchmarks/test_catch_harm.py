"""Attacks on pairs, what is recovered, and the certificate that no algorithm can tell."""

import jax
import numpy as np
import pytest
from toy_trials import THETA, toy_trial

from robust_rlhf_jax.lab.diagnostics import two_chances, two_worlds

EPSILON = 0.1


@pytest.fixture
def modules():
    import catch_harm
    import studies

    return catch_harm, studies.PLANTED, two_worlds


def plan(modules, trial, name, epsilon=EPSILON):
    """(what is seen, chances of a win, the certificate of any θ)."""
    catch_harm, _, two_worlds = modules
    seen = catch_harm.on_pairs(trial, name, epsilon, THETA, seed=0)
    wins = two_worlds.chance_of_wins(seen.x, seen.labels, THETA, seen.relabel, trial.x)
    return seen, lambda theta: two_worlds.certificate(seen.x, wins, theta, THETA, epsilon)


def test_every_attack_changes_no_more_than_its_budget(modules):
    catch_harm, planted, _ = modules
    trial = toy_trial()
    for name in planted:
        seen = catch_harm.on_pairs(trial, name, EPSILON, THETA, seed=0)
        changed = (seen.x != trial.x).any(axis=1) | (seen.labels != trial.labels)
        assert 0 < changed.sum() <= 60, name
        assert (seen.relabel is None) == (name not in ("confident", "goal_haters"))


@pytest.mark.parametrize("name", ["near", "far", "mimicry", "confident", "goal_haters"])
def test_the_truth_itself_is_always_within_epsilon(modules, name):
    _, cost = plan(modules, toy_trial(), name)
    certificate = cost(THETA)
    assert certificate.cost <= EPSILON + 1e-9
    assert certificate.stake == certificate.regret == 0
    assert not certificate.holds(EPSILON)  # nothing is at stake: it excuses nothing


@pytest.mark.slow
def test_what_can_be_told_apart_has_no_certificate(modules):
    trial = toy_trial()
    seen, cost = plan(modules, trial, "far")
    plain, robust = (np.asarray(seen.fit(e).theta, float) for e in (0.0, EPSILON))
    assert trial.score(plain).accuracy < trial.score(THETA).accuracy - 0.1
    assert trial.score(robust).accuracy > trial.score(THETA).accuracy - 0.02
    assert not cost(plain).holds(EPSILON)
    assert cost(plain).stake > 0.02


def test_a_feature_that_liars_outvote_is_hopeless(modules):
    trial = toy_trial()
    rare = np.arange(600) < 90
    x = trial.x * np.where(rare[:, None], 1.0, [1.0, 1.0, 0.0]) + np.where(rare, 3.0, 0.0)[:, None] * [
        0,
        0,
        1,
    ]
    _, cost = plan(modules, trial._replace(x=x), "goal_haters", epsilon=0.15)
    contrary = THETA * [1, 1, -1]
    assert cost(contrary).holds(0.15)
    assert not cost(-THETA).holds(0.15)


@pytest.mark.slow
def test_a_line_tells_pass_from_miss(modules):
    catch_harm, _, two_worlds = modules
    trial = toy_trial()
    seen = catch_harm.on_pairs(trial, "far", EPSILON, THETA, seed=0)
    clean = trial.score(THETA)
    found = catch_harm.attacked(trial, seen, EPSILON, THETA, clean, draws=5)
    assert found.certificate is None
    assert catch_harm.verdict([found], EPSILON) == "pass"
    missed = found._replace(told=found.plain, certificate=two_worlds.Certificate(0.3, 0.1, 0.0))
    assert catch_harm.verdict([missed], EPSILON).startswith("MISSED in 1 of 1 (cost .300")
    excused = missed._replace(certificate=two_worlds.Certificate(0.09, 0.1, 0.0))
    assert catch_harm.verdict([excused], EPSILON).startswith("hopeless in 1 of 1 (cost .090")
    line = catch_harm.line("toy", "far", EPSILON, [found])
    assert line.count("|") == catch_harm.HEAD.splitlines()[1].count("|")


@pytest.mark.slow
def test_the_command_writes_its_table(modules, monkeypatch, tmp_path):
    catch_harm = modules[0]
    monkeypatch.setattr(catch_harm, "SETS", ("toy", "trajectories"))
    monkeypatch.setattr(catch_harm, "available", lambda shared: (["toy"], []))
    monkeypatch.setattr(catch_harm, "trials", lambda *_: [toy_trial])
    words = ["--quick", "--attacks", "far", "goal_haters", "--out", str(tmp_path / "table.md")]
    status = catch_harm.main(words)
    table = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert table.count("| toy | far |") == table.count("| toy | goal_haters |") == 3
    assert status == any(word in table for word in ("MISSED", "LOG-LOSS", "CALIBRATION", "TOLD"))


def test_remarks_on_means_of_all_trials(modules):
    """Gaps of opposite sign in two trials are chance, not miscalibration."""
    import pair_sets

    catch_harm = modules[0]

    def scored(accuracy=0.7, log_loss=0.6, gap=0.0):
        return pair_sets.Score(accuracy, log_loss, np.nan, gap)

    def result(told, nothing=None):
        return catch_harm.Result(scored(), scored(), told, nothing or told, None)

    assert catch_harm.remarks([result(scored(gap=0.3)), result(scored(gap=-0.3))], EPSILON, False) == ""
    assert catch_harm.remarks([result(scored(gap=0.3))] * 2, EPSILON, False) == "; CALIBRATION"
    assert catch_harm.remarks([result(scored(gap=0.3))] * 2, EPSILON, True) == ""
    assert catch_harm.remarks([result(scored(log_loss=0.66))], EPSILON, True) == "; LOG-LOSS"
    assert catch_harm.remarks([result(scored(accuracy=0.6), scored())], EPSILON, False) == "; TOLD"


def test_a_calibration_error_is_excused_by_certificates_alone(modules):
    catch_harm = modules[0]
    good, bad = (catch_harm.Score(0.7, 0.6, np.nan, gap) for gap in (0.05, 0.3))
    holds = two_chances.ProbabilityCertificate(0.09, 0.12)
    fails = two_chances.ProbabilityCertificate(0.11, 0.12)

    def said(*certificates):
        results = [catch_harm.Result(good, good, bad, bad, None, c, c) for c in certificates]
        results += [catch_harm.Result(good, good, good, good, None)]
        return catch_harm.calibration(results, EPSILON)

    assert said(holds, holds) == "calibration hopeless in 2 of 3 (cost .090, stake .120)"
    assert said(holds, None) == "CALIBRATION"
    assert said(fails, fails) == "CALIBRATION"  # the certificate without ε would hold: that with ε decides
    assert said() == ""


@pytest.mark.slow
def test_trajectories_are_attacked_in_their_world(modules):
    import pair_sets

    catch_harm = modules[0]
    mdp = pair_sets.delivery_grid(jax.random.key(0), size=4, horizon=10)
    data = pair_sets.sample_segments(jax.random.key(1), mdp, 300, 4, temperature=0.18)
    trial = pair_sets._trial(mdp, data, data, np.asarray(mdp.theta[0], float) / 0.18)
    assert trial.score(trial.world.theta).value == pytest.approx(1.0)
    flips = catch_harm.on_trajectories(trial, "flip_confident", EPSILON, seed=0)
    assert (flips.labels != trial.labels).sum() == 30
    assert (flips.relabel(trial.labels) == flips.labels).all()
    assert catch_harm.on_trajectories(trial, "push_on_table", EPSILON, seed=0).relabel is None


def test_a_fit_that_loses_where_plain_does_not_is_no_pass(modules):
    catch_harm, _, two_worlds = modules
    scores = [catch_harm.Score(accuracy, 0.5, np.nan) for accuracy in (0.8, 0.79, 0.7, 0.7)]
    result = catch_harm.Result(*scores, two_worlds.Certificate(0.3, 0.1, 0.0))
    assert np.isnan(catch_harm.recovered([result]))
    assert catch_harm.verdict([result], EPSILON).startswith("MISSED")
    harmless = result._replace(told=result.plain, certificate=None)
    assert catch_harm.verdict([harmless], EPSILON) == "no loss"
    # Harm where plain is ahead of the clean fit, and no certificate.
    ahead = result._replace(plain=result.clean._replace(accuracy=0.81), certificate=None)
    assert catch_harm.verdict([ahead] * 3, EPSILON).startswith("MISSED")
