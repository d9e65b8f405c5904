"""Files that are whole or as before: unfinished work has a hidden name, and a lock that says whether its process is
still alive.
"""

import contextlib
import errno
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: nobody can be asked there, and nothing is removed
    fcntl = None

# The token belongs to one piece of work: a process number would name another process in the next container.
MARKED = re.compile(r"\..+\.[0-9a-f]{32}\.(unfinished|finished)")

# A disk, or the share of it that a user may fill, is full.
FULL = (errno.ENOSPC, errno.EDQUOT)
NUMPY_WROTE = re.compile(r"\d+ requested and \d+ written")


def unfinished_name(name: str) -> str:
    """The hidden name, with a token of its own, that `name` has until it is whole."""
    return f".{name}.{uuid.uuid4().hex}.unfinished"


@contextlib.contextmanager
def unfinished_folder(parent: Path) -> Iterator[Path]:
    """A new folder in `parent`, locked for as long as the block runs; what is left of it then is removed."""
    with _claimed(parent, "results", os.mkdir) as path:
        try:
            with naming(parent):
                yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def whole_path(path: Path, folder: bool = False) -> Iterator[Path]:
    """A new file, or folder, beside `path` that takes its place when the block ends well, and vanishes if not.

    A file is on the disk before it has its name. What a killed process left of the same one is removed.

    **Raises:** FileNotFoundError where the folder of `path` is missing.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {path.parent} does not exist: make it first.")
    _remove_killed(path)
    make = os.mkdir if folder else _make_file
    with _claimed(path.parent, path.name, make) as unfinished:
        try:
            with naming(path):
                yield unfinished
                if not folder:
                    _flush(unfinished)
            os.replace(unfinished, path)
        finally:
            if folder:
                shutil.rmtree(unfinished, ignore_errors=True)
            else:
                unfinished.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """`content` as the file `path`, which is whole or as before."""
    with whole_path(path) as unfinished:
        unfinished.write_bytes(content)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """A block that writes to `path`: the error of a disk that is full on the way names it.

    **Raises:** OSError.
    """
    try:
        yield
    except OSError as error:
        # NumPy counts the bytes that it lacked, and says nothing else.
        full = error.errno in FULL or (error.errno is None and NUMPY_WROTE.fullmatch(str(error)))
        if full and error.filename is None:
            code = error.errno or errno.ENOSPC
            raise OSError(code, os.strerror(code), str(path)) from error
        raise


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """A block in which no other process holds `folder`.

    **Raises:** ValueError where one does.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"Another process writes to {folder}: wait for it, or give another folder."
            ) from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(handle)


def publish(folder: Path) -> None:
    """Move the files of an unfinished folder to its parent, all of them: killed halfway, `remove_leftovers` goes on.

    **Raises:** ValueError, before anything is moved, where a folder has the name of a file.
    """
    check_places(folder.parent, [file.name for file in folder.iterdir()])
    finished = folder.with_suffix(".finished")
    os.rename(folder, finished)
    _move_out(finished)


def check_places(folder: Path, names: list[str]) -> None:
    """**Raises:** ValueError where a folder stands at the place of a file."""
    for name in names:
        if (folder / name).is_dir() and not (folder / name).is_symlink():
            raise ValueError(
                f"{folder / name} is a folder, and a result of that name goes there: move it away."
            )


def check_file(option: str, path: Path, given: Iterable[Path] = ()) -> None:
    """**Raises:** ValueError where the file that `option` names cannot be written, or is one of those `given`."""
    if path.is_dir():
        raise ValueError(f"{option} {path} is a folder: give the name of a file.")
    if path.resolve() in {Path(place).resolve() for place in given}:
        raise ValueError(f"{option} {path} is a file that is read: give another name.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{option} {path}: the folder {path.parent} does not exist: make it first.")


def remove_leftovers(folder: Path) -> None:
    """Put the results of killed processes in `folder` in their places where they were whole; remove what was not.

    Work of a running process stays.
    """
    for path in folder.glob(".*.*finished"):
        if MARKED.fullmatch(path.name) and _abandoned(path):
            with contextlib.suppress(FileNotFoundError):  # another process was quicker
                _clear(path)


def _remove_killed(path: Path) -> None:
    """Remove what is left of `path` by processes that were killed while they wrote it."""
    theirs = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{32}}\.unfinished")
    for left in path.parent.glob(".*.unfinished"):
        if theirs.fullmatch(left.name) and _abandoned(left):
            with contextlib.suppress(FileNotFoundError):  # another process was quicker
                _clear(left)


def _clear(path: Path) -> None:
    if not path.is_dir():
        path.unlink(missing_ok=True)
    elif path.suffix == ".finished":
        _move_out(path)
    else:
        shutil.rmtree(path, ignore_errors=True)


def _move_out(finished: Path) -> None:
    for file in sorted(finished.iterdir()):
        os.replace(file, finished.parent / file.name)
    finished.rmdir()


def _make_file(path: Path) -> None:
    path.touch(exist_ok=False)


def _flush(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


@contextlib.contextmanager
def _claimed(parent: Path, name: str, make) -> Iterator[Path]:
    while True:
        path = parent / unfinished_name(name)
        try:
            make(path)
        except OSError as error:  # nobody knows the hidden name
            raise OSError(error.errno, error.strerror, str(parent / name)) from None
        if fcntl is None:  # an open file could not be renamed there
            yield path
            return
        handle = os.open(path, os.O_RDONLY)
        try:
            # Between the two lines above another process may have taken it for abandoned.
            if _lock(handle, wait=True) is False or path.exists():
                yield path
                return
        finally:
            os.close(handle)


def _abandoned(path: Path) -> bool:
    """Whether no process holds `path`; False where that cannot be known."""
    if fcntl is None:
        return False
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return False
    try:
        return _lock(handle, wait=False)
    finally:
        os.close(handle)


def _lock(handle: int, wait: bool) -> bool:
    """Whether the lock was got; False too on file systems that have none."""
    assert fcntl is not None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True
