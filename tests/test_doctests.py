"""Every example of a docstring runs and prints what it says."""

import ast
import doctest
import importlib
import inspect
import sys
from pathlib import Path

import pytest

import robust_rlhf_jax

sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "tools"))
from public_names import definition, is_constant, packages, public_names

ROOT = Path(robust_rlhf_jax.__file__).parent
WITH_EXAMPLES = [path for path in sorted(ROOT.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


# Examples that take a second of work or more, nearly all of it compilation.
SLOW = {
    "kernels.sweep",
    "lab.attacks.base",
    "lab.worlds.lower_bound_world",
    "likelihood.davidson",
    "oracles.base",
    "preferences.data",
    "preferences.table_check",
    "_iterate",
    "algorithms._best_of_n",
    "algorithms._condition_number",
    "algorithms._first_order",
    "algorithms._pessimistic_mle",
    "algorithms._robust_policy",
    "algorithms._standard",
    "algorithms._uniform_coverage",
    "algorithms._unknown_epsilon",
    "algorithms.descent",
    "algorithms.solution",
    "audit.advice",
    "audit.by_passes.source_audit",
    "audit.cross_fit",
    "audit.detection",
    "audit.findings",
    "audit.gain",
    "audit.held_out",
    "audit.issues.base",
    "audit.result",
    "audit.suspects",
    "audit.verdicts",
    "heads.refit",
    "heads.robust_head",
    "io.descriptions",
    "lab.attacks._adaptive",
    "lab.attacks._adaptive_on_table",
    "lab.attacks._compose",
    "lab.attacks._corrupt_transitions",
    "lab.attacks._corrupt_transitions_on_table",
    "lab.attacks._flip_confident",
    "lab.attacks._flip_random",
    "lab.attacks._goal_haters",
    "lab.attacks._impersonate",
    "lab.attacks._least_covered",
    "lab.attacks._leverage_on_table",
    "lab.attacks._leverage_points",
    "lab.attacks._mimicry",
    "lab.attacks._praise_rare",
    "lab.attacks._push_features",
    "lab.attacks._push_on_table",
    "lab.attacks._scale_features",
    "lab.attacks._scale_on_table",
    "lab.attacks.implicit",
    "lab.attacks.teachers",
    "lab.benchmark.run",
    "lab.diagnostics._coverage",
    "lab.diagnostics._hidden_actions",
    "lab.diagnostics._stability",
    "lab.diagnostics.kappa",
    "lab.diagnostics.label_limits",
    "lab.pessimistic_median",
    "lab.rivals",
    "lab.sweeps.command",
    "lab.sweeps.engine",
    "lab.worlds.partial_coverage",
    "lab.worlds.random_worlds",
    "leaderboard.ratings",
    "likelihood.confidence",
    "likelihood.logistic_regression",
    "likelihood.projection",
    "likelihood.trimmed",
    "mdp.planning",
    "mdp.rollouts",
    "moments.covariance",
    "moments.mean",
    "moments.regression",
    "oracles.lsvi",
    "oracles.rlsvi",
    "preferences.argument_votes",
    "preferences.bradley_terry",
    "raters._finer",
    "raters._reliability",
    "raters._score_test",
    "raters.rating",
    "raters.table",
    "raters.votes",
    "rewards.epsilon_estimate",
    "rewards.explanations",
    "rewards.filter_and_trim",
    "rewards.fit",
    "rewards.front_door",
    "rewards.model",
    "rewards.reward_fit",
    "rewards.streamed.fit",
    "rewards.streamed.processes",
    "scikit_learn",
}


def slow_to_compile(path: Path):
    return pytest.mark.slow if name_of(path).removeprefix("robust_rlhf_jax.") in SLOW else ()


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=name_of(path), marks=slow_to_compile(path)) for path in WITH_EXAMPLES]
)
def test_examples_print_what_they_say(path):
    module = importlib.import_module(name_of(path))
    globs = dict(vars(module))
    runner = doctest.DocTestRunner()
    # Jitted functions are none to doctest's own search of a module; those of other modules are examined there.
    jitted = [v for v in globs.values() if hasattr(v, "__wrapped__") and not inspect.isroutine(v)]
    for found in [module, *(v.__wrapped__ for v in jitted if v.__wrapped__.__module__ == module.__name__)]:
        for example in doctest.DocTestFinder().find(found, module=module, globs=globs):
            runner.run(example)
    assert runner.tries > 0
    assert runner.failures == 0


@pytest.mark.slow
def test_every_public_name_has_an_example():
    """All functions and classes that a package exports; constants have no docstring of their own."""
    names = [name for package in ("", *packages()) for name in public_names(package) if not is_constant(name)]
    without = {name.target for name in names if ">>> " not in docstring(name.home, name.name)}
    assert not without, f"Give an example to {', '.join(sorted(without))}."


def docstring(home: str, name: str) -> str:
    return ast.get_docstring(definition(home, name)) or ""
