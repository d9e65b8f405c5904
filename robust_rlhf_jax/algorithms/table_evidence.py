"""What the paper's algorithms do first: leave out the pairs that the table of features contradicts."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from robust_rlhf_jax.preferences import PreferenceData, ask_table, off_table

from .solution import Solution


def solve_asked(
    data: PreferenceData, config: Any, solve: Callable[[PreferenceData, Any], Solution]
) -> Solution:
    """`solve(data, config)` on `ask_table(data)`, or where `config.ask_table` is false on `data`.

    The share of pairs off the table joins the diagnostics as `off_table` either way; above ½ nothing was left out.
    """
    asked, share = _ask(data, config.ask_table)
    # The table is asked in a program of its own, and both settings share the program that solves: data that the table
    # does not contradict give the same bits either way.
    solution = solve(asked, dataclasses.replace(config, ask_table=True))
    return dataclasses.replace(solution, diagnostics={**solution.diagnostics, "off_table": share})


def _ask(data: PreferenceData, leave_out: bool):
    asked, off = ask_table(data) if leave_out else (data, off_table(data))
    return asked, jnp.mean(off, dtype=data.features.dtype)
