"""Fixtures shared by all tests: float64 in a block, small worlds, and a count of compilations."""

import contextlib
import dataclasses
import gc
import os
import sys
from importlib.metadata import version
from pathlib import Path

import programs_of_tests

# NumPy's threads go on spinning after their work, in the way of the other worker; read when NumPy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Four fifths of the tests' time is compilation: half of that is LLVM at work on programs that run for milliseconds.
# `JAX_DISABLE_MOST_OPTIMIZATIONS=0 python -m pytest` tests them as users run them.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
# Without optimisation XLA's older emitters compile in two thirds of the time; jaxlib 0.11 refuses the flag. One thread
# compiles, since another worker has the other core.
if os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] == "1" and version("jaxlib").startswith("0.10."):
    os.environ["XLA_FLAGS"] = " ".join(
        [
            os.environ.get("XLA_FLAGS", ""),
            "--xla_cpu_use_fusion_emitters=false",
            "--xla_cpu_parallel_codegen_split_count=1",
        ]
    )
# The tests' own modules are compiled once, not by each worker in each run: where the environment says to keep no
# bytecode, half of the time to collect them would go into that.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
# Two workers share the cores: a command that runs within a test leaves the other's alone.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "1")
# No test reads or writes the user's own cache of compiled programs; the tests have one, which both workers, later runs
# and other checkouts share. Thousands of programs are a single operation: each takes 14 ms to make and 6 ms to load.
os.environ["ROBUST_RLHF_CACHE"] = "off"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(programs_of_tests.FOLDER))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
# A program says where each operation comes from: one line of that is written, not a hundred frames of the test runner.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "1")

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import settings
from mlir_contexts import share_contexts
from numpy_worlds import numpy_mdp

from robust_rlhf_jax.kernels.linalg import einsum, matmul
from robust_rlhf_jax.lab.worlds import partial_coverage_mdp
from robust_rlhf_jax.mdp import LinearMDP

# Of the 16 ms of processor time that a small program takes from the cache, this saves 10.
share_contexts()

# Compiled programs live on, and tracing makes objects by the million: looking for garbage among them takes seconds.
gc.set_threshold(50_000, 20, 5000)

# One profile for every property test: the same examples on every machine, and no time limit for compilation.
settings.register_profile("repository", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("repository")

# Memory maps of a process before a test that makes it forget its programs: a slow test may make 30,000 more.
MANY_MAPS, MANY_BEFORE_A_SLOW_TEST = 50_000, 25_000
# Programs after which a process's maps are counted: reading 25,000 of them takes longer than most tests.
COUNT_EVERY = 50


@dataclasses.dataclass
class Compilations:
    """What JAX did within a `with count_compilations()` block."""

    traced: list[str] = dataclasses.field(default_factory=list)
    compiled: list[str] = dataclasses.field(default_factory=list)


_open_counts: list[Compilations] = []


_programs_since_count = 0


def _listen(event: str, duration: float, **details) -> None:
    global _programs_since_count
    name = str(details.get("fun_name", "unnamed"))
    _programs_since_count += event == "/jax/core/compile/jaxpr_to_mlir_module_duration"
    for count in _open_counts:
        if event == "/jax/core/compile/jaxpr_trace_duration":
            count.traced.append(name)
        elif event == "/jax/core/compile/backend_compile_duration":
            count.compiled.append(name)


jax.monitoring.register_event_duration_secs_listener(_listen)


def pytest_sessionstart(session):
    is_worker = hasattr(session.config, "workerinput")
    if not is_worker:
        programs_of_tests.drop_unused()


def pytest_sessionfinish():
    """Look for garbage once: pytest does so twice from here on, among all that the compiled programs hold."""
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def _count_compilations():
    count = Compilations()
    _open_counts.append(count)
    try:
        yield count
    finally:
        # By identity: two blocks that saw nothing are equal as dataclasses.
        _open_counts[:] = [other for other in _open_counts if other is not count]


@pytest.fixture(scope="session")
def count_compilations():
    """`with count_compilations() as count:` names what was traced and compiled inside, eager operations too.

    Build the arguments before the block: `jnp.ones(3)` is a compilation of its own the first time.
    """
    return _count_compilations


@pytest.fixture(autouse=True)
def _forget_programs(request):
    """Drop compiled programs before they are too many: each keeps memory maps, of which a process may have 65,530."""
    global _programs_since_count
    slow = request.node.get_closest_marker("slow") is not None
    if not slow and _programs_since_count < COUNT_EVERY:
        return
    _programs_since_count = 0
    maps, most = Path("/proc/self/maps"), MANY_BEFORE_A_SLOW_TEST if slow else MANY_MAPS
    if maps.exists() and maps.read_bytes().count(b"\n") > most:
        jax.clear_caches()


@pytest.fixture
def x64():
    """Run the whole test in float64; the global switch stays off."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def make_mdp():
    """A random linear MDP that compiles nothing (`numpy_worlds`)."""
    return numpy_mdp


@pytest.fixture
def small_mdp(make_mdp) -> LinearMDP:
    """float32, S = 6, A = 3, d = 4, H = 3."""
    return make_mdp()


@pytest.fixture
def small_mdp64(x64, make_mdp) -> LinearMDP:
    """float64 throughout (the test runs under `x64`), S = 6, A = 3, d = 4, H = 3."""
    return make_mdp()


@pytest.fixture(scope="session")
def partial_coverage():
    """`partial_coverage_mdp` at its defaults: (mdp, (policy0, policy1))."""
    return jax.jit(partial_coverage_mdp)(jax.random.key(0))


@pytest.fixture(scope="session")
def rotate_features():
    """φ ↦ φR, μ ↦ Rᵀμ, θ ↦ Rᵀθ for a random orthogonal R: the same process and rewards, signed features."""

    def rotate(mdp: LinearMDP, seed: int = 0) -> LinearMDP:
        noise = np.random.default_rng(seed).normal(size=(mdp.dim, mdp.dim))
        rotation = jnp.asarray(np.linalg.qr(noise)[0], mdp.features.dtype)
        return LinearMDP(
            matmul(mdp.features, rotation),
            einsum("de,hds->hes", rotation, mdp.transition_measures),
            matmul(mdp.theta, rotation),
            mdp.initial_distribution,
        )

    return rotate


@pytest.fixture(scope="session")
def random_policy():
    """A policy [H, S, A] with every action in play, drawn by NumPy."""

    def draw(mdp: LinearMDP, seed: int = 0):
        shape = (mdp.horizon, mdp.n_states)
        chances = np.random.default_rng(seed).dirichlet(np.ones(mdp.n_actions), shape)
        return jnp.asarray(chances, mdp.features.dtype)

    return draw


@pytest.fixture
def robust_rlhf(monkeypatch, capsys):
    """robust_rlhf(*words) → (exit status, stdout, stderr) of the command."""

    def run(*words):
        # Here: the command's packages are an extra.
        from robust_rlhf_jax import cli

        monkeypatch.setattr(sys, "argv", ["robust-rlhf", *map(str, words)])
        status = 0
        try:
            cli.main()
        except SystemExit as end:
            status = end.code
        return status, *capsys.readouterr()

    return run
