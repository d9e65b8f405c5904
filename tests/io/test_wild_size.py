"""A file of 100,000 pairs of texts is described and read in seconds, without holding it several times in memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROWS = 100_000
ROOT = Path(__file__).parents[2]
# What the fresh process runs: its argument is the file; it prints how long the work took and the largest memory in MB.
# A busy machine is a slow one, so the unit of time is what scikit-learn needs, at that moment, to hash the words of
# 40,000 such answers: 1.6 s where nothing else runs. It is measured before and after the work, twice each: one of them
# differs from the next by a half on a busy machine. Seconds are the processor's, all threads together. On Linux the
# largest memory is VmHWM: what getrusage tells begins with the memory of the process that started this one.
PROGRAM = """
import json, resource, sys, time
from sklearn.feature_extraction.text import HashingVectorizer
from robust_rlhf_jax.io import {work}
answers = [" ".join(f"word{{i * j % 997}}" for j in range(40)) for i in range(40_000)]
def seconds(work):
    began = time.process_time()
    work()
    return time.process_time() - began
def twice():
    return [seconds(lambda: HashingVectorizer(ngram_range=(1, 2)).transform(answers)) for _ in range(2)]
found, units = [], twice()
taken = seconds(lambda: found.append({work}(sys.argv[1])))
if sys.platform == "linux":
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 2**10
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
units += twice()
print(json.dumps([taken / (sum(units) / len(units)), peak, found[0].n_pairs]))
"""


@pytest.fixture(scope="module", params=["jsonl", "csv", "parquet"])
def large(request, tmp_path_factory):
    """About 60 MB: answers of 40 words on average."""
    import numpy as np
    from wild import stores, worlds

    rng = np.random.default_rng(0)
    words = rng.choice(worlds.WORDS, (ROWS, 2, 60))
    lengths = rng.integers(20, 60, (ROWS, 2))
    rows = [
        {"id": i, "prompt": f"What happens in case {i}?",
         "response_a": " ".join(words[i, 0, : lengths[i, 0]]) + f" {i}",
         "response_b": " ".join(words[i, 1, : lengths[i, 1]]) + f" {i}", "winner": ("model_a", "model_b", "tie")[i % 3]}
        for i in range(ROWS)
    ]  # fmt: skip
    store = {"jsonl": stores.jsonl(), "csv": stores.table(), "parquet": stores.parquet()}[request.param]
    return store(tmp_path_factory.mktemp("large"), rows)


@pytest.mark.slow
@pytest.mark.parametrize(("work", "limit"), [("describe", 4), ("load_pairs", 12.5)])
def test_many_texts_take_seconds_and_little_memory(large, work, limit):
    # One device, as a user's process has it on a machine without an accelerator.
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(work=work), str(large)],
        capture_output=True, text=True, check=True, env=environment, cwd=ROOT,
    )  # fmt: skip
    units, megabytes, pairs = json.loads(done.stdout.splitlines()[-1])
    assert pairs == ROWS
    assert units <= limit
    assert megabytes <= 2048
