"""The ways through the package that CONTRIBUTING.md tells: answers are where it says, stations come in order."""

import re
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import robust_rlhf_jax
from robust_rlhf_jax import Pairs, fit_reward

PACKAGE = Path(robust_rlhf_jax.__file__).parent
TEXT = Path(__file__).parents[1].joinpath("CONTRIBUTING.md").read_text(encoding="utf-8")


def stations(heading):
    """(file, function) of each row of the table under a heading."""
    part = TEXT.split(f"### {heading}\n")[1].split("\n###")[0]
    return re.findall(r"^\| `([\w/.]+)` \| `(\w+)` \|", part, re.MULTILINE)


def entered(way, work):
    """The stations that `work` enters, in order."""
    wanted = {(str(PACKAGE / file), name): (file, name) for file, name in way}
    found = []

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and (code.co_filename, code.co_name) in wanted:
            found.append(wanted[code.co_filename, code.co_name])

    # Of a program that another test compiled, no function would be entered again.
    jax.clear_caches()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


def test_where_answers_are():
    """Every file that an answer names is there, and so is the name in brackets after it."""
    part = TEXT.split("### Where is …?\n")[1].split("\n###")[0]
    files = re.findall(r"`([\w/]+/[\w./]*)`(?: \(`(\w+)`)?", part)
    assert len(files) > 60
    for file, name in files:
        assert (PACKAGE / file).exists(), file
        assert not name or re.search(rf"\b{name}\b", (PACKAGE / file).read_text(encoding="utf-8")), (
            file,
            name,
        )


@pytest.mark.slow
def test_from_a_file_to_a_page(tmp_path):
    pytest.importorskip("jinja2")
    from robust_rlhf_jax.audit.arguments import AuditArguments, AuditConfig, Writing

    rng = np.random.default_rng(0)
    answers = [" ".join(rng.choice(["yes", "no", "sure", "why", "well"], 5)) for _ in range(80)]
    rows = [f"Hi {i},{answers[i]},{answers[40 + i]} so" for i in range(40)]
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join(["prompt,chosen,rejected", *rows]) + "\n")
    given = AuditArguments(
        str(path),
        AuditConfig(epsilon=0.1, estimator="row_normalised", folds=2, repeats=1),
        writing=Writing(out=tmp_path / "out", export=tmp_path / "out.csv"),
    )
    way = stations("From a file to a page")
    assert len(way) > 20
    assert entered(way, given.run) == way


@pytest.mark.slow
def test_from_fit_reward_to_the_kernel():
    x = np.random.default_rng(0).normal(size=(61, 3))
    pairs = Pairs.of_differences(
        x, np.where(x @ [1, 2, 0.5] + np.random.default_rng(1).logistic(size=61) > 0, 1, -1)
    )
    way = stations("From fit_reward to the kernel")
    found = entered(way, lambda: fit_reward(pairs))
    assert list(dict.fromkeys(found)) == way
    assert all(file.startswith("kernels/") or found.count((file, name)) == 1 for file, name in way)
