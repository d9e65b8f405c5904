"""Signatures say what they take: counted over the source, nothing is imported."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "robust_rlhf_jax"
LEAST = 0.85


def arguments(source: str) -> Iterator[ast.arg]:
    """Every argument of every function but `self` and `cls`; lambdas are left out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            rest = [arg for arg in (given.vararg, given.kwarg) if arg is not None]
            for arg in [*given.posonlyargs, *given.args, *given.kwonlyargs, *rest]:
                if arg.arg not in ("self", "cls"):
                    yield arg


def test_what_is_counted():
    source = "def f(self, a, b: int, *c, d=1, **e: str): return lambda x: x"
    assert [(arg.arg, arg.annotation is not None) for arg in arguments(source)] == [
        ("a", False),
        ("b", True),
        ("d", False),
        ("c", False),
        ("e", True),
    ]


@pytest.mark.slow
def test_most_arguments_are_annotated():
    found = {path: list(arguments(path.read_text(encoding="utf-8"))) for path in PACKAGE.rglob("*.py")}
    bare = {path: sum(arg.annotation is None for arg in args) for path, args in found.items()}
    share = 1 - sum(bare.values()) / sum(map(len, found.values()))
    worst = sorted(bare, key=lambda path: bare[path], reverse=True)[:5]
    names = ", ".join(f"{path.relative_to(PACKAGE)} ({bare[path]})" for path in worst)
    assert share >= LEAST, f"{share:.1%} of the arguments are annotated; most bare ones: {names}"
