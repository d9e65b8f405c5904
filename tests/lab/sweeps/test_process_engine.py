"""The sweep in processes: the rows of one process to the bit, whoever does what, dies or is interrupted."""

import json
import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from small_sweep import COMMAND, small_sweep, wait_for

from robust_rlhf_jax import cli
from robust_rlhf_jax.lab.sweeps import config_toml, process_engine, run_sweep
from robust_rlhf_jax.lab.sweeps.engine import Task
from robust_rlhf_jax.lab.sweeps.store import MemoryStore, PartStore

CONFIG = small_sweep(seeds=6)
CELLS = 12
linux = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs Linux: affinities and /proc")


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """Of compiled programs, for all workers; this process keeps none."""
    before = os.environ.get("ROBUST_RLHF_CACHE")
    os.environ["ROBUST_RLHF_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    os.environ["ROBUST_RLHF_CACHE"] = before or "off"


@pytest.fixture(scope="module")
def local():
    return run_sweep(CONFIG).rows


class Noted(MemoryStore):
    """The names of what was written."""

    def __init__(self):
        self.names = []

    def write(self, name, rows, kind="cells"):
        self.names.append(name)


@pytest.mark.slow
def test_processes_change_no_bit(local):
    seen, store = [], Noted()
    with process_engine.worker_processes(CONFIG) as execute:
        found = run_sweep(CONFIG, lambda cells, free: seen.append(cells), store, execute)
    assert found.rows == local
    assert sum(seen) == CELLS
    assert len(store.names) == len(set(store.names)) == CELLS + 1  # and the label entropy


@linux
def test_each_starts_with_a_core_of_its_own():
    cores = []
    run = "import os, sys; print(sorted(os.sched_getaffinity(0)), os.environ['OPENBLAS_NUM_THREADS'])"
    for core in process_engine.usable_cores():
        with process_engine._inherited(core):
            cores.append(subprocess.check_output([sys.executable, "-c", run], text=True).strip())
    assert cores == [f"[{core}] 1" for core in process_engine.usable_cores()]
    assert sorted(os.sched_getaffinity(0)) == process_engine.usable_cores()


def test_variables_are_as_before(monkeypatch):
    monkeypatch.setenv("PJRT_NPROC", "7")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with process_engine._inherited(process_engine.usable_cores()[0]):
        assert os.environ["PJRT_NPROC"] == os.environ["OMP_NUM_THREADS"] == "1"
    assert os.environ["PJRT_NPROC"] == "7"
    assert "OMP_NUM_THREADS" not in os.environ


def worker(task=None, knows=None):
    return types.SimpleNamespace(task=task, knows=knows)


def task(config, size=1):
    return Task(config, None, size)


def test_a_worker_stays_with_its_sweep_and_joins_one_that_is_compiled():
    waiting = {0: task("a"), 1: task("b"), 2: task("a")}
    choose = process_engine._next
    idle = worker()
    assert choose(waiting, idle, [idle], {}) == 0
    first = worker(task("a"), "a")
    assert choose(waiting, idle, [first, idle], {}) == 1  # a is being compiled by another
    used = worker(None, "b")
    assert choose(waiting, used, [first, used], {}) == 1
    only_a = {2: task("a")}
    assert choose(only_a, used, [first, used], {}) is None
    assert choose(only_a, used, [first, used], {"a": 0.0}) == 2
    assert choose(only_a, used, [worker(None, "a"), used], {}) == 2  # nobody works on it any more
    assert choose({}, idle, [idle], {"a": 0.0}) is None


def test_without_a_cache_a_worker_compiles_again_for_more_tasks_than_that_takes():
    waiting, used = {number: task("a") for number in range(3)}, worker(None, "b")
    workers = [worker(task("a"), "a"), used]
    assert process_engine._next(waiting, used, workers, {"a": 3.5}) is None
    assert process_engine._next(waiting, used, workers, {"a": 2.5}) == 0


def test_compilation_counts_in_tasks(monkeypatch):
    done = types.SimpleNamespace(began=10.0, compiled=40.0)
    monkeypatch.setattr(process_engine.time, "monotonic", lambda: 60.0)
    assert process_engine._Worker.tasks_while_compiling(done) == 4


def test_as_many_as_memory_holds(monkeypatch):
    monkeypatch.setattr(process_engine, "host_bytes", lambda: 10_000)
    assert process_engine._that_fit([task("a", 1_000), task("b", 2_000)]) == 4
    assert process_engine._that_fit([task("a", 50_000)]) == 1
    assert process_engine._that_fit([]) >= 1


@pytest.mark.slow
def test_an_error_of_a_worker_arrives(monkeypatch):
    """A part's name that it would not give: its numbers could be others."""
    real = process_engine._execute

    def renamed(workers, tasks):
        parts = dict.fromkeys(tasks[0].job.parts, "another")
        return real(workers, [tasks[0]._replace(job=tasks[0].job._replace(parts=parts))])

    monkeypatch.setattr(process_engine, "_execute", renamed)
    with (
        process_engine.worker_processes(CONFIG) as execute,
        pytest.raises(ValueError, match="would compute other numbers than this machine"),
    ):
        run_sweep(CONFIG, execute=execute)


@pytest.mark.slow
def test_a_worker_that_dies_is_one_sentence_and_loses_nothing(tmp_path, local, monkeypatch):
    workers = []
    real = process_engine._execute
    monkeypatch.setattr(
        process_engine, "_execute", lambda them, tasks: workers.extend(them) or real(them, tasks)
    )

    def kill_one(cells, free):
        os.kill(workers[0]._process.pid, signal.SIGKILL)

    store = PartStore(tmp_path / "parts")
    with (
        process_engine.worker_processes(CONFIG) as execute,
        pytest.raises(process_engine.WorkerLost, match=r"ended by itself \(exit code -9\)"),
    ):
        run_sweep(CONFIG, kill_one, store, execute)
    kept = len(list((tmp_path / "parts").glob("*.parquet")))
    assert 1 <= kept < CELLS
    assert run_sweep(CONFIG, store=store).rows == local


def test_only_a_processor_is_shared(monkeypatch):
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    with (
        pytest.raises(ValueError, match="--engine processes computes on CPU and JAX is set to gpu"),
        process_engine.worker_processes(CONFIG),
    ):
        pass


@pytest.mark.parametrize(
    ("devices", "cores", "backend", "pay"),
    [(None, 2, "cpu", True), ("1", 2, "cpu", False), (None, 1, "cpu", False), (None, 2, "gpu", False)],
)
def test_processes_are_the_default_on_several_cores_alone(devices, cores, backend, pay, monkeypatch):
    monkeypatch.delenv("JAX_NUM_CPU_DEVICES", raising=False)
    if devices:
        monkeypatch.setenv("JAX_NUM_CPU_DEVICES", devices)
    monkeypatch.setattr("robust_rlhf_jax.lab.processor_devices.cores", lambda: cores)
    monkeypatch.setattr("jax.default_backend", lambda: backend)
    assert cli._processes_pay() is pay


def alive(pid):
    """Whether it runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid):
    return [int(line) for line in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@linux
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_stopped_the_workers_end_and_the_same_command_resumes(number, tmp_path, local):
    """Ctrl-C goes to the whole group, as from a terminal; a kill to the first process alone."""
    (tmp_path / "sweep.toml").write_text(config_toml(CONFIG))
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    words = [*COMMAND, "sweep", "sweep.toml", "--quiet", "--engine", "processes", "--out", "out"]
    process = subprocess.Popen(
        words, cwd=tmp_path, env=environment, start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    parts = lambda: len(list((tmp_path / "out" / "parts").glob("*.parquet")))  # noqa: E731
    wait_for(lambda: parts() or process.poll() is not None)
    workers = children(process.pid)
    assert len(workers) >= 2
    send = os.killpg if number == signal.SIGINT else os.kill
    send(process.pid, number)
    errors = process.communicate(timeout=120)[1]
    assert process.returncode == (130 if number == signal.SIGINT else -number), errors
    wait_for(lambda: not any(map(alive, workers)), 30.0)
    if number == signal.SIGINT:
        assert "Traceback" not in errors
        assert errors.splitlines()[-1].endswith("the same command resumes there.")
    ended = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert pq.read_table(tmp_path / "out" / "results.parquet").to_pylist() == local
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["cells"] == CELLS
