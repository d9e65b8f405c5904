"""The leaderboard in eighty columns."""

import io

import pytest
from rich.console import Console

from robust_rlhf_jax.leaderboard import Rating
from robust_rlhf_jax.leaderboard.printed import broken, print_ratings

LONG = "meta-llama/Meta-Llama-3.1-405B-Instruct-FP8-Turbo-2024-07"


def printed(names):
    rows = [Rating(name, 1043.2, 1025.1, 1060.4, 2, 13, 1112.0, 1115.0, 12185, 0.59) for name in names]
    console = Console(file=io.StringIO(), width=80)
    print_ratings(console, rows)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize(
    "names", [[LONG, "b [red]"], ["x" * 200, "y z"], ["模型" * 30, "a"], ["a\nb\x1b[31m", "c"]]
)
def test_numbers_are_whole_whatever_models_are_called(names):
    lines = printed(names)
    assert max(map(len, lines)) <= 80
    for number in ("2–13", "1043", "1025–1060", "1112", "1115", "12,185", "59%"):
        assert sum(number in line for line in lines) == 2


def test_a_long_name_is_broken_between_its_parts():
    assert "".join(broken(LONG, 16)) == LONG
    assert broken(LONG, 16) == ["meta-llama/Meta-", "Llama-3.1-405B-", "Instruct-FP8-", "Turbo-2024-07"]
    assert broken("x" * 20, 16) == ["x" * 16, "x" * 4]
    assert broken("two words", 16) == ["two words"]


def test_names_with_markup_and_codes_are_shown_as_they_are():
    text = "\n".join(printed(["b [red]", "\x1b[31m"]))
    assert "b [red]" in text
    assert "\\x1b[31m" in text
