"""A Ray cluster of two nodes on this machine, of which a test can pull the plug of one."""

import contextlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs the extra ray: pip install 'robust-rlhf-jax[ray]'"
)


@contextlib.contextmanager
def two_nodes(folder, environment):
    """(address, name of the second node, a function that removes it)."""
    words = [sys.executable, str(Path(__file__).parent / "ray_nodes.py")]
    with open(folder / "nodes.log", "w") as log:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log, "text": True}
        server = subprocess.Popen(words, cwd=folder, env=environment, **pipes)

    def remove():
        server.stdin.write("\n")
        server.stdin.flush()
        assert server.stdout.readline() == "removed\n"

    try:
        address, second = server.stdout.readline().split()
        yield address, second, remove
    finally:
        server.stdin.close()
        server.wait(timeout=60)
        server.stdout.close()
