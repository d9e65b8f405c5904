"""The folder of the tests' compiled programs, which all checkouts of a user share."""

import contextlib
import time
from pathlib import Path

import platformdirs

FOLDER = Path(platformdirs.user_cache_dir("robust-rlhf-jax-tests"))
DAYS = 14


def drop_unused(folder: Path = FOLDER, days: float = DAYS) -> None:
    """Delete the programs that no run has read for `days`. Another run may delete them at the same time."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    oldest = time.time() - days * 86_400
    for program in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            used = program.stat()
            if max(used.st_atime, used.st_mtime) < oldest:
                program.unlink()
