"""The sweep on Ray: the rows of the local engine to the bit, though a node goes or Ctrl-C comes."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from small_sweep import COMMAND, small_sweep, wait_for
from two_ray_nodes import needs_ray, two_nodes

from robust_rlhf_jax import cli, ray_connection
from robust_rlhf_jax.lab.sweeps import config_toml, engine, ray_engine, run_sweep
from robust_rlhf_jax.lab.sweeps.store import PartStore

CONFIG = small_sweep(seeds=12)
CELLS = 24
VARIABLES = (
    "RAY_USAGE_STATS_ENABLED",
    "RAY_IGNORE_UNHANDLED_ERRORS",
    "RAY_AUTH_MODE",
    "RAY_AUTH_TOKEN",
    "RAY_NUM_REDIS_GET_RETRIES",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("ray")
    (found / "sweep.toml").write_text(config_toml(CONFIG))
    return found


@pytest.fixture(scope="module")
def environment(folder):
    """One cache of compiled programs for all processes; importing JAX and compiling is nearly all of their time."""
    return os.environ | {"ROBUST_RLHF_CACHE": str(folder / "cache"), "JAX_PLATFORMS": "cpu"}


@pytest.fixture(scope="module")
def local(folder, environment):
    """The rows of the local engine, by the command."""
    words = [*COMMAND, "sweep", "sweep.toml", "--quiet", "--out", "local"]
    ended = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stderr) == (0, "")
    return rows(folder / "local")


def rows(out: Path):
    return pq.read_table(out / "results.parquet").to_pylist()


def parts(out: Path):
    return sorted(path.name for path in (out / "parts").glob("*.parquet"))


def hanging(log: Path, second: str):
    """`compute` that notes where it ended. No node goes on before each has ended a task; then the second hangs."""
    from robust_rlhf_jax.lab.sweeps.ray_engine import compute

    def noted(task):
        import ray

        node = ray.get_runtime_context().get_node_id()
        name = f"{next(iter(task.job.parts.values()))}.{node}"
        if list(log.glob(f"*.{node}.ended")):
            if node == second:
                (log / f"{name}.lost").touch()
                time.sleep(600)
            while not list(
                log.glob("*.lost")
            ):  # else the first node may be so quick that none is left to hang
                time.sleep(0.01)
        found = compute(task)
        (log / f"{name}.ended").touch()
        while len({path.name.split(".")[1] for path in log.glob("*.ended")}) < 2:
            time.sleep(0.01)
        return found

    return noted


@needs_ray
def test_a_node_that_goes_loses_and_doubles_nothing(folder, environment, local, monkeypatch):
    """It goes with a task at work on it, when both nodes have finished some."""
    log = folder / "log"
    log.mkdir()
    for name in ("ROBUST_RLHF_CACHE", "JAX_PLATFORMS"):
        monkeypatch.setenv(name, environment[name])
    finished, before = [], []
    count = lambda what: len(list(log.glob(what)))  # noqa: E731

    with two_nodes(folder, environment) as (address, second, remove):

        def pull_the_plug():
            wait_for(lambda: count("*.lost") and count("*.ended") >= 6)
            before.extend([count("*.ended"), count(f"*.{second}.ended")])
            remove()

        plug = threading.Thread(target=pull_the_plug, daemon=True)
        plug.start()
        monkeypatch.setattr(ray_engine, "compute", hanging(log, second))
        with ray_engine.ray_cluster(address) as execute:
            store = PartStore(folder / "removed" / "parts")
            found = run_sweep(CONFIG, lambda cells, free: finished.append(cells), store, execute).rows
        plug.join()
    print(
        f"tasks finished before the node went {before[0]}, {before[1]} of them on it; at work on it "
        f"{count('*.lost')}; after {count('*.ended') - before[0]}; parts {len(parts(folder / 'removed'))}"
    )
    assert 0 < before[1] < before[0] < CELLS
    assert count("*.lost") >= 1
    assert sum(finished) == CELLS
    assert found == local
    assert parts(folder / "removed") == parts(folder / "local")


@needs_ray
def test_ctrl_c_saves_what_is_done_and_either_engine_goes_on(folder, environment, local):
    """To the whole group of processes, as a terminal does; on a cluster of its own, which ends with it."""
    words = [*COMMAND, "sweep", "sweep.toml", "--quiet", "--out", "stopped"]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(
        [*words, "--engine", "ray"], cwd=folder, env=environment, start_new_session=True, **pipes
    )
    wait_for(lambda: parts(folder / "stopped") or process.poll() is not None)
    os.killpg(process.pid, signal.SIGINT)
    errors = process.communicate(timeout=120)[1]
    assert process.returncode == 130, errors
    saved = len(parts(folder / "stopped"))
    assert errors.splitlines()[-1] == (
        f"robust-rlhf: stopped: {saved} of {CELLS} cells are saved in stopped/parts; "
        "the same command resumes there."
    )
    assert "Traceback" not in errors
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    ended = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert f"sweep: {saved}/{CELLS} cells\n" in ended.stdout
    assert rows(folder / "stopped") == local
    assert json.loads((folder / "stopped" / "summary.json").read_text())["cells"] == CELLS


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """command("…") → (exit status, stderr) of a sweep in an empty folder, which stays empty."""
    monkeypatch.chdir(tmp_path)
    for name in (*VARIABLES, ray_connection.LOOPBACK):
        monkeypatch.setenv(name, "")  # what the engine sets goes with the test
        monkeypatch.delenv(name)

    def run(line):
        monkeypatch.setattr(sys, "argv", ["robust-rlhf", "sweep", "--preset", "tiny", *line.split()])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert not list(tmp_path.iterdir())
        return end.value.code, capsys.readouterr().err

    return run


LISTENING = """
import psutil
from robust_rlhf_jax.lab.sweeps.ray_engine import ray_cluster
with ray_cluster():
    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        for socket in process.net_connections("inet"):
            if socket.status == psutil.CONN_LISTEN:
                print(socket.laddr.ip)
