"""The study of cleaning votes on texts: nothing leaks between its parts, and corruption is what it says."""

import numpy as np
import pytest

SMALL = 300


@pytest.fixture
def files():
    import vote_files

    return vote_files


@pytest.fixture
def study(monkeypatch):
    """The study without the fits of the library, which take long to compile."""
    pytest.importorskip("cleanlab")  # of the extra bench
    import text_cleaning

    monkeypatch.setattr(text_cleaning, "flag", lambda pairs: np.zeros(pairs.n_pairs, bool))
    monkeypatch.setattr(text_cleaning, "suspicion_scores", lambda pairs: np.arange(pairs.n_pairs))
    return text_cleaning


def arguments(pairs):
    return {(prompt, text) for prompt, *texts in pairs for text in texts}


@pytest.mark.slow
def test_no_argument_is_trained_on_and_tested(files):
    votes = files.draw(0)
    audited = {files.pair_of(row) for row in votes.audited}
    assert not arguments(audited) & arguments(votes.test)
    assert sum(row["label"] != "tie" for row in votes.audited) == files.VOTES
    assert len(votes.test) > 400


def test_the_votes_that_check_are_of_other_raters(files):
    votes = files.draw(0, votes=10**6)
    audited = {(*files.pair_of(row), row["rater"]) for row in votes.audited}
    everyone = {
        (*files.pair_of(row), row["rater"])
        for row in files.all_rows()
        if files.pair_of(row) in votes.majority
    }
    raters = {rater for *_, rater in audited}
    others = [
        row for row in files.all_rows() if row["rater"] not in raters and files.pair_of(row) in votes.majority
    ]
    assert everyone - audited == {(*files.pair_of(row), row["rater"]) for row in others}
    assert votes.majority == files.majorities(others, files.FEWEST_CHECKS)


def test_flips_turn_their_share_of_the_decided_votes(files):
    rows = files.draw(1, SMALL).audited
    turned, changed = files.corrupt(1, rows, "flips", 0.1)
    assert changed.sum() == 30
    assert all(
        {a["label"], b["label"]} == {"a", "b"} for a, b, c in zip(rows, turned, changed, strict=True) if c
    )


def test_bots_vote_as_bots_do_and_nobody_else_changes(files):
    rows = files.draw(1).audited
    longer = lambda row: "a" if len(row["response_a"]) >= len(row["response_b"]) else "b"  # noqa: E731
    for kind, votes in {"bots: first": lambda row: "a", "bots: longer": longer}.items():
        turned, changed = files.corrupt(1, rows, kind, 0.1)
        bots = {row["rater"] for row, c in zip(turned, changed, strict=True) if c}
        cast = [row for row in turned if row["rater"] in bots]
        assert all(row["label"] == votes(row) for row in cast)
        assert 0.08 * len(rows) < len(cast) <= 0.1 * len(rows)
    random, _ = files.corrupt(1, rows, "bots: random", 0.1)
    assert {row["label"] for row, old in zip(random, rows, strict=True) if row != old} == {"a", "b"}


def test_a_majority_needs_enough_votes_and_no_draw(files):
    rows = [
        {"prompt": "", "response_a": a, "response_b": "y", "label": label}
        for a, label in ("pa", "qb", "qb", "ra", "rb")
    ]
    assert files.majorities(rows, 2) == {("", "q", "y"): -1}
    assert files.majorities(rows, 1) == {("", "p", "y"): 1, ("", "q", "y"): -1}
    found = files.contradicted([*rows, rows[0] | {"label": "tie"}], {("", "p", "y"): -1})
    np.testing.assert_array_equal(found, [1, *[np.nan] * 5])


def test_quality_counts_only_what_can_be_checked(study):
    masks = {"all": np.ones(4, bool), "none": np.zeros(4, bool)}
    found = study.found({"s": np.array([4.0, 3, 2, 1])}, masks, np.array([1.0, 0, np.nan, 0]))
    assert found["base"] == pytest.approx(1 / 3)
    assert (found["precision"]["all"], found["recall"]["all"], found["ap"]["s"]) == (
        pytest.approx(1 / 3),
        1,
        1,
    )
    assert np.isnan(found["precision"]["none"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["boosted trees", "small network"])
def test_models_learn_and_have_no_favourite_side(name):
    from text_models import MODELS, held_out

    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 400, 3)).astype(np.float32)
    swap = (a - b)[:, :1] < 0
    chances = MODELS[name](np.where(swap, b, a), np.where(swap, a, b), 500)
    there, back = chances(a, b), chances(b, a)
    np.testing.assert_allclose(there + back, 1, atol=1e-5)
    accuracy, log_loss = held_out(there, np.where(swap[:, 0], -1, 1))
    assert accuracy > 0.9
    assert log_loss < 0.4


@pytest.mark.slow
def test_the_command_measures_writes_and_draws_anew(study, tmp_path, capsys):
    words = [
        "--seeds",
        "2",
        "--features",
        "svd",
        "--votes",
        str(SMALL),
        "--shares",
        "0",
        "0.1",
        "--out",
        str(tmp_path),
    ]
    assert study.main(words) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Embeddings are skipped: ")
    assert printed.count("| bots: longer | 10% |") == 4
    # Nothing was flagged: the same file, the same models.
    assert printed.count("| +.000 ± .000 |") >= 20
    assert {path.name for path in tmp_path.iterdir()} == {"cells.json", "tables.md", "texts_svd.png"}
    assert study.main(["--out", str(tmp_path), "--redraw"]) == 0
    assert capsys.readouterr().out.strip() == (tmp_path / "tables.md").read_text(encoding="utf-8").strip()
