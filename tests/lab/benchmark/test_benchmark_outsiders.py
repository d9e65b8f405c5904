"""Estimates of other shapes than asked for, shares of no pair, and claims about pairs under another name."""

import json
import shutil

import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.lab import benchmark
from robust_rlhf_jax.lab.benchmark import command
from robust_rlhf_jax.lab.benchmark.claims import read_claims
from robust_rlhf_jax.lab.benchmark.explain import unanswered
from robust_rlhf_jax.lab.benchmark.scores import detection_scores
from robust_rlhf_jax.lab.pair_attacks import AttackedPairs
from robust_rlhf_jax.raters.protocol import RaterEntry, RaterEstimate
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate

N, K, RATERS = 20, 3, 4


@pytest.mark.parametrize(
    ("theta", "suspicion", "reliability", "said"),
    [
        ((1,), (N,), (RATERS,), r"its theta has shape \(1,\): return \(3,\), one number for each feature"),
        ((K, 1), (N,), (RATERS,), r"its theta has shape \(3, 1\)"),
        ((K,), (K,), (RATERS,), r"its suspicion has shape \(3,\): return \(20,\), one number for each pair"),
        ((K,), (N,), (N,), r"its reliability has shape \(20,\): return \(4,\), one number for each rater"),
    ],
)
def test_an_estimate_of_another_shape_is_refused(theta, suspicion, reliability, said):
    def mine(x, labels, epsilon, *, radius):
        return RewardEstimate(jnp.ones(theta), jnp.ones(N), jnp.zeros(suspicion), jnp.zeros((), int))

    def rated(x, labels, epsilon, raters, n_raters, *, radius):
        parts = jnp.ones(theta), jnp.ones(N), jnp.zeros(suspicion), jnp.zeros((), int)
        return RaterEstimate(*parts, jnp.ones(reliability))

    entries = {"mine": Entry(mine, "mine", None, ""), "rated": RaterEntry(rated, "rated", "")}
    known = benchmark.contestants(entries)
    x = np.random.default_rng(0).normal(size=(N, K))
    pairs = AttackedPairs(x, np.ones(N), np.concatenate([x, 0 * x]), np.arange(N) % RATERS)
    for name in ("rated",) if reliability != (RATERS,) else entries:
        with pytest.raises(ValueError, match=said):
            known[name].fit(pairs, 0.1, ("a", "b", "c"))


def with_theta(value):
    def mine(x, labels, epsilon, *, radius):
        theta = jnp.full(x.shape[1], value)
        return RewardEstimate(theta, jnp.ones_like(labels), labels, jnp.zeros((), int))

    return benchmark.contestants({"mine": Entry(mine, "mine", None, "")})


def test_complex_weights_are_refused():
    pairs = AttackedPairs(np.ones((N, K)), np.ones(N), np.ones((2 * N, K)))
    with pytest.raises(ValueError, match="its theta has complex numbers: return real ones"):
        with_theta(1j)["mine"].fit(pairs, 0.1, ("a", "b", "c"))


@pytest.mark.parametrize(("value", "said"), [(np.nan, "mine in 2 of its 2 cells."), (1.0, "")])
def test_who_gives_no_number_is_named(value, said):
    """An even chance is ahead of a fit that was reversed."""
    rail = benchmark.read_problem("rail", most=300, seed=0)
    config = benchmark.BenchmarkConfig(("near",), (0.1,), ("mine", "majority"))
    rows = benchmark.run_benchmark([rail], config, benchmark.PAIR_ATTACKS, with_theta(value))
    mine = [row for row in rows if row["estimator"] == "mine"]
    assert [row["unanswered"] for row in mine] == [float(np.isnan(value))] * 2
    assert unanswered(rows, "rail").endswith(said)
    assert bool(unanswered(rows, "rail")) == bool(said)
    assert unanswered(rows, "another") == ""


def test_a_suspicion_that_is_not_known_finds_nothing():
    clean = AttackedPairs(np.zeros((4, 1)), np.ones(4), np.zeros((8, 1)))
    seen = clean._replace(labels=np.array([-1.0, 1.0, 1.0, 1.0]))
    fitted = benchmark.Fitted(lambda x: x, np.array([np.nan, 0.0, 2.0, 1.0]))
    assert np.isnan(detection_scores(fitted, seen, clean, by_raters=False)["found"])


def test_a_share_of_less_than_one_pair_is_refused_before_any_work():
    """Its worst case would be the honest pairs'."""
    rail = benchmark.read_problem("rail", most=300, seed=0)
    config = benchmark.BenchmarkConfig(("near",), (0.001, 0.1), ("majority",))
    known = benchmark.PAIR_ATTACKS, benchmark.contestants()
    with pytest.raises(
        ValueError, match=r"ε = 0.001 of the 2\d\d training pairs of rail is less than one pair"
    ):
        benchmark.run_benchmark([rail], config, *known)


def test_a_folder_beside_claims_is_no_bundled_file(tmp_path):
    """Such as the results of an earlier run on it."""
    row = {
        "data": "0",
        "attack": "near",
        "epsilon": 0.1,
        "estimator": "sever",
        "accuracy": 0.5,
        "log_loss": 0.7,
    }
    for name in ("rail", "mine"):
        (tmp_path / name).mkdir()
    path = tmp_path / "claims.json"
    path.write_text(json.dumps([{"file": name} | row for name in ("rail", "mine")]), encoding="utf-8")
    assert [claim["file"] for claim in read_claims(path)] == ["rail", str(tmp_path / "mine")]

    path.write_text(json.dumps({"file": ""} | row), encoding="utf-8")
    with pytest.raises(ValueError, match="row 1: file is empty: say which"):
        read_claims(path)


@pytest.mark.slow
def test_a_claim_may_call_the_file_by_another_name(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    z = x * np.where(rng.logistic(size=200) < x @ [2.0, -1.0], 1, -1)[:, None]
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    table = np.concatenate([z, 0 * z], axis=1)
    np.savetxt(one, table, delimiter=",", comments="", header="chosen_a,chosen_b,rejected_a,rejected_b")
    shutil.copy(one, other)
    config = benchmark.BenchmarkConfig(("near",), (0.1,), ("majority",))
    command.benchmark_command((str(other),), config, tmp_path / "theirs", quiet=True)
    claims = json.loads((tmp_path / "theirs" / "benchmark.json").read_text(encoding="utf-8"))["claims"]
    path = tmp_path / "claims.json"
    path.write_text(json.dumps(claims), encoding="utf-8")
    both = benchmark.BenchmarkConfig(("near",), (0.1,), ("maximum_likelihood",))
    command.benchmark_command((str(one),), both, tmp_path / "ours", (), (path,), quiet=True)
    summary = json.loads((tmp_path / "ours" / "benchmark.json").read_text(encoding="utf-8"))
    (standing,) = summary["standings"]
    assert standing["file"] == "one"
    assert {line["estimator"] for line in standing["lines"]} == {"maximum_likelihood", "majority"}
