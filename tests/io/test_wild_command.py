"""`robust-rlhf describe FILE` and `audit FILE --dry-run` say how a file is understood, before any work."""

import re

import pytest
from wild import BY_NAME, command_line, reading

from robust_rlhf_jax.io import describe

# (case, words of the description)
SAID = [
    ("arena_33k", ("winner", "ties", "judge")),
    ("bookkeeping", ("chosen_len", "chosen_id", "chosen_created_at")),
    ("helpsteer3_overall", ("overall_preference",)),
    ("nectar", ("answers", "72")),
    ("label_studio_json", ("4 raters", "completed_by")),
    ("csv_latin1", ("latin-1|Latin-1|cp1252|windows-1252",)),
    ("csv_semicolons_bom", ("semicolon|;",)),
    ("shards", ("24",)),
    ("embeddings_parquet", ("embeddings",)),
]


@pytest.mark.parametrize("form", ["describe", "audit"])
@pytest.mark.parametrize(("name", "words"), SAID)
def test_a_description_says_what_was_understood(robust_rlhf, tmp_path, name, words, form):
    path = BY_NAME[name].write(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    status, printed, errors = robust_rlhf(form, str(path), *(["--dry-run"] if form == "audit" else []))
    assert (status, errors) == (0, "")
    for word in words:
        assert re.search(word, printed), word
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "name", ["one_two", "probability", "dataset_dict", "truncated_line", "unknown_names", "kto"]
)
def test_what_is_refused_is_said_in_one_sentence_whose_flag_works(robust_rlhf, tmp_path, name):
    case = BY_NAME[name]
    path = str(case.write(tmp_path))
    status, printed, errors = robust_rlhf("describe", path)
    assert (status, printed) == (2, "")
    assert re.search(case.refused, errors)
    assert "Traceback" not in errors
    if case.flags:
        status, printed, errors = robust_rlhf("describe", path, *command_line(case.flags))
        assert (status, errors) == (0, "")


@pytest.mark.parametrize(
    "name", ["a_b_tie", "arena_140k", "multipref", "ultrafeedback_raw", "csv_utf16", "saved"]
)
def test_a_description_counts_and_shows_what_is_read(tmp_path, name):
    case = BY_NAME[name]
    found, said = describe(case.write(tmp_path), **reading(case.flags)), case.votes()
    assert (found.n_pairs, found.n_ties) == (len(said), sum(vote.tie for vote in said))
    assert len(found.examples) == 3
    known = {(vote.chosen, vote.rejected) for vote in said} | {(v.rejected, v.chosen) for v in said if v.tie}
    assert {(one.chosen.strip(), one.rejected.strip()) for one in found.examples} <= known
    assert len(found.lines()) == 5 + len(found.notes)
    whole = str(found)
    assert all(column in whole for column in found.ignored)
