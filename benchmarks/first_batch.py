"""Seconds from the start of `robust-rlhf sweep` to its first finished batch, without and with compiled programs kept.

`python benchmarks/first_batch.py [--preset quick]`: one process with an empty cache, then three with what it left.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = [sys.executable, "-c", "from robust_rlhf_jax.cli import main; main()", "sweep", "--quiet"]


def cpu_seconds(process: int) -> float:
    """Processor time of a process so far, where Linux tells: what its start takes however busy the machine is."""
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():
        return float("nan")
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def first_batch(words: list[str], cache: Path) -> tuple[float, float]:
    """(seconds from the start of the process to its first part, to its end)."""
    with tempfile.TemporaryDirectory() as out:
        started = time.perf_counter()
        process = subprocess.Popen(
            [*COMMAND, *words, "--out", out],
            env=os.environ | {"ROBUST_RLHF_CACHE": str(cache)},
            stdout=subprocess.DEVNULL,
        )
        while process.poll() is None and not list(Path(out).glob("parts/*.parquet")):
            time.sleep(0.01)
        first, computed, load = time.perf_counter() - started, cpu_seconds(process.pid), os.getloadavg()[0]
        status = process.wait()
        seconds = time.perf_counter() - started
        inside = json.loads((Path(out) / "summary.json").read_text()) if not status else {}
    if status:
        sys.exit(status)
    within = inside["seconds_to_first_batch"]
    print(
        f"first batch after {first:.1f} s ({within:.1f} s counted by the command), "
        f"{computed:.1f} s of processor time; all {seconds:.1f} s, load average {load:.1f}"
    )
    return first, seconds


def main() -> None:
    words = sys.argv[1:] or [
        "--preset",
        "quick",
        "--attacks",
        "flip_confident",
        "--epsilons",
        "0.1",
        "--seeds",
        "2",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for label in ("cold", "warm", "warm", "warm"):
            print(f"{label}: ", end="", flush=True)
            first_batch(words, Path(folder))


if __name__ == "__main__":
    main()
