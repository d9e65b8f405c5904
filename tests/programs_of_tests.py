"""Where compiled programs of the tests are kept, for all checkouts of one user: what they test, they compile once."""

import contextlib
import time
from pathlib import Path

import platformdirs

FOLDER = Path(platformdirs.user_cache_dir("robust-rlhf-jax-tests"))
DAYS = 14


def drop_unused(folder: Path = FOLDER, days: float = DAYS) -> None:
    """Delete programs that nobody has read for so many days; another run may be deleting them, too."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    oldest = time.time() - days * 86_400
    for program in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            used = program.stat()
            if max(used.st_atime, used.st_mtime) < oldest:
                program.unlink()
