"""Compiled programs of the tests are deleted when no run reads them any more."""

import os
import time

from programs_of_tests import drop_unused


def test_programs_that_nobody_reads_are_dropped(tmp_path):
    folder = tmp_path / "new" / "programs"
    drop_unused(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    now, day = time.time(), 86_400
    for name, read, written in [("read", 1, 30), ("written", 30, 1), ("neither", 30, 30)]:
        (folder / name).write_bytes(b"")
        os.utime(folder / name, (now - read * day, now - written * day))
    drop_unused(folder, days=14)
    assert sorted(path.name for path in folder.iterdir()) == ["read", "written"]
