"""Result folders that are whole or absent, and the facts that every result carries."""

import contextlib
import datetime
import functools
import itertools
import json
import math
import os
import platform
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from robust_rlhf_jax.unfinished import check_places, publish, remove_leftovers, unfinished_folder


@contextlib.contextmanager
def whole_folder(out: Path, names: Iterable[str] = ()) -> Iterator[Path]:
    """A scratch folder within `out` whose files move into `out` when the block ends well, and vanish if not.

    It is within `out`, not beside it, since `out` may be a mount. That `out` cannot be written, or that a folder stands
    where one of the files `names` will go, is found before the block's work.

    **Raises:** ValueError if `out` is not a folder or cannot be written, or for such a folder.
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file: give a folder.")
    new = _missing(out)
    with contextlib.ExitStack() as scratch:
        scratch.callback(_remove_empty, new)
        try:
            out.mkdir(parents=True, exist_ok=True)
            remove_leftovers(out)
            folder = scratch.enter_context(unfinished_folder(out))
        except OSError as error:
            raise ValueError(
                f"--out {out} cannot be written ({error.strerror}): give another folder."
            ) from None
        check_places(out, list(names))
        yield folder
        publish(folder)


def _missing(folder: Path) -> list[Path]:
    """`folder` and those above it that do not exist, the innermost first."""
    return list(itertools.takewhile(lambda path: not path.exists(), (folder, *folder.parents)))


def _remove_empty(folders: list[Path]) -> None:
    with contextlib.suppress(OSError):  # not empty: it holds the results
        for folder in folders:
            folder.rmdir()


def environment() -> dict[str, Any]:
    """Versions, device and date: what a figure needs beside it to be reproduced."""
    import jax

    packages = ("robust-rlhf-jax", "jax", "jaxlib", "numpy", "equinox")
    return {
        "versions": {name: metadata.version(name) for name in packages},
        "python": platform.python_version(),
        "device": str(jax.devices()[0].device_kind),
        "platform": jax.default_backend(),
        "devices": jax.device_count(),
        "cores": os.cpu_count(),
        "date": datetime.date.today().isoformat(),
    }


@functools.cache
def page_templates(package: str) -> Any:
    """The jinja2 environment of the templates of a package, in which every text of the data is escaped.

    One for all pages of a process: it compiles each template once.

    **Raises:** ImportError without the extra `cli`.
    """
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def write_json(path: Path, content: dict[str, Any]) -> None:
    """`content` as indented JSON, which has no NaN: NaN and infinity become null. Lone surrogates are escaped."""
    text = json.dumps(with_nulls(content), indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")


def with_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: with_nulls(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [with_nulls(x) for x in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
