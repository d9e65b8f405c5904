"""A number that several pages have is the same on all of them, and where it is cheap to know, the true one.

A new one: its name, what the pages say (a regular expression with one group, in lines that may wrap), and either a
function that gives the value or the page that owns it. Where two pages have good reason to differ, such as another
split of the data, let the sentences differ, too.
"""

import re
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from slow_parameters import slow_where

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}


def pages() -> dict[str, str]:
    """Every text that readers see, on one line each: README, changelog, docs, notebooks, docstrings of the package."""
    paths = [
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff")),
        *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md"), *(ROOT / "notebooks").glob("*.py"),
        *(ROOT / "robust_rlhf_jax").rglob("*.py"),
    ]  # fmt: skip
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    # Lines of notebooks begin with #, those of lists and quotations with a mark.
    return {name: re.sub(r"\s*\n[#>\s]*", " ", text) for name, text in texts.items()}


PAGES = pages()


class Quantity(NamedTuple):
    """`value`: a function, or the page that owns the number; `least`: how many pages must have it."""

    says: str
    value: Callable[[], object] | str
    least: int = 2


def number(word: str) -> str:
    return str(WORDS.get(word.lower(), word.replace(",", ""))).rstrip(".")


@cache
def votes():
    from robust_rlhf_jax.preferences import argument_pairs

    return argument_pairs()


def rail():
    from robust_rlhf_jax import load_rail_choices

    return load_rail_choices()


def sweep():
    from robust_rlhf_jax.lab.sweeps import SweepConfig

    return SweepConfig()


def robustness():
    from robust_rlhf_jax.lab.reproduce import robustness

    return robustness


def robust_fit():
    from robust_rlhf_jax.rewards import RobustFit

    return RobustFit()


def people():
    from robust_rlhf_jax.preferences import rail_people

    return len(set(rail_people().tolist()))


def rivals_run():
    from robust_rlhf_jax.lab.methods import OURS

    module = robustness()
    return len([name for name in module.RUN if name not in OURS])


def ways_of_doubt():
    from robust_rlhf_jax.rewards import proposals

    return len(proposals.PROPOSALS) - 1 + len(proposals.CONTRARY)  # "plain" doubts nobody


def pair_attacks():
    from robust_rlhf_jax.lab import pair_attacks

    return len(pair_attacks.PAIR_ATTACKS)


def files_led():
    """Those of the benchmark's table on which no other estimator is more than .002 ahead."""
    _, _, *rows = marked_table("benchmark.md", "benchmark")  # below the header and its line
    return sum(float(row[5].split()[0]) - float(row[2]) < 0.0025 for row in rows)


QUANTITIES = {
    "votes on arguments": Quantity(r"([\d,]+) (?:real )?votes (?:of|on) ", lambda: votes().n_pairs, 4),
    "raters of the votes": Quantity(
        r"(\d[\d,]*) raters (?:on which|on pairs|\(rater\); 4)", lambda: len(set(votes().raters))
    ),
    "ties of the votes": Quantity(
        r"([1-9][\d,]*) (?:of them )?ties(?: and|; id|, by 2,115)", lambda: int(votes().ties.sum()), 1
    ),
    "rail choices": Quantity(r"([\d,]+) (?:real )?choices (?:of|between)", lambda: rail().n_pairs),
    "rail travellers": Quantity(r"(\d+) (?:Dutch )?(?:travellers|people \(`arguments)", people),
    "attacks of reproduce robustness": Quantity(
        r"(?:face|runs) (\d+) attacks", lambda: len(robustness().FULL.attacks)
    ),
    "attacks in the table of duels": Quantity(
        r"\| \d+ of (\d\d) \| \d+ \| ", lambda: len(robustness().FULL.attacks), 1
    ),
    "rivals of reproduce robustness": Quantity(r"and (\w+) rivals face", rivals_run, 1),
    "cells of reproduce robustness": Quantity(
        r"([\d,]+) cells in about two hours", lambda: robustness().robustness_cells(robustness().FULL), 1
    ),
    "seeds of the default sweep": Quantity(
        r"(?:default sweep has|five ε ×|medians and quartiles of) (\w+) seeds", lambda: sweep().seeds, 3
    ),
    "attacks on the pairs of a file": Quantity(
        r"(?:your file under|Attacks\.\*\*) (\d+) (?:attacks|of them)", pair_attacks
    ),
    "files of the benchmark that fit_reward leads": Quantity(
        r"within \.002 of the leader,? on (\w+) of", files_led
    ),
    "worlds of the default sweep": Quantity(r"Sweep (\w+) worlds ×", lambda: len(sweep().families), 1),
    "attacks of the default sweep": Quantity(r"worlds × (\w+) attacks ×", lambda: len(sweep().attacks), 1),
    "ε of the default sweep": Quantity(r"attacks × (\w+) ε ×", lambda: len(sweep().epsilons), 1),
    "seconds of the default sweep": Quantity(
        r"default sweep (?:took|takes) (?:about )?(\d+) s", "docs/sweeps.md", 1
    ),
    "ways of doubting pairs": Quantity(r"doubt some pairs in (\w+) ways", ways_of_doubt, 1),
    "flags of the rail audit": Quantity(
        r"(?:flags as many:|The audit flags|at the top flag) (\d+)", "docs/audit.md", 1
    ),
    "evidence of corruption in nats": Quantity(
        r"is (\d+) nats \(odds of", lambda: f"{robust_fit().certainty:g}", 1
    ),
    "allowance over ε": Quantity(
        r"calls at most ([\d.]+)ε of the pairs corrupt", lambda: robust_fit().allowance, 1
    ),
    "lowest Python": Quantity(r"Python ≥ ([\d.]+)", lambda: PROJECT["requires-python"].strip(">="), 2),
    "versions of jax": Quantity(r"jax (0\.\d+ or 0\.\d+)", lambda: jax_versions(PROJECT["dependencies"][0])),
    "version of the package": Quantity(r"(?<!cff-)\b[vV]ersion:? (\d\.\d\.\d)\b", lambda: PROJECT["version"]),
}


