"""Every robust fit of the audit on the rail choices: `python benchmarks/audit_estimators.py [--repeats 5]`.

Held-out accuracy / log-loss on the labels before the flips (5 folds of people × repeats), by the fraction of labels
flipped, and what share of the flipped pairs the first of them flags. The tables of docs/audit.md. `--estimators` names
some of them.
"""

import argparse

import jax
from studies import short

from robust_rlhf_jax.audit import audit
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.preferences import load_rail_choices, rail_people
from robust_rlhf_jax.rewards.registry import ESTIMATORS

# (column, ε, fraction flipped, which)
CASES = (
    ("0", 0.0, 0.0, "flip_confident"),
    (".05", 0.05, 0.05, "flip_confident"),
    (".10", 0.10, 0.10, "flip_confident"),
    (".15", 0.15, 0.15, "flip_confident"),
    (".20", 0.20, 0.20, "flip_confident"),
    ("ε = .1, none flipped", 0.1, 0.0, "flip_confident"),
    ("random .10", 0.10, 0.10, "flip_random"),
    ("random .20", 0.20, 0.20, "flip_random"),
)


def cell(fit):
    return f"{short(fit.accuracy)}/{short(fit.log_loss)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--estimators", nargs="+", default=list(ESTIMATORS), choices=list(ESTIMATORS))
    given = parser.parse_args()
    repeats = given.repeats
    data, people = load_rail_choices(), rail_people()

    def run(estimator):
        return [
            audit(
                jax.random.key(0), data, epsilon, groups=people, inject=share, injection=which,
                estimator=estimator, repeats=repeats,
            )
            for _, epsilon, share, which in CASES
        ]  # fmt: skip

    found = {name: run(name) for name in given.estimators}
    default = found[given.estimators[0]]
    print("| estimator |" + "".join(f" {column} |" for column, *_ in CASES))
    print("|---|" + "---|" * len(CASES))
    print("| plain |" + "".join(f" {cell(result.plain)} |" for result in default))
    for name, results in found.items():
        print(f"| `{name}` |" + "".join(f" {cell(result.robust)} |" for result in results))
    print(
        f"\n| share of the flipped pairs that `{given.estimators[0]}` flags |"
        + "".join(f" {c[0]} |" for c in CASES)
    )
    print("|---|" + "---|" * len(CASES))
    print("| precision = recall |" + "".join(f" {short(result.precision)} |" for result in default))
    fits = [fit for results in found.values() for result in results for fit in (result.plain, result.robust)]
    largest = max(fit.accuracy_error for fit in fits)
    print(f"\nLargest standard error of an accuracy {short(largest)}. {environment()}")


if __name__ == "__main__":
    main()
