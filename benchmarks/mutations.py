"""Does a test notice? Sampled mutations of the numerical code, each run against the tests that mirror its file.

`pip install cosmic-ray`, then `python benchmarks/mutations.py --count 40` prints every mutant and the share caught. The
mutants are those of Cosmic Ray's operators; a copy of the repository is mutated, never the working tree. Left out are
mutations of annotations and docstrings; operators that no float has, which any run would notice; a module's constants,
whose values are choices that `benchmarks/` judges; decorators that compile, and the flags of static fields, which
Equinox's `filter_jit` does not need for a number. A mutant that runs into the time limit is counted apart.
"""

import argparse
import ast
import difflib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "robust_rlhf_jax"
# From arithmetic to what floats do not have.
NO_FLOAT_HAS = re.compile(
    r"(Add|Sub|Mul|Div|Pow|Mod|MatMult|USub|Eq|LtE?|GtE?)_(Bit\w+|.Shift|Invert|Not|Is|IsNot)$"
)
FOLDERS = (
    "kernels",
    "moments",
    "likelihood",
    "rewards",
    "rewards/rivals",
    "oracles",
    "oracles/primal_dual",
    "algorithms",
)
# Files whose tests have another name than test_<file>.py; later ones run if the earlier ones pass.
MIRRORS = {
    "moments/covariance": [
        "moments/test_covariance",
        "moments/test_filters",
        "invariances/test_range",
        "invariances/test_units",
    ],
    "moments/influence": [
        "moments/test_influence",
        "invariances/test_bounded_influence",
        "moments/test_filters",
    ],
    "moments/mean": ["moments/test_mean", "moments/test_filters", "invariances/test_range"],
    "moments/regression": ["moments/test_regression", "invariances/test_bounded_influence"],
    "moments/scaled_span": ["moments/test_span", "invariances/test_units"],
    "likelihood/geometry": ["likelihood/test_geometry", "likelihood/test_trimmed", "invariances/test_units"],
    "likelihood/logistic_problem": [
        "likelihood/test_logistic_regression",
        "likelihood/test_logistic_lbfgs",
    ],
    "likelihood/margin_losses": ["likelihood/test_margin_fit"],
    "likelihood/projection": ["likelihood/test_projection", "likelihood/test_confidence"],
    "likelihood/separation": ["likelihood/test_separation", "likelihood/test_trimmed"],
    "rewards/candidates": ["rewards/test_fit"],
    "rewards/config": ["rewards/test_fit"],
    "rewards/doubt": ["rewards/test_fit"],
    "rewards/protocol": ["rewards/test_registry"],
    "rewards/interval": ["rewards/test_epsilon_estimate", "rewards/test_fit"],
    "rewards/suspicion": ["rewards/test_fit", "rewards/test_alternative"],
    "rewards/rivals/label_noise": ["rewards/test_registry", "likelihood/test_margin_fit"],
    "oracles/backward_induction": ["oracles/test_value_iteration"],
    "oracles/base": ["oracles/test_oracle_protocol"],
    "oracles/exact": ["oracles/test_oracle_protocol"],
    "oracles/lsvi": ["oracles/test_value_iteration", "oracles/test_oracle_protocol"],
    "oracles/rlsvi": ["oracles/test_value_iteration", "oracles/test_oracle_protocol"],
    "oracles/transitions": ["oracles/test_value_iteration", "oracles/test_pooled_planning"],
    "oracles/primal_dual/data": [
        "oracles/test_primal_dual_data",
        "oracles/test_primal_dual_oracle",
        "oracles/test_pooled_planning",
    ],
    "oracles/primal_dual/oracle": ["oracles/test_primal_dual_oracle", "test_module"],
    "oracles/primal_dual/updates": ["oracles/test_primal_dual_updates", "oracles/test_primal_dual_oracle"],
    "algorithms/_condition_number": ["algorithms/test_pessimism", "algorithms/test_algorithms"],
    "algorithms/_first_order": ["algorithms/test_first_order", "algorithms/test_algorithms"],
    "algorithms/_pessimistic_mle": ["algorithms/test_pessimistic_mle", "algorithms/test_algorithms"],
    "algorithms/_standard": ["algorithms/test_algorithms"],
    "algorithms/_uniform_coverage": ["algorithms/test_algorithms", "algorithms/test_table_evidence"],
    "algorithms/_unknown_epsilon": ["algorithms/test_unknown_epsilon"],
    "algorithms/pessimism_objective": ["algorithms/test_pessimism_objective", "algorithms/test_pessimism"],
    "algorithms/solution": ["algorithms/test_algorithms"],
    "algorithms/table_evidence": ["algorithms/test_table_evidence"],
}


