"""The benchmark's cells: against a computation by hand, whatever else is run, resumed, and bad input."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.lab import benchmark
from robust_rlhf_jax.lab.benchmark import config as settings
from robust_rlhf_jax.lab.benchmark import problems
from robust_rlhf_jax.lab.benchmark.run import attack_on, cells_of, clean_theta, left_out, parts_of
from robust_rlhf_jax.lab.benchmark.scores import backdoor_score, detection_scores
from robust_rlhf_jax.lab.pair_attacks import PAIR_ATTACKS, AttackedPairs
from robust_rlhf_jax.lab.sweeps.store import PartStore
from robust_rlhf_jax.raters.protocol import RaterEntry, RaterEstimate

SMALL = benchmark.BenchmarkConfig(
    ("near", "contrary_raters"), (0.1,), ("maximum_likelihood", "majority"), folds=2, pairs=400
)


@pytest.fixture(scope="module")
def rail():
    return benchmark.read_problem("rail", SMALL.pairs, SMALL.seed)


@pytest.fixture(scope="module")
def rows(rail):
    return benchmark.run_benchmark([rail], SMALL, PAIR_ATTACKS, benchmark.contestants())


def without_time(rows):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


def same(one, two):
    for a, b in zip(without_time(one), without_time(two), strict=True):
        assert a.keys() == b.keys()
        for key, value in a.items():
            assert value == b[key] or (value != value and b[key] != b[key]), key


@pytest.mark.slow
def test_every_cell_is_there_once(rows):
    places = [(r["fold"], r["attack"], r["estimator"]) for r in rows]
    assert len(set(places)) == len(places) == 2 * 3 * 2
    assert [r["changed"] > 0 for r in rows] == [r["attack"] != "none" for r in rows]


@pytest.mark.slow
def test_accuracy_of_plain_is_scikit_learns(rail, rows):
    linear_model = pytest.importorskip("sklearn.linear_model")
    trial = next(problems.trials(rail, 1, SMALL.seed))
    model = linear_model.LogisticRegression(C=1e4, fit_intercept=False, max_iter=1000)
    size = trial.train.x.std(axis=0)
    model.fit(trial.train.x / size, trial.train.labels)
    right = model.predict(trial.test.x / size) == trial.test.labels
    mine = next(r for r in rows if r["attack"] == "none" and r["estimator"] == "maximum_likelihood")
    assert mine["accuracy"] == pytest.approx(right.mean(), abs=2.5 / len(right))


@pytest.mark.slow
def test_a_cell_is_the_same_whatever_runs_beside_it(rail, rows):
    alone = dataclasses.replace(SMALL, attacks=("near",), estimators=("maximum_likelihood",))
    found = benchmark.run_benchmark([rail], alone, PAIR_ATTACKS, benchmark.contestants())
    wanted = [r for r in rows if r["estimator"] == "maximum_likelihood" and r["attack"] != "contrary_raters"]
    same(found, wanted)


@pytest.mark.slow
def test_a_stopped_run_resumes_to_the_same_rows(rail, rows, tmp_path):
    seen = []

    def stop(n, free=0):
        seen.append((n, free))
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        benchmark.run_benchmark(
            [rail], SMALL, PAIR_ATTACKS, benchmark.contestants(), stop, PartStore(tmp_path / "parts")
        )
    again = []
    found = benchmark.run_benchmark(
        [rail],
        SMALL,
        PAIR_ATTACKS,
        benchmark.contestants(),
        lambda n, free=0: again.append(free),
        PartStore(tmp_path / "parts"),
    )
    assert again[:3] == [2, 2, 2]
    assert again[3:] == [0] * (len(again) - 3)
    same(found, rows)


@pytest.mark.slow
def test_parts_are_counted_before_they_are_run(rail, rows):
    parts = parts_of([rail], SMALL, PAIR_ATTACKS, benchmark.contestants())
    assert cells_of(parts, SMALL) == len(rows)


def test_no_fold_splits_people_and_folds_are_alike(rail):
    found = list(problems.trials(rail, 5, 0))
    assert len({len(t.train.labels) for t in found}) == 1
    assert sum(len(t.test.labels) for t in found) == len(rail.pairs.labels)


def test_options_stand_in_random_order_and_their_differences_are_the_rows(rail):
    options = rail.pairs.options.reshape(-1, 2, rail.pairs.x.shape[1])
    np.testing.assert_allclose(options[:, 0] - options[:, 1], rail.pairs.x)
    assert 0.4 < np.mean(rail.pairs.labels > 0) < 0.6


@pytest.mark.slow
def test_a_world_has_fresh_pairs_and_no_raters():
    problem = benchmark.read_problem("world:chain", 100, 0)
    trial = next(problems.trials(problem, 5, 0))
    assert problem.parts(5) == 1
    assert len(trial.test.labels) == problems.FRESH
    assert problem.pairs.raters is None
    parts = parts_of([problem], benchmark.BenchmarkConfig(), PAIR_ATTACKS, benchmark.contestants())
    assert not {"contrary_raters"} & {part.attack for part in parts}
    assert not {"fit_weighed", "crowd_bt"} & set(parts[0].estimators)


def test_what_needs_raters_is_left_out_with_the_reason(rail):
    config, known = dataclasses.replace(SMALL, estimators=("majority", "crowd_bt")), benchmark.contestants()
    unrated = rail._replace(pairs=rail.pairs._replace(raters=None))
    said = left_out(unrated, config, PAIR_ATTACKS, known)
    assert said == "Left out, since the file does not tell raters apart: contrary_raters, crowd_bt."
    assert left_out(rail, config, PAIR_ATTACKS, known) == ""
    assert left_out(unrated, benchmark.QUICK, PAIR_ATTACKS, known) == ""


def test_a_rater_of_little_reliability_is_called_bad_and_columns_have_size_1():
    rng = np.random.default_rng(0)
    x, who = rng.normal(size=(60, 2)) * [10.0, 0.1], np.repeat([0, 1, 2], 20)
    pairs = AttackedPairs(x, np.ones(60), np.zeros((120, 2)), who)
    given = {}

    def known(x, labels, epsilon, raters, n_raters, *, radius):
        given["columns"] = x
        theta, said = jnp.ones(2), jnp.array([1.0, 0.49, -1.0])
        return RaterEstimate(theta, labels, 1.0 - said[raters], jnp.zeros((), jnp.int32), said)

    def judges_nobody(x, labels, epsilon, raters, n_raters, *, radius):
        return dataclasses.replace(
            known(x, labels, epsilon, raters, n_raters, radius=radius), reliability=None
        )

    entries = {f.__name__: RaterEntry(f, "", "") for f in (known, judges_nobody)}
    with jax.disable_jit():
        fitted, silent = (benchmark.contestants(entries)[name].fit(pairs, 0.1, ()) for name in entries)
    np.testing.assert_array_equal(fitted.bad, [False, True, True])
    np.testing.assert_allclose(fitted.suspicion, (1 - np.array([1.0, 0.49, -1.0]))[who], rtol=1e-6)
    size = np.sqrt(np.mean(x**2, axis=0))
    np.testing.assert_allclose(given["columns"], x / size, rtol=1e-5)
    np.testing.assert_allclose(fitted.probability(x), 1 / (1 + np.exp(-(x / size).sum(axis=1))))
    assert silent.bad is None


def test_a_digest_names_the_data(rail):
    assert benchmark.read_problem("rail", SMALL.pairs, SMALL.seed).digest == rail.digest
    assert benchmark.read_problem("rail", SMALL.pairs, 1).digest != rail.digest


def test_an_attack_over_its_budget_is_refused(rail):
    trial = next(problems.trials(rail, 1, 0))

    def greedy(rng, pairs, epsilon, theta):
        return pairs._replace(labels=-pairs.labels)

    def broken(rng, pairs, epsilon, theta):
        x = pairs.x.copy()
        x[0] = np.nan
        return pairs._replace(x=x)

    for name, attack, said in (("greedy", greedy, "more than"), ("broken", broken, "finite")):
        with pytest.raises(ValueError, match=said):
            attack_on({name: attack}, name, trial, 0.1, clean_theta(trial), 0, 0)


def test_what_is_found_is_a_share_of_what_was_changed():
    clean = AttackedPairs(np.zeros((4, 1)), np.ones(4), np.zeros((8, 1)), np.array([0, 0, 1, 2]))
    seen = clean._replace(labels=np.array([-1.0, -1.0, 1.0, 1.0]))
    fitted = benchmark.Fitted(lambda x: x, np.array([3.0, 0.0, 2.0, 1.0]), np.array([True, True, False]))
    found = detection_scores(fitted, seen, clean, by_raters=True)
    assert found == {"found": 0.5, "raters_found": 1.0, "raters_right": 0.5}
    nothing = detection_scores(fitted, clean, clean, by_raters=False)
    assert all(np.isnan(value) for value in nothing.values())


def test_the_backdoor_is_counted_on_losers_that_bear_the_mark():
    """θ = (1, 0): the mark (2, 0) makes a loser win whose margin is below 2; a mark along (0, 1) changes nothing."""
    x, labels = np.array([[1.0, 0.0], [3.0, 0.0], [-1.0, 5.0], [-1.0, 0.0]]), np.array([1.0, 1.0, -1.0, 1.0])
    honest = AttackedPairs(x, labels, np.zeros((8, 2)))
    fitted = benchmark.Fitted(lambda x: 1 / (1 + np.exp(-x[:, 0])))
    assert np.isnan(backdoor_score(fitted, honest, honest))
    for mark, wrong in (([2.0, 0.0], 0.75), ([0.0, 1.0], 0.25), ([1.0, 0.0], 0.5)):
        seen = honest._replace(mark=np.array(mark))
        assert backdoor_score(fitted, seen, honest) == pytest.approx(wrong), mark


def test_a_trigger_opens_a_backdoor_of_the_plain_fit(rail):
    config = dataclasses.replace(SMALL, attacks=("trigger",), estimators=("maximum_likelihood",), folds=1)
    clean, marked = benchmark.run_benchmark([rail], config, PAIR_ATTACKS, benchmark.contestants())
    assert np.isnan(clean["backdoor"])
    assert marked["backdoor"] > 1 - clean["accuracy"] + 0.2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"attacks": ("nobody",)}, "attack nobody is unknown: there are "),
        ({"estimators": ("nobody",)}, "estimator nobody is unknown: there are fit_reward"),
        ({"epsilons": (0.7,)}, "0.7"),
        ({"epsilons": ()}, "epsilons above 0"),
        ({"epsilons": (0.0,)}, "epsilons above 0"),
        ({"epsilons": (0.1, 0.2, 0.1)}, "epsilons: 0.1 is given twice: name each once"),
        ({"attacks": ("near", "near")}, "attacks: near is given twice"),
        ({"estimators": ("sever", "sever")}, "estimators: sever is given twice"),
        ({"folds": 6}, "folds=6 must be 1 to 5"),
        ({"pairs": 10}, "pairs=10 is too few"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_settings_are_one_sentence(changes, said):
    with pytest.raises(ValueError, match=said):
        dataclasses.replace(settings.BenchmarkConfig(), **changes).check(
            PAIR_ATTACKS, benchmark.contestants()
        )


def test_of_one_rater_nobody_is_told_apart(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "alone.csv"
    rows = "\n".join(f"{a},{b},me" for a, b in rng.normal(size=(120, 2)))
    path.write_text(f"chosen_a,rejected_a,rater\n{rows}\n", encoding="utf-8")
    problem = benchmark.read_problem(str(path), 1000, 0)
    assert problem.pairs.raters is None
    parts = parts_of([problem], benchmark.BenchmarkConfig(), PAIR_ATTACKS, benchmark.contestants())
    assert not {"fit_weighed", "crowd_bt"} & set(parts[0].estimators)


def test_a_file_of_few_pairs_is_refused(tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("chosen_a,rejected_a\n" + "1,0\n2,0\n3,1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has 3 pairs to fit: a benchmark needs 100 or more"):
        benchmark.read_problem(str(path), 1000, 0)
    with pytest.raises(ValueError, match="no world"):
        benchmark.read_problem("world:mars", 1000, 0)


def test_null_baselines_are_counts():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    labels = np.where(rng.random(200) < 0.75, np.sign(x[:, 1]), -np.sign(x[:, 1]))
    pairs = AttackedPairs(x, labels, np.zeros((400, 2)))
    known = benchmark.contestants()
    longest = known["longest"].fit(pairs, 0.1, ("price", "log_words"))
    often = np.mean(labels == np.sign(x[:, 1]))
    np.testing.assert_allclose(longest.probability(np.array([[0.0, 1.0], [0.0, -1.0]])), [often, 1 - often])
    assert (known["longest"].fit(pairs, 0.1, ("price", "time")).probability(x) == 0.5).all()
    majority = known["majority"].fit(pairs, 0.1, ("price", "time")).probability(x)
    np.testing.assert_allclose(majority, np.mean(labels > 0))
