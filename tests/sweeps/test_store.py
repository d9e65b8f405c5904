"""Parts are whole or absent, names tell batches apart, and a stopped sweep goes on with the same numbers."""

import dataclasses

import numpy as np
import pytest

from robust_rlhf_jax.sweeps import engine, run_sweep
from robust_rlhf_jax.sweeps.engine import Lanes
from robust_rlhf_jax.sweeps.store import PartStore, batch_name

ROWS = [{"family": "random", "seed": 1, "normalised_gap": 0.25, "status": "converged"}]


def lanes(epsilons=(0.1, 0.2)):
    n = len(epsilons)
    return Lanes(np.zeros(n, int), np.arange(n), np.arange(n), np.asarray(epsilons, np.float32))


def test_what_is_written_is_read(tmp_path):
    store = PartStore(tmp_path / "new" / "parts")
    assert store.read("a") is None
    store.write("a", ROWS)
    assert PartStore(tmp_path / "new" / "parts").read("a") == ROWS
    assert [path.name for path in (tmp_path / "new" / "parts").iterdir()] == ["a.parquet"]


def test_an_unfinished_part_is_no_part(tmp_path, monkeypatch):
    store = PartStore(tmp_path)

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("robust_rlhf_jax.sweeps.store.os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        store.write("a", ROWS)
    assert PartStore(tmp_path).read("a") is None


def test_names_tell_batches_apart(small_config):
    name = batch_name(small_config, "push_features", "standard", lanes())
    assert name == batch_name(
        dataclasses.replace(small_config, lanes=99), "push_features", "standard", lanes()
    )
    others = [
        batch_name(small_config, "flip_confident", "standard", lanes()),
        batch_name(small_config, "push_features", "uniform_coverage", lanes()),
        batch_name(small_config, "push_features", "standard", lanes((0.1, 0.25))),
        *[
            batch_name(dataclasses.replace(small_config, **change), "push_features", "standard", lanes())
            for change in ({"seed": 1}, {"n_pairs": 601}, {"temperature": 2.0})
        ],
    ]
    assert len({name, *others}) == 1 + len(others)


def test_a_stopped_sweep_goes_on(small_config, small_sweep, tmp_path, monkeypatch):
    """Stopped after its third batch: the second run computes the others only, and the rows are those of one run."""
    config = dataclasses.replace(small_config, algorithms=("standard", "clean_reference"))
    solved = []
    solve = engine.solve_batch

    def counting(*args):
        if len(solved) == 3 and not stopped:
            raise KeyboardInterrupt
        solved.append(args[-1])
        return solve(*args)

    stopped = []
    monkeypatch.setattr(engine, "solve_batch", counting)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(config, store=PartStore(tmp_path))
    stopped.append(True)
    rows = run_sweep(config, store=PartStore(tmp_path)).rows
    n_batches = len(list(tmp_path.iterdir()))
    assert len(solved) == n_batches == 2 + 2 * 3
    wanted = [row for row in small_sweep[0].rows if row["algorithm"] in config.algorithms]
    key = lambda row: tuple(str(row[name]) for name in ("family", "attack", "epsilon", "seed", "algorithm"))  # noqa: E731
    assert sorted(rows, key=key) == sorted(wanted, key=key)