def mirrored_tests(module: str) -> list[str]:
    """The test files of a module such as "kernels/ball"."""
    folder, name = module.rsplit("/", 1)
    return [f"tests/{test}.py" for test in MIRRORS.get(module, [f"{folder}/test_{name.lstrip('_')}"])]


def meaning(source: str) -> str:
    """The syntax tree without annotations and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg):
            node.annotation = None if isinstance(node, ast.arg) else ast.Constant(0)
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            body[:1] = [ast.Pass()]
    return ast.dump(tree)


def choices_of(source: str) -> set[int]:
    """Lines of a module's constants, of static fields and of decorators that compile."""
    constants = [node for node in ast.parse(source).body if isinstance(node, ast.Assign | ast.AnnAssign)]
    lines = {line for node in constants for line in range(node.lineno, node.end_lineno + 1)}
    speed = re.compile(r"static=True|^@(jax\.jit|eqx\.filter_jit)")
    return lines | {number for number, line in enumerate(source.splitlines(), 1) if speed.search(line)}


def mutants_of(source: str) -> dict[int, list[tuple[str, int]]]:
    """(operator, occurrence) by line, without `choices_of` the source."""
    passed_over = choices_of(source)
    found: dict[int, list[tuple[str, int]]] = {}
    nodes = list(ast_nodes(get_ast(source)))
    for name in operator_names():
        if get_operator(name).arguments() or NO_FLOAT_HAS.search(name):
            continue
        operator = get_operator(name)()
        positions = [start for node in nodes for start, _ in operator.mutation_positions(node)]
        for occurrence, (line, _) in enumerate(positions):
            if line in passed_over:
                continue
            found.setdefault(line, []).append((name, occurrence))
    return found


def sample(count: int, seed: int, folders=FOLDERS):
    """(module, operator, mutated source): lines uniformly over all files, then one mutation of the line."""
    rng = random.Random(seed)
    paths = sorted(p for f in folders for p in (ROOT / PACKAGE / f).glob("*.py") if p.stem != "__init__")
    sources = {p: p.read_text() for p in paths}
    lines = [(p, where) for p, text in sources.items() for where in mutants_of(text).values()]
    rng.shuffle(lines)
    for path, choices in lines:
        name, occurrence = rng.choice(choices)
        mutated = mutate_code(sources[path], get_operator(name)(), occurrence)
        try:
            same = mutated is None or meaning(mutated) == meaning(sources[path])
        except SyntaxError:
            continue
        if not same:
            count -= 1
            yield str(path.relative_to(ROOT / PACKAGE).with_suffix("")), name, mutated
        if count == 0:
            return


def outcome(copy: Path, tests: list[str], python: str, limit: float) -> str:
    """ "caught", "survived", or "timeout"."""
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [python, "-m", "pytest", "-x", "-q", "-n", "0", "-m", "", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return "timeout"
    return "survived" if done.returncode == 0 else "caught"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folders", nargs="+", default=FOLDERS, choices=FOLDERS)
    parser.add_argument("--limit", type=float, default=900.0, help="seconds a mutant")
    parser.add_argument(
        "--budget", type=float, default=float("inf"), help="seconds after which none is begun"
    )
    parser.add_argument("--python", default=sys.executable, help="the Python that has the tests' packages")
    options = parser.parse_args()
    began, counts = time.monotonic(), {"caught": 0, "survived": 0, "timeout": 0}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in (PACKAGE, "tests", "pyproject.toml", "README.md"):
            source = ROOT / part
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy / part)
        for module, operator, mutated in sample(options.count, options.seed, options.folders):
            if time.monotonic() - began > options.budget:
                break
            target = copy / PACKAGE / f"{module}.py"
            original = target.read_text()
            target.write_text(mutated)
            found = outcome(copy, mirrored_tests(module), options.python, options.limit)
            target.write_text(original)
            counts[found] += 1
            changed = difflib.unified_diff(original.splitlines(), mutated.splitlines(), lineterm="", n=0)
            shown = [line for line in changed if not line.startswith(("---", "+++", "@@"))]
            print(f"{found:9}{module} ({operator.split('/')[-1]})", *shown, sep="\n    ", flush=True)
    judged = counts["caught"] + counts["survived"]
    share = counts["caught"] / max(judged, 1)
    print(
        f"{counts['caught']} of {judged} mutants caught ({share:.0%}); {counts['timeout']} more ran out of time"
    )


if __name__ == "__main__":
    main()