def jax_versions(dependency: str) -> str:
    low, below = re.fullmatch(r"jax>=0\.(\d+),<0\.(\d+)", dependency).groups()
    return " or ".join(f"0.{minor}" for minor in range(int(low), int(below)))


@pytest.mark.parametrize("name", slow_where(lambda name: "votes" in name, QUANTITIES))
def test_pages_agree(name):
    says, value, least = QUANTITIES[name]
    found = {(page, number(match)) for page, text in PAGES.items() for match in re.findall(says, text)}
    owned = {told for page, told in found if page == value}
    told = number(str(value())) if callable(value) else next(iter(owned), "")
    wrong = sorted(f"{page} has {said}" for page, said in found if said != told)
    assert not wrong, f"{name}: {', '.join(wrong)}; it is {told}."
    assert len({page for page, _ in found}) >= least, (
        f"{name}: the pages no longer say it as {says!r} expects."
    )


def test_another_number_on_one_page_is_named(monkeypatch):
    other = PAGES | {"README.md": PAGES["README.md"].replace("2,929 choices", "2,930 choices")}
    monkeypatch.setitem(globals(), "PAGES", other)
    with pytest.raises(AssertionError, match=r"rail choices: README.md has 2930; it is 2929\."):
        test_pages_agree("rail choices")


def marked_table(page: str, marker: str) -> list[list[str]]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    lines = re.search(rf"<!-- {marker}:start -->(.*?)<!-- {marker}:end -->", text, re.DOTALL)[1]
    return [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in lines.splitlines()
        if line.startswith("| ")
    ]


def test_the_audit_of_the_rail_choices_is_the_same_in_sentence_table_and_list():
    """The top of the page, the list of what `fit_reward` gives, and the witness of one cross-validation beside them."""
    text = PAGES["docs/audit.md"]
    robust = next(row for row in marked_table("audit.md", "audit") if row[0].startswith("robust"))
    accuracy, loss = re.findall(r"\.\d{3}(?!\d)", robust[1])[0], re.findall(r"\.\d{3}(?!\d)", robust[2])[0]
    assert f"without ε: {accuracy} and {loss}" in text
    plain = next(row for row in marked_table("audit.md", "audit") if row[0] == "plain")
    by_name = {row[0]: row for row in marked_table("audit.md", "estimators")}
    assert by_name["plain"][3].split("/")[0] == re.findall(r"\.\d{3}", plain[1])[0]


def test_issue_types_on_the_page_are_those_of_the_code():
    """In their order; a new one need not be described there, nor measured at once."""
    from robust_rlhf_jax.audit.issues import ISSUES

    text = (ROOT / "docs/audit.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `(\w+)` \|", text.split("\n| issue |")[1].split("\n\n")[0], re.MULTILINE)
    assert len(described) > 5
    assert described == [name for name in ISSUES if name in described]
    assert {row[0] for row in marked_table("audit.md", "faults")[1:]} <= set(ISSUES)


def test_the_notebooks_are_those_of_the_tutorials_and_of_the_site():
    there = {path.stem for path in (ROOT / "notebooks").glob("*.py")}
    listed = set(
        re.findall(r"\]\(notebooks/(\w+)\.md\)", (ROOT / "docs/tutorials.md").read_text(encoding="utf-8"))
    )
    hooks = (ROOT / "docs/tools/hooks.py").read_text(encoding="utf-8")
    assert (
        listed
        == there
        == set(re.findall(r'"(\w+)"', re.search(r"NOTEBOOKS = \((.*?)\)", hooks, re.DOTALL)[1]))
    )


def test_every_extra_is_listed_with_its_size():
    text = (ROOT / "docs/quickstart.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| (\d+|not measured) \|$", text, re.MULTILINE)
    assert {name for name, _ in rows} == set(PROJECT["optional-dependencies"])


def test_nothing_that_an_audit_shows_calls_the_labels_of_a_file_clean():
    """Nobody knows that they are."""
    shown = [
        path for path in (ROOT / "robust_rlhf_jax/audit").rglob("*") if path.suffix in (".py", ".html", ".js")
    ]
    assert len(shown) > 40
    assert [path.name for path in shown if "clean labels" in path.read_text(encoding="utf-8").lower()] == []
