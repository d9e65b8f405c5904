"""Does a test notice? Sampled mutations of the numerical code, each run against the tests that mirror its file.

`pip install cosmic-ray`, then `python benchmarks/mutations.py --count 40` prints every mutant and the share caught. The
mutants are those of Cosmic Ray's operators; a copy of the repository is mutated, never the working tree. Mutations of
annotations and docstrings are passed over, and operators that no float has: any run would notice them. A mutant that
runs into the time limit is counted apart.
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
FOLDERS = ("kernels", "estimators", "oracles", "algorithms")
# Files whose tests have another name than test_<file>.py; later ones run if the earlier ones pass.
MIRRORS = {
    "estimators/label_noise": ["estimators/test_margin_fit", "estimators/test_reward_fits"],
    "estimators/logistic_problem": ["estimators/test_logistic_regression", "estimators/test_logistic_lbfgs"],
    "estimators/margin_losses": ["estimators/test_margin_fit"],
    "estimators/moments": ["estimators/test_robust_moments", "estimators/test_bounded_influence"],
    "estimators/projection": ["estimators/test_confidence_set"],
    "estimators/regression": ["estimators/test_robust_regression"],
    "estimators/reward": ["estimators/test_robust_reward"],
    "estimators/reward_protocol": ["estimators/test_reward_fits"],
    "estimators/row_geometry": ["estimators/test_trimmed_mle", "estimators/test_units"],
    "estimators/scaled_span": ["estimators/test_row_span", "estimators/test_units"],
    "estimators/separation": ["estimators/test_trimmed_mle"],
    "estimators/suspects": ["estimators/test_bounded_influence", "estimators/test_range"],
    "oracles/backward_induction": ["oracles/test_value_iteration"],
    "oracles/base": ["oracles/test_oracle_protocol"],
    "oracles/exact": ["oracles/test_oracle_protocol"],
    "oracles/game": ["oracles/test_primal_dual_oracle", "oracles/test_pooled_planning"],
    "oracles/lsvi": ["oracles/test_value_iteration", "oracles/test_oracle_protocol"],
    "oracles/primal_dual": ["oracles/test_primal_dual_oracle"],
    "oracles/rlsvi": ["oracles/test_value_iteration", "oracles/test_oracle_protocol"],
    "oracles/saddle": ["oracles/test_primal_dual_oracle"],
    "oracles/transitions": ["oracles/test_value_iteration", "oracles/test_pooled_planning"],
    "algorithms/condition_number": ["algorithms/test_pessimism", "algorithms/test_algorithms"],
    "algorithms/objectives": ["algorithms/test_pessimism"],
    "algorithms/pessimistic_mle": ["algorithms/test_pessimism", "algorithms/test_algorithms"],
    "algorithms/solution": ["algorithms/test_algorithms"],
    "algorithms/standard": ["algorithms/test_algorithms"],
    "algorithms/uniform_coverage": ["algorithms/test_algorithms"],
}


def mirrored_tests(module: str) -> list[str]:
    """The test files of a module such as "kernels/ball"."""
    folder, name = module.split("/")
    return [f"tests/{test}.py" for test in MIRRORS.get(module, [f"{folder}/test_{name}"])]


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


def mutants_of(source: str) -> dict[int, list[tuple[str, int]]]:
    """(operator, occurrence) by line."""
    found: dict[int, list[tuple[str, int]]] = {}
    nodes = list(ast_nodes(get_ast(source)))
    for name in operator_names():
        if get_operator(name).arguments() or NO_FLOAT_HAS.search(name):
            continue
        operator = get_operator(name)()
        positions = [start for node in nodes for start, _ in operator.mutation_positions(node)]
        for occurrence, (line, _) in enumerate(positions):
            found.setdefault(line, []).append((name, occurrence))
    return found


def sample(count: int, seed: int, folders=FOLDERS):
    """(module, operator, mutated source): lines uniformly over all files, then one mutation of the line."""
    rng = random.Random(seed)
    paths = sorted(p for f in folders for p in (ROOT / PACKAGE / f).glob("[a-z]*.py"))
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
    command = [python, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
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
            target, original = copy / PACKAGE / f"{module}.py", (ROOT / PACKAGE / f"{module}.py").read_text()
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
