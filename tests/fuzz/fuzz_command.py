"""Bad files and flags for `robust-rlhf`, by number: `python tests/fuzz/fuzz_command.py [cases] [first]`.

Each runs the command in this process and in a folder of its own, and must end within a minute, with exit status 0 or
with 2 and one sentence (or the help's pointer for bad syntax), without a traceback, a control character on the
terminal, a NaN in JSON or half-written output, and with the given files as they were. Cells of sweeps are made up: what
is tried is everything around them.
"""

import contextlib
import hashlib
import io
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import fuzz_cases
import numpy as np

from robust_rlhf_jax import cli
from robust_rlhf_jax.lab.reproduce import command as reproduction
from robust_rlhf_jax.lab.sweeps import engine

SECONDS = 60
RESULTS = {
    "audit": {"suspects.csv", "audit.json", "suspicion.png"},
    "sweep": {"results.parquet", "gap_vs_epsilon.png", "summary.json", "parts"},
}


class Outcome(NamedTuple):
    """`complaints`: what should not be; empty if all is well."""

    words: list[str]
    status: object
    seconds: float
    complaints: list[str]


def run_case(number: int) -> Outcome:
    """Case `number` in a new folder, which is removed."""
    chance = random.Random(number)
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return _run(list(fuzz_cases.KINDS.values())[number % len(fuzz_cases.KINDS)](chance))
        finally:
            os.chdir(before)


def _run(words: list[str]) -> Outcome:
    given = snapshot()
    printed, errors = io.StringIO(), io.StringIO()
    status, trouble = 0, []
    started = time.monotonic()
    argv, sys.argv = sys.argv, ["robust-rlhf", *words]
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(SECONDS)
    try:
        with made_up_cells(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
            cli.main()
    except SystemExit as end:
        status = end.code
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        trouble.append("traceback: " + "".join(traceback.format_exception(error)[-3:]))
    finally:
        signal.alarm(0)
        sys.argv = argv
    complaints = trouble + list(complain(words, status, printed.getvalue(), errors.getvalue(), given))
    return Outcome(words, status, time.monotonic() - started, complaints)


def _late(number, frame):
    raise TimeoutError(f"no end in {SECONDS} s")


def complain(words, status, printed: str, errors: str, given):
    """What is wrong after the command."""
    if status not in (0, 2):
        yield f"exit status {status}"
    if "Traceback" in errors or "no end in" in errors:
        yield errors
    for text in (printed, errors):
        if not text.replace("\n", "").isprintable():
            yield f"control characters on the terminal: {text[:300]!r}"
    own = errors.startswith("robust-rlhf: ")
    if status == 2 and not (own and errors.count("\n") == 1) and "help" not in errors:
        yield f"no single sentence: {errors[:300]!r}"
    named = Path(words[1]).name if words[0] == "audit" and len(words) > 1 else ""
    about_a_flag = "--" in errors or "skip_bad" in errors
    if status == 2 and own and named.startswith("data") and named not in errors and not about_a_flag:
        yield f"a sentence without the file's name: {errors[:300]!r}"
    if status == 0 and errors:
        yield f"words on stderr: {errors[:300]!r}"
    now = snapshot()
    changed = [name for name, digest in given.items() if now.get(name) != digest]
    if changed and not (status == 0 and words[:1] == ["report"]):
        yield f"changed: {changed}"
    new = set(now) - set(given)
    if status != 0 and new:
        yield f"left behind: {sorted(new)}"
    if any("finished" in name for name in new):
        yield f"scratch left behind: {sorted(new)}"
    if (
        status == 0
        and "out" in now
        and words[0] in RESULTS
        and not RESULTS[words[0]] <= {Path(name).name for name in now}
    ):
        yield f"not whole: {sorted(new)}"
    for path in map(Path, new):
        if path.suffix == ".json" and path.is_file():
            constants = []
            json.loads(path.read_text(encoding="utf-8"), parse_constant=constants.append)
            if constants:
                yield f"{constants[0]} in {path}"


def snapshot() -> dict[str, str]:
    """Every path below this folder and a digest of what it holds."""
    return {str(path): digest(path) for path in sorted(Path().rglob("*"))}


def digest(path: Path) -> str:
    if path.is_symlink():
        return os.readlink(path)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"


@contextlib.contextmanager
def made_up_cells():
    """Sweeps compute nothing; reproductions end where they would begin."""

    def solve(config, job, material):
        for name, part in job.parts.items():
            n = len(job.group.lanes.seed)
            outcome = np.full(n, 0.5), np.ones(n), np.zeros(n, int), np.ones(n, int)
            yield {part: engine._rows(config, job.group, name, outcome)}

    def material(config, worlds):
        return engine.Material(worlds, None, np.full(len(config.families) * config.seeds, 0.5))

    def reproduce(*_):
        raise ValueError("reproductions are not fuzzed further")

    patches = [
        (engine, "solve_job", solve),
        (engine, "sample_material", material),
        (reproduction.table1, "run_table1", reproduce),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in patches]
    try:
        for module, name, new in patches:
            setattr(module, name, new)
        yield
    finally:
        for module, name, old in before:
            setattr(module, name, old)


def main(cases: int = 500, first: int = 0) -> int:
    """Run the cases, print those that complain and a count; the number of complaints."""
    os.environ["ROBUST_RLHF_CACHE"] = "off"
    statuses, bad, slowest, started = Counter(), 0, 0.0, time.monotonic()
    for number in range(first, first + cases):
        outcome = run_case(number)
        statuses[outcome.status] += 1
        slowest = max(slowest, outcome.seconds)
        if outcome.complaints:
            bad += 1
            kind = list(fuzz_cases.KINDS)[number % len(fuzz_cases.KINDS)]
            print(f"case {number} ({kind}): {outcome.words!r:.300}")
            for complaint in outcome.complaints:
                print(f"    {complaint}")
    took = time.monotonic() - started
    print(
        f"{cases} cases in {took:.0f} s, the slowest {slowest:.1f} s; exit statuses {dict(statuses)}; bad {bad}"
    )
    return bad


if __name__ == "__main__":
    sys.exit(min(1, main(*map(int, sys.argv[1:]))))
