"""The study of fits by passes: its worlds, and its clock of passes."""

import numpy as np
import pytest


@pytest.fixture
def study():
    import streamed

    return streamed


def test_generated_pairs_are_the_same_in_every_pass_and_follow_theta(study):
    world = study.World(8)
    first, again = (np.concatenate(list(study.generated(world, 25_000))) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert first.shape == (25_000, 8)
    honest = np.mean(world.pairs(25_000, 5) @ world.theta > 0)
    # A twentieth is planted against θ; a standard error is .003.
    assert abs(np.mean(first @ world.theta > 0) - 0.95 * honest) < 0.02


def test_shards_are_written_once(study, tmp_path, monkeypatch):
    monkeypatch.setattr(study, "SHARD", 300)
    folder = study.written(tmp_path, 700, 4)
    assert [np.load(path).shape for path in sorted(folder.iterdir())] == [(300, 4), (300, 4), (100, 4)]
    before = [path.stat().st_mtime_ns for path in sorted(folder.iterdir())]
    assert before == [path.stat().st_mtime_ns for path in sorted(study.written(tmp_path, 700, 4).iterdir())]


def test_clock_names_passes(study):
    clock = study.Clock()
    for doing, done in (
        ("pass 1: sample", 1),
        ("pass 1: sample", 2),
        ("explanations", 0),
        ("pass 2: lengths", 2),
    ):
        clock(doing, done, 2)
    assert [doing for doing, _ in clock.read()] == ["sample", "lengths"]
