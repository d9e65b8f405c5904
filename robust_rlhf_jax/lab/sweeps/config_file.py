"""A sweep as a TOML file."""

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

from .config import SweepConfig

# Annotation of a field → what a file may hold there.
KINDS = {
    str: "a string",
    int: "a whole number",
    int | None: "a whole number",
    float: "a number",
    tuple[str, ...]: "a list of strings",
    tuple[float, ...]: "a list of numbers",
}


def read_config(path: Path) -> SweepConfig:
    """The sweep in a TOML file; what it does not name keeps its default.

    **Raises:** ValueError for a file that is missing or no TOML, an unknown key or a value of the wrong type; what
    the values may be is for `SweepConfig.check`.

    **Example:**

    >>> import pathlib, tempfile
    >>> from robust_rlhf_jax.lab.sweeps import read_config
    >>> file = pathlib.Path(tempfile.mkdtemp(), "sweep.toml")
    >>> _ = file.write_text('preset = "tiny"\\nattacks = ["flip_random"]\\nseeds = 2\\n')
    >>> config = read_config(file)
    >>> config.preset, config.attacks, config.n_cells
    ('tiny', ('flip_random',), 90)
    """
    try:
        if Path(path).exists() and not Path(path).is_file():  # a FIFO would be waited for
            raise OSError("no regular file")
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist: check the path.") from None
    except RecursionError:
        raise ValueError(
            f"{path} is nested too deep: settings are numbers, strings and lists of them."
        ) from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is not a TOML file that can be read ({error}).") from None
    fields = {field.name: field.type for field in dataclasses.fields(SweepConfig)}
    for key in content:
        if key not in fields:
            raise ValueError(f"{path}: {key!r} is unknown; there are {', '.join(fields)}.")
    return SweepConfig(**{key: _value(path, key, value, fields[key]) for key, value in content.items()})


def config_toml(config: SweepConfig) -> str:
    """The TOML that `read_config` reads back; settings that are None are left out.

    **Example:**

    >>> from robust_rlhf_jax.lab.sweeps import SweepConfig, config_toml
    >>> print(config_toml(SweepConfig(preset="tiny", seeds=2)).splitlines()[0])
    preset = "tiny"
    """
    import tomli_w

    return tomli_w.dumps({key: x for key, x in dataclasses.asdict(config).items() if x is not None})


def _value(path: Path, key: str, value: Any, kind) -> Any:
    if kind in (tuple[str, ...], tuple[float, ...]):
        entry = str if kind == tuple[str, ...] else float
        if isinstance(value, list) and all(_is(x, entry) for x in value):
            return tuple(entry(x) for x in value)
    elif _is(value, kind):
        return float(value) if kind is float else value
    raise ValueError(f"{path}: {key} = {value!r} is of the wrong type: give {KINDS[kind]}.")


def _is(value: Any, kind) -> bool:
    """True and false are whole numbers in Python and not in TOML; a whole number will do for a number."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float if kind is float else kind)
