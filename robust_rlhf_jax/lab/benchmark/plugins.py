"""Attacks and estimators from a user's own file: what it lists in `ATTACKS` and `ENTRIES`, as files of ours do."""

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from robust_rlhf_jax.collected import by_name
from robust_rlhf_jax.lab.pair_attacks import PAIR_ATTACKS
from robust_rlhf_jax.raters.protocol import RaterEntry
from robust_rlhf_jax.rewards.protocol import Entry

from .config import CLEAN
from .contestant import Contestant, contestants
from .run import Attacks

Value = TypeVar("Value")


class Players(NamedTuple):
    """All attacks and all estimators by name; `digest`: of the files that some come from, "" for none; `plugged`: the
    names of those from files, attacks and estimators.
    """

    attacks: Attacks
    estimators: dict[str, Contestant]
    digest: str = ""
    plugged: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


def players(files: tuple[Path, ...] = ()) -> Players:
    """Those of the package, and those of the Python files given, which are run.

    **Raises:** ValueError for a file that is missing, cannot be run, or lists nothing; or for a name that is taken.

    **Example:**

    >>> from robust_rlhf_jax.lab.benchmark import players
    >>> "near" in players().attacks, "sever" in players().estimators
    (True, True)
    """
    attacks, entries = dict(PAIR_ATTACKS), {}
    taken = {CLEAN, *PAIR_ATTACKS, *contestants()}
    for path in files:
        module = _run(Path(path))
        mine, listed = _listed(path, module)
        if not mine and not listed:
            raise ValueError(f"{path} lists neither ATTACKS nor ENTRIES: docs/benchmark.md shows both.")
        for name in (*mine, *listed):
            if name in taken:
                raise ValueError(f"{path}: the name {name} is taken: choose another.")
            taken.add(name)
        attacks |= mine
        entries |= listed
    content = b"".join(Path(path).read_bytes() for path in files)
    digest = hashlib.sha256(content).hexdigest() if files else ""
    plugged = tuple(name for name in attacks if name not in PAIR_ATTACKS), tuple(entries)
    return Players(attacks, contestants(entries), digest, plugged)


def _listed(path: Path, module: ModuleType) -> tuple[Attacks, dict[str, Entry | RaterEntry]]:
    attacks, entries = getattr(module, "ATTACKS", ()), getattr(module, "ENTRIES", ())
    if not isinstance(attacks, list | tuple) or not all(map(callable, attacks)):
        raise ValueError(f"{path}: ATTACKS must be a tuple of functions.")
    if not isinstance(entries, list | tuple) or not all(
        isinstance(entry, Entry | RaterEntry) for entry in entries
    ):
        raise ValueError(
            f"{path}: ENTRIES must be a list of Entry (rewards/protocol.py) or RaterEntry (raters/protocol.py)."
        )
    return (
        _by_name(path, [(attack, attack) for attack in attacks]),
        _by_name(path, [(entry.estimate, entry) for entry in entries]),
    )


def _by_name(path: Path, found: list[tuple[Any, Value]]) -> dict[str, Value]:
    """What is listed under the name of each function."""
    unnamed = next((function for function, _ in found if not hasattr(function, "__name__")), None)
    if unnamed is not None:
        raise ValueError(
            f"{path} lists a {type(unnamed).__name__}, which has no name: give a function by def."
        )
    try:
        return by_name((function.__name__, value) for function, value in found)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _run(path: Path) -> ModuleType:
    if path.suffix != ".py" or not path.is_file():
        raise ValueError(f"{path} is no Python file.")
    spec = importlib.util.spec_from_file_location(f"plugged in: {path.resolve()}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Data classes whose annotations are texts look their module up there.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[spec.name]
        raise ValueError(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    return module
