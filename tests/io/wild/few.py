"""Which of the cases stand for the others in the fast tests."""

from collections.abc import Hashable, Iterable

from slow_parameters import slow_where

from .case import Case

# Schemas and containers of which no case is the first of its way.
TOO = frozenset(
    {
        "flag_of_each_side",
        "openai_preference",
        "lmsys_55k",
        "helpsteer3",
        "multipref",
        "summarize_from_feedback",
        "npz",
        "safetensors",
    }
)


def few_fast(cases: Iterable[Case], firsts: frozenset[str]) -> list:
    """The names of `cases` as parameters: those that are no first of their way, nor in `firsts` or `TOO`, are slow."""
    cases = list(cases)
    ways = {}
    for case in cases:
        ways.setdefault(way(case), case.name)
    fast = {*ways.values(), *firsts, *TOO}
    return slow_where(lambda name: name not in fast, [case.name for case in cases])


def way(case: Case) -> Hashable:
    """How a case is stored and invented, what it says, and what a reader needs to be told."""
    return (
        case.store.__qualname__,
        case.world,
        case.truth.__qualname__,
        *(case.flags or ()),
        bool(case.refused),
    )
