"""The memory of this machine, and numbers of bytes in words.

What limits a fit by passes: `rewards/streamed/config.py`. The batches of a sweep: `lab/sweeps/batch_size.py`.
"""

import contextlib
import ctypes
import os
from pathlib import Path

UNKNOWN = 4 << 30
UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def host_bytes() -> int:
    """The machine's memory, or less where a control group allows less.

    Not what is free at the moment, which differs from run to run.
    """
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return UNKNOWN
    group = Path("/sys/fs/cgroup/memory.max")
    allowed = group.read_text().strip() if group.exists() else "max"
    return min(physical, int(allowed)) if allowed.isdigit() else physical


def check_room(what: str, size: int, remedy: str, memory: int | None = None) -> None:
    """**Raises:** ValueError where `what` takes more bytes than there are; `memory`: this machine's if None."""
    there = host_bytes() if memory is None else memory
    if size > there:
        raise ValueError(
            f"{what} needs {in_words(size)} of memory, and there are {in_words(there)}: {remedy}."
        )


def give_back() -> None:
    """Return to the system what was freed, where the C library can (glibc): it keeps freed memory for later."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def in_words(size: int) -> str:
    """A number of bytes in words, such as "3.2 GB"."""
    place = min(len(UNITS) - 1, (len(str(size)) - 1) // 3)
    return f"{size / 1000**place:.3g} {UNITS[place]}"
