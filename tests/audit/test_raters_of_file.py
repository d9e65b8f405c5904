"""Raters in an audit: rated, written, shown, left out; agreement of those who judged the same pair."""

import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest

from robust_rlhf_jax.audit import raters_of_file
from robust_rlhf_jax.audit.command import audit_file
from robust_rlhf_jax.audit.config import AuditConfig, Reading, Writing
from robust_rlhf_jax.audit.raters_of_file import RatersOfFile, agreement_in, rate_file
from robust_rlhf_jax.audit.record import schema
from robust_rlhf_jax.io import Pairs, Texts
from robust_rlhf_jax.raters import krippendorff_alpha

WHO = np.repeat([f"rater {i:02}" for i in range(20)], 20)
CONTRARY = ("rater 03", "rater 11")


def labelled(k=3, seed=0):
    """(differences [400, k], labels): twenty raters of one taste, of whom two say the opposite."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(len(WHO), k))
    theta = np.zeros(k)
    theta[:3] = 2.0, -1.5, 1.0
    labels = np.where(rng.logistic(size=len(x)) < x @ theta, 1, -1)
    return x, np.where(np.isin(WHO, CONTRARY), -labels, labels)


def written(path):
    x, labels = labelled()
    rows = np.where(labels[:, None] > 0, np.c_[x, np.zeros_like(x)], np.c_[np.zeros_like(x), x])
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["rater", *(f"chosen_{c}" for c in "abc"), *(f"rejected_{c}" for c in "abc")])
        writer.writerows([who, *map(float, row)] for who, row in zip(WHO, rows, strict=True))
    return path


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """(folder of an audit, cleaned file, exported file)."""
    folder = tmp_path_factory.mktemp("raters")
    source, out = written(folder / "pairs.csv"), folder / "out"
    clean, export = folder / "clean.csv", folder / "export.csv"
    writing = Writing(out=out, clean=clean, export=export, drop_raters=True)
    audit_file(str(source), AuditConfig(folds=3, repeats=1), Reading(), writing, top=0)
    return out, clean, export


@pytest.mark.slow
def test_raters_are_a_file_of_the_audit(audited):
    with open(audited[0] / "raters.csv", newline="") as file:
        kinds = {row["name"]: row["kind"] for row in csv.DictReader(file)}
    assert sorted(kinds) == sorted(set(WHO))
    assert [name for name, kind in kinds.items() if kind == "contrary"] == list(CONTRARY)


@pytest.mark.slow
def test_the_record_counts_them(audited):
    record = json.loads((audited[0] / "audit.json").read_text())
    pytest.importorskip("jsonschema").validate(record, schema())
    assert record["raters"]["kinds"]["contrary"] == 2
    assert record["raters"]["agreement"] is None  # no two rated the same pair


@pytest.mark.slow
def test_the_page_shows_bad_raters_first(audited):
    page = (audited[0] / "audit.html").read_text()
    part = page[page.index('<section id="raters">') :]
    rows = [cell.split("<")[0] for cell in part.split('<tr><th scope="row" dir="auto">')[1:21]]
    assert sorted(rows[:2]) == sorted(CONTRARY)
    assert "2 contrary" in part


@pytest.mark.slow
def test_dropped_raters_are_not_in_the_cleaned_file(audited):
    with open(audited[1], newline="") as file:
        left = {row["rater"] for row in csv.DictReader(file)}
    assert left == set(WHO) - set(CONTRARY)


@pytest.mark.slow
def test_an_export_keeps_what_the_cleaned_file_has(audited):
    with open(audited[1], newline="") as clean, open(audited[2], newline="") as export:
        kept = [row for row in csv.DictReader(export) if row["keep"] == "True"]
        rows = list(csv.DictReader(clean))
    assert [row["chosen_a"] for row in kept] == [row["chosen_a"] for row in rows]


@pytest.mark.slow
def test_an_export_weighs_pairs_as_the_table_of_raters_does(audited, tmp_path):
    source, out = audited[0].parent / "pairs.csv", tmp_path / "out.csv"
    audit_file(str(source), AuditConfig(folds=3, repeats=1), Reading(), Writing(export=out), top=0)
    with open(audited[0] / "raters.csv", newline="") as file:
        weights = {row["name"]: float(row["weight"]) for row in csv.DictReader(file)}
    with open(out, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["keep"] == "True"]
    np.testing.assert_allclose(
        [float(r["weight"]) for r in rows], [weights[r["rater"]] for r in rows], rtol=1e-3
    )
    assert min(weights.values()) < 0.5


@pytest.mark.slow
def test_more_features_than_a_taste_can_have_become_axes():
    """One-hot or embedded: 70 columns, of which the raters see three."""
    x, labels = labelled(k=70)
    found = rate_file(Pairs.of_differences(20.0 * x, labels, raters=WHO))
    assert not found.why_not
    assert found.of_bad_raters(Pairs.of_differences(x, labels, raters=WHO))[WHO == "rater 07"].sum() == 0


@pytest.mark.slow
def test_texts_of_which_no_chosen_one_is_shorter_are_rated():
    """Longer or of one length: 0 and 1 alone, which are not to be taken for truths."""
    x, labels = labelled()
    texts = Texts(["?"] * len(x), ["a b" if i % 2 else "a" for i in range(len(x))], ["b"] * len(x))
    turned = labels[:, None] * x
    found = rate_file(Pairs(turned, np.zeros_like(x), texts=texts, raters=WHO))
    assert set(CONTRARY) <= {row.name for row in found.table.rows if row.kind != "attentive"}


def test_what_cannot_be_rated_is_said(monkeypatch):
    x, labels = labelled()
    assert rate_file(Pairs.of_differences(x, labels)) is None
    alone = rate_file(Pairs.of_differences(x, labels, raters=np.repeat("ann", len(x))))
    assert alone.sentences() == ["All pairs have one rater: there is nobody to compare them with."]
    monkeypatch.setattr(raters_of_file, "MOST_PAIRS", 100)
    many = rate_file(Pairs.of_differences(x, labels, raters=WHO))
    assert many.sentences() == ["Raters are rated in files of up to 100 pairs; this one has 400."]
    assert not many.of_bad_raters(Pairs.of_differences(x, labels, raters=WHO)).any()


@pytest.mark.parametrize("kind", ["texts", "features", "arrays"])
def test_agreement_is_of_the_same_two_options_in_either_order(kind):
    """Three raters of 30 pairs, shown in any order; every seventh vote is a tie."""
    rng = np.random.default_rng(0)
    unit, says = np.repeat(np.arange(30), 3), rng.integers(0, 2, 90)
    tie = np.arange(90) % 7 == 0
    first, second = rng.normal(size=(2, 30, 2))[:, unit]
    turned = (says == 1)[:, None]
    chosen, rejected = np.where(turned, second, first), np.where(turned, first, second)
    strength = np.where(tie, 0.0, 1.0)
    if kind == "texts":
        texts = Texts(["?"] * 90, [str(row) for row in chosen], [str(row) for row in rejected])
        pairs = Pairs(chosen, rejected, strength=strength, texts=texts)
    elif kind == "arrays":
        # Which option a tie names is chance.
        pairs = Pairs.of_differences(chosen - rejected, np.ones(90), strength=strength)
    else:
        pairs = Pairs(chosen, rejected, strength=strength)
    expected = krippendorff_alpha(unit, np.where(tie, 2, says), opposite={0: 1, 1: 0})
    np.testing.assert_allclose(agreement_in(pairs).alpha, expected.alpha)
    assert agreement_in(pairs).ratings == 90
    assert "Krippendorff's α" in RatersOfFile(None, "", agreement_in(pairs)).sentences()[-1]


def judged(*rows):
    """Pairs of texts from (rater, prompt, whether "a" won)."""
    texts = Texts(
        [prompt for _, prompt, _ in rows],
        ["a" if a else "b" for *_, a in rows],
        ["b" if a else "a" for *_, a in rows],
    )
    sides = np.array([[float(a), float(not a)] for *_, a in rows])
    return Pairs(sides, 1.0 - sides, raters=[who for who, *_ in rows], texts=texts)


def test_copies_by_one_rater_are_no_agreement_between_raters():
    once = [("ann", "x", True), ("ben", "x", False), ("ann", "y", True), ("ben", "y", True)]
    assert agreement_in(judged(*once[::2], *once[::2])) is None
    expected, copied = agreement_in(judged(*once)), agreement_in(judged(*once, *once[2:]))
    assert copied == expected
    contradictory = agreement_in(judged(*once, ("cem", "y", True), ("cem", "y", False)))
    assert contradictory == expected


def test_raters_who_may_be_left_out_are_named_with_the_flag_that_does_it():
    pairs = judged(("ann", "x", True), ("ben", "x", False), ("ann", "y", True))
    rows = [SimpleNamespace(name=who, kind=kind) for who, kind in (("ann", "random"), ("ben", "attentive"))]
    kinds = ("attentive", "random")
    counts = {kind: sum(row.kind == kind for row in rows) for kind in kinds}
    raters = RatersOfFile(SimpleNamespace(rows=rows, counts=lambda: counts), "", None)
    assert raters.sentences() == ["Raters: 1 attentive, 1 random (ann)."]
    assert raters.may_drop(pairs) == [
        "To leave out the 2 pairs of raters in brackets, add --clean FILE --drop-raters."
    ]
    assert raters.dropped(pairs) == "--drop-raters: left out 2 pairs of 1 rater (ann)."
    rows[0].kind = "noisy"
    assert raters.may_drop(pairs) == []
    assert raters.dropped(pairs) == "--drop-raters: no rater looks random, contrary, or a habit."


@pytest.mark.parametrize(
    ("writing", "message"),
    [({"drop_raters": True}, "give --clean"), ({"drop_raters": True, "clean": "x.csv"}, "who labelled")],
)
def test_drop_raters_needs_a_file_and_raters(writing, message, tmp_path):
    source = written(tmp_path / "pairs.csv")
    text = "\n".join(line.split(",", 1)[1] for line in source.read_text().splitlines())
    source.write_text(text + "\n")
    if "clean" in writing:
        writing = writing | {"clean": tmp_path / writing["clean"]}
    with pytest.raises(ValueError, match=message):
        audit_file(str(source), AuditConfig(folds=3, repeats=1), Reading(), Writing(**writing), top=0)
