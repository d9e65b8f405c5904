"""Result folders that are whole or absent, and the facts that every result carries."""

import contextlib
import datetime
import json
import os
import platform
import re
import shutil
import uuid
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A scratch folder within `out` whose files move into `out` when the block ends well, and vanish if not.

    Within, not beside: `out` may be a mount, and whether it can be written shows before the block's work.

    **Raises:** ValueError if `out` is not a folder or cannot be written.
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file: give a folder.")
    new = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        remove_leftovers(out)
        scratch = out / unfinished_name(uuid.uuid4().hex)
        scratch.mkdir()
    except OSError as error:
        raise ValueError(f"--out {out} cannot be written ({error.strerror}): give another folder.") from None
    try:
        yield scratch
        for file in sorted(scratch.iterdir()):
            os.replace(file, out / file.name)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if new:
            with contextlib.suppress(OSError):  # not empty: the work is in it
                out.rmdir()


def unfinished_name(name: str) -> str:
    """What `name` is called until it is whole: hidden, with this process's number."""
    return f".{name}.{os.getpid()}.unfinished"


def remove_leftovers(folder: Path) -> None:
    """Remove from `folder` what killed processes left unfinished; what a running one is at stays."""
    for path in folder.glob(".*.unfinished"):
        owner = re.fullmatch(r"\..+\.(\d+)\.unfinished", path.name)
        if owner is None or _runs(int(owner[1])):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    if os.name == "nt":  # where signal 0 is not a question but a signal
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # somebody else's
        return True
    return True


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


def write_json(path: Path, content: dict[str, Any]) -> None:
    """`content` as indented JSON."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
