"""Real processes of `robust-rlhf sweep`: killed, interrupted, and on two devices, with the same rows to the bit."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

if not hasattr(os, "fork"):
    pytest.skip("needs fork", allow_module_level=True)

# One cell per part, and the world that is built fastest: much to kill, little to start.
SWEEP = """\
preset = "tiny"
families = ["chain"]
attacks = ["flip_confident"]
epsilons = [0, 0.2]
seeds = 24
algorithms = ["standard", "clean_reference"]
n_pairs = 600
lanes = 1
"""
SEEDS, KILLS = 24, 20
CELLS, PARTS = 4 * SEEDS, 3 * SEEDS + 1
COMMAND = [sys.executable, "-c", "from robust_rlhf_jax.cli import main; main()"]


class Forks:
    """Runs the command in forks of one process that has imported everything, with one cache of compiled programs."""

    def __init__(self, folder: Path):
        self.folder = folder
        (folder / "sweep.toml").write_text(SWEEP)
        self.environment = os.environ | {"ROBUST_RLHF_CACHE": str(folder / "cache")}
        self.server = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "forks.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=self.environment,
        )

    def start(self, out: str) -> int:
        request = [["sweep", "sweep.toml", "--quiet", "--out", out], f"{out}.log"]
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline())

    def end(self) -> int:
        return int(self.server.stdout.readline())

    def close(self) -> None:
        self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()

    def rows(self, out: str):
        return pq.read_table(self.folder / out / "results.parquet").to_pylist()

    def parts(self, out: str) -> int:
        return len(list((self.folder / out / "parts").glob("*.parquet")))

    def log(self, out: str) -> str:
        return (self.folder / f"{out}.log").read_text()


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    found = Forks(tmp_path_factory.mktemp("forks"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def undisturbed(forks):
    """The rows of a run from start to end."""
    forks.start("whole")
    assert forks.end() == 0, forks.log("whole")
    return forks.rows("whole")


def wait_for_parts(forks, out, wanted, seconds=120.0):
    end = time.monotonic() + seconds
    while forks.parts(out) < wanted:
        assert time.monotonic() < end, forks.log(out)
        time.sleep(0.001)


@pytest.mark.slow
def test_twenty_kills_lose_and_double_nothing(forks, undisturbed):
    """SIGKILL at random moments of a run, one to three batches on; the leftovers go too."""
    chance = random.Random(0)
    seen = [0]
    for _ in range(KILLS):
        process = forks.start("killed")
        wait_for_parts(forks, "killed", min(seen[-1] + chance.randint(0, 2), PARTS - 2))
        time.sleep(chance.uniform(0.0, 0.02))
        os.kill(process, signal.SIGKILL)
        assert forks.end() == -signal.SIGKILL, forks.log("killed")
        seen.append(forks.parts("killed"))
    assert not (forks.folder / "killed" / "results.parquet").exists()
    assert seen == sorted(seen)
    assert 0 < seen[-1] < PARTS
    forks.start("killed")
    assert forks.end() == 0, forks.log("killed")
    print(f"parts there at each kill: {seen[1:]}, at the end {forks.parts('killed')}")
    assert len(undisturbed) == CELLS
    assert forks.rows("killed") == undisturbed
    assert forks.parts("killed") == PARTS
    assert not list((forks.folder / "killed").rglob(".*"))


@pytest.mark.slow
def test_ctrl_c_ends_in_one_sentence_and_the_same_command_goes_on(forks, undisturbed):
    process = forks.start("stopped")
    wait_for_parts(forks, "stopped", 1)
    os.kill(process, signal.SIGINT)
    assert forks.end() == 130, forks.log("stopped")
    text = forks.log("stopped")
    assert "Traceback" not in text
    last = text.splitlines()[-1]
    assert last.startswith("robust-rlhf: stopped: ")
    assert last.endswith(f" of {CELLS} cells are saved in stopped/parts; the same command resumes there.")
    # A part is one cell, or two of the reference of a seed.
    saved, parts = int(last.split()[2]), forks.parts("stopped")
    assert parts <= saved <= min(2 * parts, SEEDS + parts)
    assert sorted(path.name for path in (forks.folder / "stopped").iterdir()) == ["parts"]
    forks.start("stopped")
    assert forks.end() == 0, forks.log("stopped")
    assert f"sweep: {saved}/{CELLS} cells\n" in forks.log("stopped")
    assert forks.rows("stopped") == undisturbed


@pytest.mark.slow
def test_two_devices_change_no_bit(forks, undisturbed):
    """In a process of its own, since the number of devices is settled once; three lanes make four on two devices."""
    environment = forks.environment | {"JAX_NUM_CPU_DEVICES": "2"}
    words = [*COMMAND, "sweep", "sweep.toml", "--lanes", "3", "--out", "two"]
    ended = subprocess.run(
        words, cwd=forks.folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads((forks.folder / "two" / "summary.json").read_text())["devices"] == 2
    key = lambda row: tuple(str(value) for value in row.values())  # noqa: E731
    assert sorted(forks.rows("two"), key=key) == sorted(undisturbed, key=key)
