"""A sweep's batches in processes of this machine, each pinned to a core of its own.

XLA hands the small operations of a cell from thread to thread: on two cores one process of two devices spends almost
twice the processor time of two pinned ones (docs/sweeps.md). Rows come back to this process, which alone writes them.
"""

import contextlib
import math
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator
from multiprocessing.connection import Connection, wait

from robust_rlhf_jax.compilation_cache import keeps_compiled_programs
from robust_rlhf_jax.lab.processor_devices import check_on_cpu, usable_cores
from robust_rlhf_jax.memory import host_bytes

from . import compiling
from .config import SweepConfig
from .engine import Execute, Rows, Task
from .worker import parts_of

# The share of the memory for all workers together; the rest is for this process and for others.
SHARE = 0.8
# How many threads OpenBLAS, which NumPy and LAPACK use, and XLA's client may have.
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "PJRT_NPROC")
# The answer that ends a task.
FINISHED = "finished"


class WorkerLost(ChildProcessError):
    """A process that computed a task has ended by itself."""


@contextlib.contextmanager
def worker_processes(config: SweepConfig) -> Iterator[Execute]:
    """The block gets `run_sweep`'s `execute` on a process per core, or fewer where `config` has less for them to do.

    They start at once, so that they have imported JAX when the first task is planned, and end with the block.

    **Raises:** ValueError where JAX does not run on CPU.
    """
    check_on_cpu("processes")
    most = len(config.families) * (1 + len(config.attacks))
    workers = [_Worker(core) for core in usable_cores()[:most]]
    try:
        yield lambda tasks: _execute(workers, tasks)
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process, the `task` at which it is, since when and with how many seconds of compilation, and the configuration
    of its last one, whose programs it has.
    """

    def __init__(self, core: int):
        # JAX has threads, which a fork would lose.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with _ignoring_ctrl_c(), _inherited(core):
            self._process.start()
        theirs.close()
        self.task: Task | None = None
        self.knows: SweepConfig | None = None
        self.began, self.compiled = 0.0, 0.0

    def begin(self, task: Task) -> None:
        self.task, self.knows = task, task.config
        self.began, self.compiled = time.monotonic(), 0.0
        try:
            self.connection.send(task)
        except OSError:
            raise self._lost() from None

    def receive(self) -> dict[str, Rows] | list[compiling.Span] | str:
        """A part, when its programs compiled, or `FINISHED`.

        **Raises:** what the task raised; WorkerLost.
        """
        try:
            answer = self.connection.recv()
        except (EOFError, OSError):
            raise self._lost() from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def tasks_while_compiling(self) -> float:
        """How many tasks like the one that it has done take as long as what it compiled for it."""
        return self.compiled / max(time.monotonic() - self.began - self.compiled, 1e-3)

    def end(self) -> None:
        self._process.terminate()
        self._process.join()
        self.connection.close()

    def _lost(self) -> WorkerLost:
        self._process.join()
        return WorkerLost(
            f"a worker process ended by itself (exit code {self._process.exitcode}), perhaps because memory ran out: "
            "finished batches are kept, and the same command resumes there; --engine local needs less."
        )


def _execute(workers: list[_Worker], tasks: list[Task]) -> Generator[dict[str, Rows], None, None]:
    waiting = dict(enumerate(tasks))
    workers = workers[: _that_fit(tasks)]
    too_few: dict[SweepConfig, float] = {}
    while True:
        for worker in workers:
            number = None if worker.task else _next(waiting, worker, workers, too_few)
            if number is not None:
                worker.begin(waiting.pop(number))
        busy = [worker for worker in workers if worker.task]
        if not busy:
            return
        ready = wait([worker.connection for worker in busy])
        for worker in busy:
            if worker.connection not in ready:
                continue
            answer = worker.receive()
            if isinstance(answer, dict):
                yield answer
            elif isinstance(answer, list):
                compiling.add(answer, 1 / len(busy))
                worker.compiled += sum(end - start for start, end in answer)
            elif worker.task:
                config, worker.task = worker.task.config, None
                alone = 0.0 if keeps_compiled_programs() else worker.tasks_while_compiling()
                too_few[config] = max(too_few.get(config, 0.0), alone)


def _that_fit(tasks: list[Task]) -> int:
    """Workers whose largest tasks memory holds together; one at least."""
    largest = max((task.size for task in tasks), default=1)
    return max(1, int(SHARE * host_bytes() / largest))


def _next(
    waiting: dict[int, Task], worker: _Worker, workers: list[_Worker], too_few: dict[SweepConfig, float]
) -> int | None:
    """The first task of the worker's own sweep, then of one that nobody works on, then of one of which more than
    `too_few` tasks wait: its programs are in the cache, or compiling them again takes no longer than those tasks. None
    where the worker would only compile what another one is compiling.
    """
    taken = {other.knows for other in workers if other.task}
    own = [number for number, task in waiting.items() if task.config == worker.knows]
    free = [number for number, task in waiting.items() if task.config not in taken]
    wait_of = Counter(task.config for task in waiting.values())
    known = [n for n, task in waiting.items() if wait_of[task.config] > too_few.get(task.config, math.inf)]
    return next(iter(own or free or known), None)


def _serve(connection: Connection) -> None:
    """What a worker process does: one task after another, until it is told to end."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        while True:
            task = connection.recv()
            for answer in _answers(task):
                connection.send(answer)


def _answers(task: Task) -> Iterator[dict[str, Rows] | list[compiling.Span] | Exception | str]:
    compiling.listen()
    told = time.monotonic()
    try:
        for part in parts_of(task):
            yield compiling.spans_after(told)
            told = time.monotonic()
            yield part
        yield FINISHED
    except (ValueError, MemoryError, RuntimeError) as error:
        # As text: not every exception can be sent.
        kind = type(error) if type(error) in (ValueError, MemoryError) else RuntimeError
        yield kind(str(error))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def _ignoring_ctrl_c() -> Iterator[None]:
    """This process ignores Ctrl-C, and so does one that starts in the block: a terminal sends it to all of them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _inherited(core: int) -> Iterator[None]:
    """A process that starts in the block has this core alone, from its first import on: libraries count the cores when
    they are imported, and two threads of OpenBLAS on one core are five times as slow as one.
    """
    before = {name: os.environ.get(name) for name in THREADS}
    mask = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    try:
        os.environ |= dict.fromkeys(THREADS, "1")
        if mask is not None:
            os.sched_setaffinity(0, {core})
        yield
    finally:
        if mask is not None:
            os.sched_setaffinity(0, mask)
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
