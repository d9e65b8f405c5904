"""Passes as Ray tasks: the numbers of one process to the bit, though a machine goes."""

import sys
import threading
import time

import numpy as np
import pytest
from two_ray_nodes import needs_ray, two_nodes

from robust_rlhf_jax import ray_connection
from robust_rlhf_jax.ray_connection import ray_connected
from robust_rlhf_jax.rewards import RayTasks, Streaming, fit_source
from robust_rlhf_jax.rewards.streamed import passes, ray_tasks
from robust_rlhf_jax.sources import ArraySource, GeneratedSource, ShardSource

N, K, ROWS, SHARD = 40_000, 12, 512, 7_000
COMPARED = ("theta", "weights", "suspicion", "interval")


def differences():
    """Preferred less other [N, K], a tenth planted far out against θ."""
    rng = np.random.default_rng(0)
    scale = np.arange(1, K + 1) ** -1.0
    x, theta = rng.normal(size=(N, K)) * scale, rng.normal(size=K) / scale * 0.6
    z = x * np.where(rng.random(N) < 1 / (1 + np.exp(-x @ theta)), 1.0, -1.0)[:, None]
    z[rng.permutation(N)[: N // 10]] = -6.0 * scale**2 * theta / np.linalg.norm(scale * theta)
    return z.astype(np.float32)


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    for number, begin in enumerate(range(0, N, SHARD)):
        np.save(folder / f"{number}.npy", differences()[begin : begin + SHARD])
    return ShardSource(folder, groups=np.arange(N) // 40)


def fitted(source, engine=None, tell=None, folder=None):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "NUMBERS", ROWS * K)
        streaming = Streaming(memory="20MB", sample=2_000, engine=engine, tell=tell, checkpoint=folder)
        return fit_source(source, 0.1, streaming=streaming)


@pytest.fixture(scope="module")
def local(shards):
    return fitted(shards)


def assert_same(found, expected):
    for name in COMPARED:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


@pytest.fixture
def nodes(tmp_path):
    """A cluster of two nodes of one CPU each, to which this process is connected: (name of the second, its plug)."""
    with two_nodes(tmp_path, None) as (address, second, remove), ray_connected(address, 0):
        yield second, remove


def stops(doing, done, total):
    if doing == "pass 5: gradients":
        raise InterruptedError


@needs_ray
@pytest.mark.slow
def test_two_nodes_give_the_bits_of_one_process(shards, local, nodes, tmp_path):
    told = []
    found = fitted(shards, RayTasks(), lambda *now: told.append(now))
    assert_same(found, local)
    of_sample = [done for doing, done, _ in told if doing == "pass 1: sample"]
    assert of_sample == sorted(of_sample)
    assert of_sample[-1] == N
    with pytest.raises(InterruptedError):
        fitted(shards, tell=stops, folder=tmp_path / "states")
    assert_same(fitted(shards, RayTasks(), folder=tmp_path / "states"), local)
    z = differences()
    made = GeneratedSource(lambda: iter([z[:N]]), groups=np.arange(N) // 40)
    assert_same(fitted(made, RayTasks()), local)
    with pytest.raises(ValueError, match=r"cannot open the source .*No module named 'test_ray_tasks'"):
        fitted(GeneratedSource(lambda: iter([differences()])), RayTasks())
    lock = threading.Lock()
    with pytest.raises(
        ValueError, match=r"the source cannot be sent to other machines \(cannot pickle .*lock"
    ):
        fitted(GeneratedSource(lambda: iter([z, lock][:1])), RayTasks())
    z[4_321, 3] = np.nan
    with pytest.raises(ValueError, match=r"pair 4,321 \(from 0\) has features that are not finite"):
        fitted(ArraySource(z), RayTasks())


def hanging(log, second):
    """`compute` whose first task of gradients on the second node hangs; until it does, no other such task goes on."""
    from robust_rlhf_jax.rewards.streamed.ray_tasks import compute

    def noted(source, shared, given, share, expected):
        import ray

        node = ray.get_runtime_context().get_node_id()
        (log / f"{shared.doing}.{share.first}.{node}").touch()
        if shared.doing == "gradients":
            if node == second:
                (log / "hangs").touch()
                time.sleep(600)
            while not (log / "hangs").exists():
                time.sleep(0.01)
        return compute(source, shared, given, share, expected)

    return noted


@needs_ray
@pytest.mark.slow
def test_a_machine_that_goes_within_a_pass_changes_no_bit(shards, local, nodes, tmp_path, monkeypatch):
    second, remove = nodes
    log = tmp_path / "log"
    log.mkdir()

    def pull_the_plug():
        while not (log / "hangs").exists():
            time.sleep(0.01)
        remove()

    plug = threading.Thread(target=pull_the_plug, daemon=True)
    plug.start()
    monkeypatch.setattr(ray_tasks, "compute", hanging(log, second))
    found = fitted(shards, RayTasks())
    plug.join()
    assert_same(found, local)
    begun = [path.name.split(".") for path in log.glob("*.*.*")]
    lost = {chunk for doing, chunk, node in begun if doing == "gradients" and node == second}
    again = {chunk for doing, chunk, node in begun if doing == "gradients" and node != second}
    assert lost
    assert lost <= again
    assert {doing for doing, _, node in begun if node == second} >= {"sample", "second moments", "lengths"}


def test_without_ray_one_sentence_names_the_extra(shards, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"needs the package ray: pip install 'robust-rlhf-jax\[ray\]'\.$"):
        fitted(shards, RayTasks())
    assert "\n" not in ray_connection.MISSING


@needs_ray
def test_without_a_cluster_one_sentence_says_how_to_connect(shards):
    with pytest.raises(ValueError, match=r"^RayTasks needs a Ray cluster: connect to one by ray\.init\(\)"):
        fitted(shards, RayTasks())
