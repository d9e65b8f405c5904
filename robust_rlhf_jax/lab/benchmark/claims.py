"""Figures that somebody reports, as JSON, and what the same cells give here."""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from robust_rlhf_jax.preferences.bundled import BUNDLED, BUNDLED_FILES

from .config import BenchmarkConfig
from .plugins import Players
from .problems import Problem, read_problem
from .run import Row, run_benchmark
from .summary import means

# Other processors round in other ways, and a pair near ½ changes sides.
ACCURACY, LOG_LOSS = 0.005, 0.01
NEEDED = {"file", "data", "attack", "epsilon", "estimator", "accuracy", "log_loss"}
OPTIONAL = {"folds", "pairs", "seed", "by"}


class Checked(NamedTuple):
    """A `claim`, the `rows` that the same cells give, and `problem`: what is wrong, None if it is reproduced."""

    claim: dict[str, Any]
    rows: list[Row]
    problem: str | None

    @property
    def by(self) -> str:
        """Who reports it, "" where nobody says."""
        return str(self.claim.get("by", ""))

    @property
    def line(self) -> str:
        c = self.claim
        name = f"{c['estimator']} on {c['file']}, {c['attack']} at ε = {c['epsilon']:g}"
        if self.problem is None:
            return f"{name}: reproduced, accuracy {c['accuracy']:.3f}, log-loss {c['log_loss']:.3f}"
        return f"{name}: NOT reproduced: {self.problem}"


def read_claims(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON file, one or a list.

    **Raises:** ValueError in one sentence for a file that holds no claims.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as JSON: {error}") from None
    found = content if isinstance(content, list) else [content]
    if not found:
        raise ValueError(f"{path} has no rows: give at least one claim.")
    for i, claim in enumerate(found):
        if not isinstance(claim, dict):
            raise ValueError(f"{path}: row {i + 1} is no JSON object.")
        missing, unknown = NEEDED - claim.keys(), claim.keys() - NEEDED - OPTIONAL
        if missing:
            raise ValueError(f"{path}: row {i + 1} has no {sorted(missing)[0]}.")
        if unknown:
            raise ValueError(f"{path}: row {i + 1} has {sorted(unknown)[0]}, which is none of the fields.")
        _check_types(f"{path}: row {i + 1}", claim)
        beside = Path(path).parent / str(claim["file"])
        # A file of pairs that lies beside its claims; one that is called as bundled ones are is none.
        if claim["file"] not in (*BUNDLED, *BUNDLED_FILES) and beside.exists():
            found[i] = claim | {"file": str(beside)}
    return found


def _check_types(where: str, claim: dict[str, Any]) -> None:
    for name in ("file", "data", "attack", "estimator"):
        if not isinstance(claim[name], str):
            raise ValueError(f"{where}: {name} is {claim[name]!r}, no text.")
        if not claim[name]:
            raise ValueError(f"{where}: {name} is empty: say which.")
    for name in ("epsilon", "accuracy", "log_loss"):
        value = claim[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{where}: {name} is {value!r}, no number.")
    for name in ("folds", "pairs", "seed"):
        if name in claim and (isinstance(claim[name], bool) or not isinstance(claim[name], int)):
            raise ValueError(f"{where}: {name} is {claim[name]!r}, no whole number.")


def settings_of(claim: dict[str, Any]) -> BenchmarkConfig:
    """The settings of a claim; those that it does not name are the usual ones."""
    settings = {name: claim[name] for name in ("folds", "pairs", "seed") if name in claim}
    return BenchmarkConfig((claim["attack"],), (float(claim["epsilon"]),), (claim["estimator"],), **settings)


def check_before(claims: list[dict[str, Any]], known: Players) -> None:
    """**Raises:** ValueError for a claim of an attack, an estimator, settings or a file that there are not."""
    for claim in claims:
        config = settings_of(claim)
        config.check(known.attacks, known.estimators)
        read_problem(claim["file"], config.pairs, config.seed)


def check_claim(claim: dict[str, Any], known: Players) -> Checked:
    """Compute the cells of a claim, and compare accuracy and log-loss.

    **Raises:** ValueError for an attack, an estimator or settings that there are not; as `read_problem`.
    """
    config = settings_of(claim)
    config.check(known.attacks, known.estimators)
    problem = read_problem(claim["file"], config.pairs, config.seed)
    if problem.digest != claim["data"]:
        return Checked(claim, [], f"its data are {claim['data']}, and those here are {problem.digest}.")
    rows = run_benchmark([problem], config, known.attacks, known.estimators)
    key = (problem.name, claim["attack"], config.epsilons[0], claim["estimator"])
    found = means(rows).get(key)
    if found is None:
        return Checked(claim, [], "the file does not tell raters apart, and this needs it.")
    apart = abs(found.accuracy - claim["accuracy"]), abs(found.log_loss - claim["log_loss"])
    if not (apart[0] <= ACCURACY and apart[1] <= LOG_LOSS):
        return Checked(claim, rows, f"here accuracy {found.accuracy:.3f}, log-loss {found.log_loss:.3f}.")
    return Checked(claim, rows, None)


def counts_for(checked: Checked, problem: Problem, config: BenchmarkConfig) -> bool:
    """Whether a reproduced claim is of the same pairs, parts and ε as a run: it then counts among its worst cases."""
    mine = settings_of(checked.claim)
    same = all(getattr(mine, name) == getattr(config, name) for name in ("folds", "pairs", "seed"))
    known = mine.epsilons[0] in config.epsilons and checked.claim["data"] == problem.digest
    return checked.problem is None and same and known


def claim_of(row: Row, problem: Problem, config: BenchmarkConfig, mean: Any) -> dict[str, Any]:
    """The claim that a run's own figure makes: what an outsider writes down."""
    return {
        "file": problem.source, "data": row["data"], "attack": row["attack"], "epsilon": row["epsilon"],
        "estimator": row["estimator"], "folds": config.folds, "pairs": config.pairs, "seed": config.seed,
        "accuracy": round(mean.accuracy, 4), "log_loss": round(mean.log_loss, 4),
    }  # fmt: skip
