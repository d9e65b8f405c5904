"""Work in progress is claimed by a lock, not by a process number; results of a killed process get to their places."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from robust_rlhf_jax import unfinished
from robust_rlhf_jax.outputs import whole_folder
from robust_rlhf_jax.unfinished import (
    held,
    remove_leftovers,
    unfinished_folder,
    unfinished_name,
    whole_path,
    write_whole,
)

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and locks on folders"),
    # The children touch files alone, and none of JAX's locks.
    pytest.mark.filterwarnings("ignore:os.fork"),
]


def contents(folder: Path):
    return {path.name: path.read_text() for path in folder.iterdir()}


def in_a_killed_process(work):
    """Run `work` in a fork that kills itself where `work` calls what it is given."""
    child = os.fork()
    if child == 0:
        work(lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL


def test_what_killed_processes_left_is_removed_and_nothing_else(tmp_path):
    kept = [".notes.unfinished", "c.parquet", ".b.123.unfinished"]
    for name in (unfinished_name("a"), *kept):
        (tmp_path / name).write_text("half")
    (tmp_path / unfinished_name("folder")).mkdir()
    remove_leftovers(tmp_path)
    assert sorted(contents(tmp_path)) == sorted(kept)


def test_a_killed_write_is_removed_by_the_next_of_that_file(tmp_path):
    def write(kill):
        with whole_path(tmp_path / "a[1]"):
            kill()

    in_a_killed_process(write)
    others = [unfinished_name("a1"), unfinished_name("a[1].b")]
    for name in others:
        (tmp_path / name).write_text("half")
    assert len(list(tmp_path.iterdir())) == 3
    write_whole(tmp_path / "a[1]", b"whole")
    assert sorted(contents(tmp_path)) == sorted(["a[1]", *others])


@pytest.mark.slow
def test_a_folder_is_held_by_one_process(tmp_path):
    ask = f"from robust_rlhf_jax.unfinished import *\nwith held(Path({str(tmp_path)!r})): print('mine')"

    def other():
        return subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)

    with held(tmp_path):
        assert f"Another process writes to {tmp_path}: wait for it, or give another folder." in other().stderr
    assert other().stdout == "mine\n"


def test_a_fifo_of_that_name_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / unfinished_name("a"))
    remove_leftovers(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_what_a_running_process_is_at_stays(tmp_path):
    """Another process asks: its own locks are no obstacle to a process."""
    ask = f"from robust_rlhf_jax.unfinished import *; remove_leftovers(Path({str(tmp_path)!r}))"
    with unfinished_folder(tmp_path) as folder:
        (folder / "a").write_text("half")
        subprocess.run([sys.executable, "-c", ask], check=True, cwd=Path(__file__).parent.parent)
        assert contents(folder) == {"a": "half"}
    assert not list(tmp_path.iterdir())


def test_a_file_is_whole_or_as_before(tmp_path, monkeypatch):
    write_whole(tmp_path / "a", b"old")
    monkeypatch.setattr(
        Path, "write_bytes", lambda path, content: (_ for _ in ()).throw(OSError("disk full"))
    )
    with pytest.raises(OSError, match="disk full"):
        write_whole(tmp_path / "a", b"new")
    assert contents(tmp_path) == {"a": "old"}


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_a_kill_between_two_renames_leaves_results_that_the_next_one_finishes(tmp_path, moved):
    """Killed before the first file is moved or between two of them."""
    for name in "abc":
        (tmp_path / name).write_text("old")

    def work(kill):
        moves = []
        replace = os.replace

        def counting(*paths):
            if len(moves) == moved:
                kill()
            moves.append(replace(*paths))

        unfinished.os.replace = counting
        with whole_folder(tmp_path) as folder:
            for name in "abc":
                (folder / name).write_text("new")

    in_a_killed_process(work)
    remove_leftovers(tmp_path)
    assert contents(tmp_path) == dict.fromkeys("abc", "new")


def test_a_kill_before_the_end_leaves_the_old_results(tmp_path):
    (tmp_path / "a").write_text("old")

    def work(kill):
        with whole_folder(tmp_path) as folder:
            (folder / "a").write_text("new")
            kill()

    in_a_killed_process(work)
    remove_leftovers(tmp_path)
    assert contents(tmp_path) == {"a": "old"}


def test_a_folder_with_a_results_name_is_found_before_the_work_and_before_the_first_move(tmp_path):
    (tmp_path / "b").mkdir()
    before_work, before_moves = r"b is a folder, and a result of that name goes there", "b is a folder"
    with pytest.raises(ValueError, match=before_work), whole_folder(tmp_path, names=["a", "b"]):
        pytest.fail("the work was begun")
    with pytest.raises(ValueError, match=before_moves):
        write_a_and_b(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def write_a_and_b(out):
    with whole_folder(out) as folder:
        for name in "ab":
            (folder / name).write_text("new")


@pytest.mark.slow
@pytest.mark.parametrize("folder", [False, True])
def test_a_path_is_claimed_until_it_is_whole(tmp_path, folder):
    """Whoever tidies up meanwhile, in another process, leaves it alone."""
    ask = f"from robust_rlhf_jax.unfinished import *; remove_leftovers(Path({str(tmp_path)!r}))"
    with whole_path(tmp_path / "a", folder) as scratch:
        file = scratch / "b" if folder else scratch
        file.write_text("new")
        subprocess.run([sys.executable, "-c", ask], check=True, cwd=Path(__file__).parent.parent)
        assert [path.name for path in tmp_path.iterdir()] == [scratch.name]
    file = tmp_path / "a" / "b" if folder else tmp_path / "a"
    assert file.read_text() == "new"


@pytest.mark.parametrize("folder", [False, True])
def test_a_path_whose_work_fails_leaves_nothing(tmp_path, folder):
    with pytest.raises(RuntimeError, match="broken"), whole_path(tmp_path / "a", folder):
        raise RuntimeError("broken")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), OSError("320 requested and 112 written")]
)
@pytest.mark.parametrize("folder", [False, True])
def test_a_full_disk_is_named_by_what_was_to_be_written(tmp_path, error, folder):
    where = [whole_path(tmp_path / "result", folder), unfinished_folder(tmp_path)]
    for block, name in zip(where, ("result", ""), strict=True):
        with pytest.raises(OSError, match="No space left on device") as caught, block:
            raise error
        assert (caught.value.errno, caught.value.filename) == (28, str(tmp_path / name))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "error", [OSError("a device is gone"), OSError(5, "Input/output error"), OSError(28, "", "x")]
)
def test_other_errors_stay_as_they_are(tmp_path, error):
    with pytest.raises(OSError, check=lambda caught: caught is error), whole_path(tmp_path / "result"):
        raise error


@pytest.mark.parametrize("folder", [False, True])
def test_a_missing_folder_is_named_and_not_the_hidden_file(tmp_path, folder):
    (tmp_path / "file").touch()
    for parent in (tmp_path / "none", tmp_path / "file"):
        said = f"^{parent}/a.npz: the folder {parent} does not exist: make it first"
        with pytest.raises(FileNotFoundError, match=said), whole_path(parent / "a.npz", folder=folder):
            pass


def test_a_folder_that_takes_no_file_is_said_of_the_file_itself(tmp_path, monkeypatch):
    def refused(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(unfinished, "_make_file", refused)
    with pytest.raises(PermissionError) as caught:
        write_whole(tmp_path / "a.npz", b"")
    assert caught.value.filename == str(tmp_path / "a.npz")
