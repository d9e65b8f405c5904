"""The study of the advice to drop pairs: its files are what they say, and its tables count what they say."""

import json

import numpy as np
import pytest
from slow_parameters import slow


@pytest.fixture
def study():
    import drop_advice

    return drop_advice


@pytest.fixture
def shared(study):
    return study.SHARED


def changed(one, other):
    """Pairs whose preferred differences are not those of the other file."""
    x, y = (file.pairs.preferred_differences() for file in (one, other))
    return int(np.any(x != y, axis=1).sum())


@pytest.mark.parametrize("attack", ["random", "confident", "far", "near_varied"])
def test_an_attack_changes_its_share_of_the_pairs_alone(study, shared, attack):
    honest, attacked = (study.file_of("rail", 300, how, 0.1, 0, shared) for how in (None, attack))
    assert honest.pairs.n_pairs == attacked.pairs.n_pairs == 300
    assert 25 <= changed(honest, attacked) <= 30  # a row that was planted may be the one that was there
    before, after = (file.fresh()[0] for file in (honest, attacked))
    assert np.array_equal(before, after)
    assert not np.array_equal(after, attacked.fresh()[1])


def test_no_person_of_a_file_is_among_its_fresh_pairs(study, shared):
    from advised_files import _trial

    trial = _trial("rail", 0, shared)
    file = study.file_of("rail", 300, None, 0.0, 0, shared)
    assert len(trial.test_x) == len(file.fresh()[0])
    assert len(np.unique(file.pairs.groups)) >= 10


@pytest.mark.parametrize("attack", [None, slow("random"), slow("confident"), "near_varied", slow("mimicry")])
def test_texts_have_as_many_pairs_as_were_asked_for(study, shared, attack, monkeypatch):
    monkeypatch.setattr("advised_files.FRESH", 50)
    file = study.file_of("texts", 120, attack, 0.1, 0, shared)
    assert file.pairs.n_pairs == 120
    assert [len(x) for x in file.fresh()] == [50, 50]


def test_a_set_with_fewer_pairs_has_no_file(study, shared):
    assert study.file_of("rail", 4000, None, 0.0, 0, shared) is None


def told(advice, gain, stated=None, flagged=5):
    file = {"attack": "far", "epsilon": 0.1, "advice": advice, "flagged": flagged}
    file |= {"honest": [gain, -0.1], "same": [0.0, 0.0]} if flagged else {}
    return file if stated is None else file | {"stated": stated, "unflagged": stated}


def test_harms_and_misses_are_counted(study):
    files = [
        told("drop", -0.02, [0.03, 0.01, 0.05]), told("drop", 0.04, [0.03, 0.01, 0.05]),
        told("leave", 0.02, [0.0, -0.03, 0.03]), told("ask", 0.3), told("leave", 0.0, flagged=0),
    ]  # fmt: skip
    (line,) = study.table(files).splitlines()[2:]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells == [
        "far", "0.1", "5", "4", "2 / 1", "+.010, −.100", "1 of 2", "2", "2 of 3 / 1 of 3"
    ]  # fmt: skip
    assert "2 drops, 1 harm, 1 missed" in study.other_rule(files)


def test_files_that_were_measured_are_not_measured_again(study, tmp_path, monkeypatch, capsys):
    calls = []
    monkeypatch.setattr(study, "file_of", lambda name, *rest: calls.append(name))
    monkeypatch.setattr(study, "report", str)
    known = {"set": "rail", "size": 300, "attack": "none", "epsilon": 0.0, "seed": 0} | {"advice": "leave"}
    out = tmp_path / "files.json"
    out.write_text(json.dumps([known]))
    assert study.main(["--quick", "--sets", "rail", "--out", str(out)]) == 0
    assert "'advice': 'leave'" in capsys.readouterr().out
    assert len(calls) == 2 * 11 - 1
