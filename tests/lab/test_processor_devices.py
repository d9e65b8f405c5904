"""As many devices as cores, unless somebody has said how many or it is too late."""

import os
import subprocess
import sys

import jax
import pytest

from robust_rlhf_jax.lab import processor_devices

COUNT = """
import jax
from robust_rlhf_jax.lab.processor_devices import cores, use_all_cores
{before}
use_all_cores()
print(cores(), jax.device_count())
"""


def counted(before="", **variables):
    """(cores, devices) of a process with these environment variables and no others that count devices."""
    environment = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES")}
    environment |= {"JAX_PLATFORMS": "cpu"} | variables
    code = COUNT.format(before=before)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return tuple(map(int, done.stdout.split()))


@pytest.mark.slow
def test_a_device_per_core():
    cores, devices = counted()
    assert devices == cores == processor_devices.cores()


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({"JAX_NUM_CPU_DEVICES": "3"}, id="JAX's variable"),
        pytest.param({"XLA_FLAGS": f"--{processor_devices.FLAG}=3"}, id="XLA's flag"),
    ],
)
def test_who_has_chosen_keeps_the_choice(variables):
    assert counted(**variables)[1] == 3


@pytest.mark.slow
def test_too_late_changes_nothing():
    assert counted("jax.devices()")[1] == 1
    before = jax.device_count()
    processor_devices.use_all_cores()
    assert jax.device_count() == before
