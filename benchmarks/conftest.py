"""How the benchmarks measure: whole outputs, compile and run apart, rivals in turns.

`python -m pytest benchmarks --benchmark-only --benchmark-json=benchmarks/results.json`; `--small` runs those that know
it at a size that says only whether they work.
"""

import importlib.util
import time
from importlib import metadata

import jax
import numpy as np
import pytest

PACKAGES = ("jax", "jaxlib", "numpy", "scikit-learn", "torch")
MODULES = {"scikit-learn": "sklearn"}

# A cache on disk would pass off a look-up as compilation.
jax.config.update("jax_enable_compilation_cache", False)


def pytest_addoption(parser):
    parser.addoption("--small", action="store_true", help="small sizes where a benchmark has them")


@pytest.fixture(scope="session")
def small(request):
    return request.config.getoption("--small")


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
def measure(benchmark):
    """measure(run, what=…, size=…, group=…) times `run()` until every array of its result is ready.

    `compile_s` is the first call on empty caches less the median run; None for a `run` that compiles nothing.
    """

    def measure(run, *, what, size, group, rounds=7, iterations=1, compiles=True):
        benchmark.group = group
        benchmark.extra_info.update(what=what, size=size, compile_s=None)
        if compiles:
            jax.clear_caches()
            first = _timed(run)
        out = benchmark.pedantic(
            lambda: jax.block_until_ready(run()),
            rounds=rounds,
            iterations=iterations,
            warmup_rounds=int(compiles),
        )
        if compiles and benchmark.stats is not None:
            benchmark.extra_info["compile_s"] = max(0.0, first - benchmark.stats.stats.median)
        return out

    return measure


@pytest.fixture
def beside(benchmark, capsys):
    """beside(ours, rival, name=…) runs both in turns and stores rival/ours of the minima and of the medians.

    **Returns:** the medians (ours, rival) in seconds.

    Taking turns exposes both to the same neighbours on a shared machine. Every timed run follows untimed
    ones of the same code for a quarter of a second: OpenBLAS's threads spin for a while after their work and would
    slow whoever comes next.
    """

    def warm(run):
        end = time.perf_counter() + 0.25
        while time.perf_counter() < end:
            _timed(run)
        return _timed(run)

    def beside(ours, rival, *, name, turns=7):
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
        )
        with capsys.disabled():
            print(
                f"\n{benchmark.extra_info['what']} beside {name}, {turns} turns: "
                f"medians {1e3 * middle[0]:.1f} and {1e3 * middle[1]:.1f} ms, ratio {middle[1] / middle[0]:.2f}; "
                f"minima {1e3 * low[0]:.1f} and {1e3 * low[1]:.1f} ms, ratio {low[1] / low[0]:.2f}"
            )
        return middle

    return beside