"""


@needs_ray
def test_a_cluster_of_its_own_listens_on_this_machine_alone(environment):
    pytest.importorskip("psutil")
    words = [sys.executable, "-c", LISTENING]
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    found = set(ended.stdout.split())
    assert found
    assert found <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


def test_only_a_cluster_of_its_own_is_kept_to_this_machine(monkeypatch):
    """As set when Ray, here a stand-in, is imported."""
    seen = []
    stand_in = types.SimpleNamespace(init=lambda *_, **__: None, shutdown=lambda: None)
    monkeypatch.setattr(
        ray_connection, "ray_module", lambda: seen.append(os.environ.get(ray_connection.LOOPBACK)) or stand_in
    )
    for name in (*VARIABLES, ray_connection.LOOPBACK):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    with ray_engine.ray_cluster("auto"):
        pass
    with ray_engine.ray_cluster():
        pass
    assert seen == [None, "0"]


def test_without_ray_one_sentence_names_the_extra(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert command("--engine ray") == (2, f"robust-rlhf: {ray_connection.MISSING}\n")
    assert "robust-rlhf-jax[ray]" in ray_connection.MISSING


@needs_ray
@pytest.mark.parametrize(
    ("address", "reason"), [("127.0.0.1:1", "Connection refused"), ("here", "no port is given")]
)
def test_an_address_without_a_cluster_is_one_sentence(command, address, reason):
    status, errors = command(f"--engine ray --ray-address {address}")
    assert status == 2
    assert errors.startswith(f"robust-rlhf: --ray-address {address}: no Ray cluster can be reached there (")
    assert f"{reason}); " in errors
    assert errors.count("\n") == 1


def test_an_address_is_for_ray(command):
    status, errors = command("--ray-address 127.0.0.1:1")
    assert (status, errors) == (2, "robust-rlhf: --ray-address 127.0.0.1:1 is for --engine ray: add that.\n")


@pytest.mark.slow
def test_a_worker_of_another_version_refuses(monkeypatch):
    """Its numbers could be others under the same part's name."""
    task = engine.Task(CONFIG, engine._plan(CONFIG, engine.sweep_worlds(CONFIG))[0], 0)
    monkeypatch.setattr("robust_rlhf_jax.lab.sweeps.store.metadata.version", lambda package: "0.0")
    with pytest.raises(ValueError, match="would compute other numbers than this machine"):
        ray_engine.compute(task)
