"""How long programs compiled, here and elsewhere, in a stretch of time."""

import time

import jax
import jax.numpy as jnp
import pytest

from robust_rlhf_jax.lab.sweeps import compiling


@pytest.fixture
def record(monkeypatch):
    record = compiling._Record()
    monkeypatch.setattr(compiling, "_record", lambda: record)
    yield record
    jax.monitoring.unregister_event_duration_listener(record._listen)


def test_a_program_that_compiles_takes_its_time_once(record):
    start = time.monotonic()
    jax.jit(lambda x: jax.jit(jnp.cumsum)(x) * 3 - 17)(jnp.arange(5.0)).block_until_ready()
    end = time.monotonic()
    assert 0 < compiling.seconds_between(start, end) <= end - start
    assert compiling.seconds_between(end, end + 1) == 0
    assert compiling.spans_after(start) == record.spans


def test_inner_programs_are_part_of_the_outer_one(record, monkeypatch):
    for end, seconds in ((12.0, 1.0), (15.0, 2.0), (16.0, 6.0)):
        monkeypatch.setattr(compiling.time, "monotonic", lambda end=end: end)
        record._listen("/jax/core/compile/jaxpr_trace_duration", seconds)
    record._listen("/jax/checkpoint/write", 3.0)
    assert record.spans == [(10.0, 16.0)]


def test_of_several_processes_each_has_its_share(record):
    compiling.add([(0.0, 60.0)], 0.5)
    compiling.add([(50.0, 70.0)], 0.5)
    assert compiling.seconds_between(50.0, 100.0) == pytest.approx(15.0)
