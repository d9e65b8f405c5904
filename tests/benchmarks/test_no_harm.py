"""Honest pairs beside plain maximum likelihood: the bars, rare groups, and a run at toy size."""

import numpy as np
import pytest
from toy_trials import toy_trial


@pytest.fixture
def no_harm():
    import no_harm

    return no_harm


@pytest.mark.slow
def test_clean_and_flipped_pairs_pass_every_bar(no_harm):
    found = no_harm.outcomes(toy_trial(), seed=0, levels=(0.1,))
    assert [(o.flipped, o.told) for o in found] == [(0.0, 0.1), (0.0, None), (0.1, 0.1), (0.1, None)]
    rows = [no_harm.row("toy", share, [o for o in found if o.flipped == share]) for share in (0.0, 0.1)]
    assert [row.failed for row in rows] == [(), ()]
    assert (
        len({no_harm.line(row).count("|") for row in rows} | {no_harm.HEAD.splitlines()[1].count("|")}) == 1
    )


def test_the_worst_rare_group_counts_its_own_honest_pairs(no_harm):
    touched = np.zeros((1000, 2), bool)
    touched[:200, 0] = touched[200:1000, 1] = True
    honest, out = np.ones(1000, bool), np.zeros(1000)
    honest[:100], out[:120] = False, 1.0
    assert no_harm.worst_rare_group(out, touched, honest) == pytest.approx(0.2)


def test_a_harmful_fit_fails(no_harm):
    plain, robust = no_harm.Score(0.8, 0.5, 0.9), no_harm.Score(0.79, 0.52, 0.88)
    row = no_harm.row("toy", 0.0, [no_harm.Outcome(0.0, 0.1, plain, robust, 0.06, True)])
    assert row.failed == ("accuracy", "log-loss", "return", "removed")
    assert "FAILS: accuracy" in no_harm.line(row)


def test_sets_that_are_not_bundled_are_skipped_with_a_sentence(tmp_path):
    from pair_sets import available

    names, skipped = available(tmp_path)
    assert "electricity" not in names
    assert "rail" in names
    assert skipped[0].startswith("electricity is skipped: ")


def test_folds_share_one_shape_and_split_no_one():
    from pair_sets import trials
    from studies import SHARED

    built = [build() for build in trials("rail", SHARED, repeats=1, seeds=0)]
    assert len({trial.x.shape for trial in built}) == 1
    assert sum(len(trial.test_labels) for trial in built) == 2929


@pytest.mark.slow
def test_the_command_writes_its_table_and_fails_where_a_bar_does(no_harm, monkeypatch, tmp_path):
    monkeypatch.setattr(no_harm, "available", lambda shared: (["toy"], ["other is skipped: no file."]))
    monkeypatch.setattr(no_harm, "trials", lambda *_: [toy_trial])
    assert no_harm.main(["--quick", "--out", str(tmp_path / "table.md")]) == 0
    table = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert table.startswith("other is skipped")
    assert table.count("| toy | ") == table.count("| pass |") == 12
    monkeypatch.setattr(no_harm, "ACCURACY", -1.0)
    assert no_harm.main(["--quick"]) == 1
