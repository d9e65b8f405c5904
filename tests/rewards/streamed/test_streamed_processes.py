"""Passes by two processes of `jax.distributed`: the numbers of one to the bit, in both, and errors in both."""

import socket
import subprocess
import sys

import numpy as np
import pytest

from robust_rlhf_jax.rewards import Processes, Streaming, fit_source
from robust_rlhf_jax.rewards.streamed import passes
from robust_rlhf_jax.rewards.streamed.forward import Forward
from robust_rlhf_jax.rewards.streamed.messages import from_each, from_first
from robust_rlhf_jax.sources import ArraySource, GeneratedSource, ShardSource

N, K, ROWS = 20_000, 6, 256
COMPARED = ("theta", "weights", "suspicion", "interval")

PROGRAM = """
import sys
import jax
import numpy as np
number, port = int(sys.argv[1]), sys.argv[2]
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=number)
from robust_rlhf_jax.rewards import Processes, Streaming, fit_source
from robust_rlhf_jax.rewards.streamed import passes
from robust_rlhf_jax.sources import GeneratedSource, ShardSource
passes.NUMBERS = 256 * 6
class Gone(ShardSource):
    def fingerprint(self):
        if number == 1:
            raise FileNotFoundError("pairs.npy is not here")
        return super().fingerprint()
z = np.load("pairs.npy", mmap_mode="r")
sources = {
    "shards": ShardSource("pairs.npy", groups=np.arange(20_000) // 40),
    "generated": GeneratedSource(lambda: iter([z]), groups=np.arange(20_000) // 40),
    "different": ShardSource("pairs.npy" if number == 0 else "other.npy"),
    "bad": ShardSource("bad.npy"),
    "fits": ShardSource("pairs.npy"),
    "gone": Gone("pairs.npy"),
}
for name in sys.argv[3:]:
    memory = "1GB" if name == "fits" else "9MB"
    folder = "checkpoint" if name == "shards" else None
    streaming = Streaming(memory=memory, sample=1_500, engine=Processes(), checkpoint=folder)
    try:
        found = fit_source(sources[name], 0.1, streaming=streaming)
        np.savez(f"{name}{number}.npz", **{part: getattr(found, part) for part in PARTS})
    except ValueError as error:
        print(name, error, sep=": ", flush=True)
""".replace("PARTS", repr(COMPARED))


def differences():
    rng = np.random.default_rng(3)
    x, theta = rng.normal(size=(N, K)), rng.normal(size=K)
    z = x * np.where(rng.random(N) < 1 / (1 + np.exp(-x @ theta)), 1.0, -1.0)[:, None]
    z[rng.permutation(N)[: N // 10]] = -6.0 * theta / np.linalg.norm(theta)
    return z.astype(np.float32)


def run_two(folder, *names):
    """What both processes print when they fit each of the sources."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words = [sys.executable, "-c", PROGRAM]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": folder}
    both = [subprocess.Popen([*words, str(number), port, *names], **pipes) for number in range(2)]
    try:
        told = [process.communicate(timeout=200) for process in both]
    finally:
        for process in both:
            process.kill()
    assert [process.returncode for process in both] == [0, 0], told
    return [out.splitlines() for out, _ in told]


@pytest.mark.slow
def test_two_processes_give_the_bits_of_one_in_both(tmp_path, monkeypatch):
    z = differences()
    np.save(tmp_path / "pairs.npy", z)
    np.save(tmp_path / "other.npy", z[::-1])
    z[7_777, 2] = np.inf
    np.save(tmp_path / "bad.npy", z)
    told = run_two(tmp_path, "shards", "different", "generated", "bad", "fits", "gone")
    monkeypatch.setattr(passes, "NUMBERS", ROWS * K)
    source = ShardSource(tmp_path / "pairs.npy", groups=np.arange(N) // 40)
    alone = fit_source(source, 0.1, streaming=Streaming(memory="9MB", sample=1_500))
    for name in ("shards", "generated"):
        for number in range(2):
            with np.load(tmp_path / f"{name}{number}.npz") as found:
                for part in COMPARED:
                    np.testing.assert_array_equal(found[part], getattr(alone, part), err_msg=f"{name} {part}")
    with np.load(tmp_path / "fits0.npz") as one, np.load(tmp_path / "fits1.npz") as other:
        np.testing.assert_array_equal(one["theta"], other["theta"])
    for lines in told:
        said = [line for line in lines if line.startswith(("different", "bad", "gone"))]
        assert said == [
            "different: process 1 has another source than the first one.",
            "bad: pair 7,777 (from 0) has features that are not finite: leave it out; pair 7,777 is row "
            "7,777 (from 0) of bad.npy.",
            "gone: pairs.npy is not here",
        ]
    assert (tmp_path / "checkpoint" / "settling.npz").exists()


@pytest.mark.slow
def test_one_process_is_a_program_too(monkeypatch):
    monkeypatch.setattr(passes, "NUMBERS", ROWS * K)
    streaming = Streaming(memory="9MB", sample=1_500)
    source = ArraySource(differences())
    alone = fit_source(source, 0.1, streaming=streaming)
    many = Streaming(memory="9MB", sample=1_500, engine=Processes())
    np.testing.assert_array_equal(fit_source(source, 0.1, streaming=many).weights, alone.weights)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 100, 12_345])
def test_messages_arrive_as_they_were_sent(size):
    message = {"bytes": bytes(range(256))[:size], "array": np.arange(size, dtype=np.float64) / 3}
    for found in (from_first(message), from_each(message)[0]):
        assert found["bytes"] == message["bytes"]
        np.testing.assert_array_equal(found["array"], message["array"])
        assert found["array"].dtype == np.float64


def test_a_source_that_only_goes_forward_is_begun_once():
    begun = []

    def make():
        begun.append(1)
        return iter([np.arange(20.0)[:, None]])

    source = Forward(GeneratedSource(make, n_pairs=20), 3)
    count = len(begun)
    found = [next(source.blocks_from(begin, 3)).ravel().tolist() for begin in (0, 3, 9, 18)]
    assert found == [[0, 1, 2], [3, 4, 5], [9, 10, 11], [18, 19]]
    assert len(begun) == count + 1
    with pytest.raises(ValueError, match="blocks of 3 from pair 21 on are left, not of 3 from 6"):
        next(source.blocks_from(6, 3))
