"""How the benchmarks measure: whole outputs, compile and run apart, memory, the machine's own rates, rivals in turns.

`python -m pytest benchmarks --benchmark-only --benchmark-json=benchmarks/results.json`; `--small` runs all at a size
that says only whether they work. The rows beside PyTorch need `pip install torch`, of which the CPU build will do.
"""

import importlib.util
import time
from importlib import metadata

import jax
import machine
import numpy as np
import pytest
from program_memory import peak_memory_bytes

PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "scikit-learn", "torch")
MODULES = {"scikit-learn": "sklearn"}
SMALLER = 50

# A cache on disk would pass off a look-up as compilation.
jax.config.update("jax_enable_compilation_cache", False)


def pytest_addoption(parser):
    parser.addoption("--small", action="store_true", help="sizes that say only whether the benchmarks work")


@pytest.fixture(scope="session")
def small(request):
    return request.config.getoption("--small")


@pytest.fixture(scope="session")
def rows(small):
    """rows(n): n, or a fiftieth of it with `--small`."""
    return lambda n: max(500, n // SMALLER) if small else n


@pytest.fixture(scope="session")
def sized(small):
    """sized(world): the world's size; with `--small` always the same one, so that its data are prepared but once."""
    return lambda world: {"n": 500, "h": 2, "d": 6} if small else world


@pytest.fixture(scope="session")
def copy_rate(rows):
    """Bytes per second, read and written, at which this machine copies."""
    return machine.copy_rate(rows(1_000_000), 128)


@pytest.fixture(scope="session")
def product_rate(small):
    """Operations per second of this machine's matrix product."""
    return machine.product_rate(small)


def pytest_benchmark_update_machine_info(config, machine_info):
    """Versions and the device of JAX beside the processor; the host's name is nobody's business."""
    machine_info.pop("node", None)
    installed = [name for name in PACKAGES if importlib.util.find_spec(MODULES.get(name, name))]
    machine_info["packages"] = {name: metadata.version(name) for name in installed}
    machine_info["device"] = {"platform": jax.default_backend(), "kind": jax.devices()[0].device_kind}


def _timed(run):
    start = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - start


@pytest.fixture
def measure(benchmark, small):
    """measure(program, *arguments, what=…, size=…, work=(amount, unit)) times runs until all of their result is ready.

    Stores `compile_s`: the first call on empty caches less the median run; `throughput`: the `amount` of `unit` that
    a run processes, per second; `peak_memory_bytes` of a jitted program.
    """

    def measure(program, *arguments, what, size, work, rounds=7):
        benchmark.group = what
        amount, unit = work
        jax.clear_caches()
        first = _timed(lambda: program(*arguments))
        benchmark.extra_info.update(what=what, size=size, work=amount, throughput_unit=f"{unit}/s")
        benchmark.extra_info["peak_memory_bytes"] = peak_memory_bytes(program, *arguments)
        out = benchmark.pedantic(
            lambda: jax.block_until_ready(program(*arguments)), rounds=1 if small else rounds, warmup_rounds=1
        )
        if benchmark.stats is not None:
            median = benchmark.stats.stats.median
            benchmark.extra_info.update(compile_s=max(0.0, first - median), throughput=amount / median)
        return out

    return measure


@pytest.fixture
def beside(benchmark, capsys, small):
    """beside(ours, rival, name=…) runs both in turns and stores rival/ours of the minima and of the medians.

    **Returns:** the medians (ours, rival) in seconds.

    Taking turns exposes both to the same neighbours on a shared machine. Every timed run follows untimed
    ones of the same code for a quarter of a second: OpenBLAS's threads spin for a while after their work and would
    slow whoever comes next.
    """

    def warm(run):
        end = time.perf_counter() + (0.01 if small else 0.25)
        while time.perf_counter() < end:
            _timed(run)
        return _timed(run)

    def beside(ours, rival, *, name, turns=7):
        turns = 2 if small else turns
        times = np.asarray([(warm(ours), warm(rival)) for _ in range(turns)])
        low, middle = times.min(axis=0), np.median(times, axis=0)
        benchmark.extra_info.update(
            beside=name,
            turns=turns,
            ours_median_s=middle[0],
            ours_min_s=low[0],
            beside_median_s=middle[1],
            beside_min_s=low[1],
            ratio_median=middle[1] / middle[0],
            ratio_min=low[1] / low[0],
            throughput=benchmark.extra_info["work"] / middle[0],
        )
        with capsys.disabled():
            print(
                f"\n{benchmark.extra_info['what']} beside {name}, {turns} turns: "
                f"medians {1e3 * middle[0]:.3g} and {1e3 * middle[1]:.3g} ms, ratio {middle[1] / middle[0]:.2f}; "
                f"minima {1e3 * low[0]:.3g} and {1e3 * low[1]:.3g} ms, ratio {low[1] / low[0]:.2f}"
            )
        return middle

    return beside


def _store_fraction(benchmark, amount, rate, of):
    """`amount` per second of the row's median run, as a fraction of `rate`; call it after `beside`."""
    if benchmark.stats is not None:
        seconds = benchmark.extra_info.get("ours_median_s", benchmark.stats.stats.median)
        benchmark.extra_info.update(fraction=amount / seconds / rate, fraction_of=of)


@pytest.fixture
def against_copy(benchmark, copy_rate):
    """against_copy(bytes, account) stores how near a run that must move these bytes comes to the machine's copying."""

    def against_copy(size, account):
        _store_fraction(benchmark, size, copy_rate, f"of the copy's bytes per second ({account})")
        benchmark.extra_info["copy_gb_per_s"] = copy_rate / 1e9

    return against_copy


@pytest.fixture
def against_product(benchmark, product_rate):
    """against_product(operations, account) stores how near a run comes to the machine's matrix product."""

    def against_product(operations, account):
        _store_fraction(
            benchmark, operations, product_rate, f"of a product's operations per second ({account})"
        )
        benchmark.extra_info["product_gflops"] = product_rate / 1e9

    return against_product
