"""Every example of a docstring runs and prints what it says."""

import doctest
import importlib
from pathlib import Path

import pytest

import robust_rlhf_jax

ROOT = Path(robust_rlhf_jax.__file__).parent
WITH_EXAMPLES = [path for path in sorted(ROOT.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


def slow_to_compile(path: Path):
    return pytest.mark.slow if path == ROOT / "algorithms" / "_robust_policy.py" else ()


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=name_of(path), marks=slow_to_compile(path)) for path in WITH_EXAMPLES]
)
def test_examples_print_what_they_say(path):
    module = importlib.import_module(name_of(path))
    globs = dict(vars(module))
    runner = doctest.DocTestRunner()
    # Jitted functions are none to doctest's own search of a module.
    for found in [module, *(v.__wrapped__ for v in globs.values() if hasattr(v, "__wrapped__"))]:
        for example in doctest.DocTestFinder().find(found, module=module, globs=globs):
            runner.run(example)
    assert runner.tries > 0
    assert runner.failures == 0


def test_every_public_function_has_an_example():
    functions = [getattr(robust_rlhf_jax, name) for name in robust_rlhf_jax.__all__]
    without = [
        f.__name__ for f in functions if callable(f) and not isinstance(f, type) and ">>> " not in f.__doc__
    ]
    assert not without
