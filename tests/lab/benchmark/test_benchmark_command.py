"""The command and its files; plug-ins; claims; and who leads."""

import dataclasses
import json
import re

import numpy as np
import pytest
from slow_parameters import slow_but_few

from robust_rlhf_jax.lab import benchmark
from robust_rlhf_jax.lab.benchmark import command, explain
from robust_rlhf_jax.lab.benchmark.claims import check_claim, read_claims
from robust_rlhf_jax.lab.benchmark.plugins import players
from robust_rlhf_jax.lab.benchmark.summary import Line, Standing, means, standings
from robust_rlhf_jax.lab.benchmark.tables import cells, heading, markdown

CONFIG = benchmark.BenchmarkConfig(("near",), (0.1,), ("maximum_likelihood", "majority"), pairs=300)
NAN = float("nan")


def row(attack, epsilon, estimator, accuracy, fold=0, file="a & <b>", **others):
    gaps = {f"gap{b}": 0.01 for b in range(10)}
    return {
        "file": file, "data": "0", "fold": fold, "attack": attack, "epsilon": epsilon, "estimator": estimator,
        "accuracy": accuracy, "log_loss": 1 - accuracy, "found": None if attack == "none" else 0.5,
        "raters_found": NAN, "raters_right": NAN, "backdoor": NAN, "seconds": 0.1, "changed": 0.0, "pairs": 80,
        "tested": 20, **gaps,
    } | others  # fmt: skip


def some_rows():
    return [
        row(attack, epsilon, name, accuracy + 0.02 * fold, fold)
        for fold in (0, 1)
        for attack, name, epsilon, accuracy in [
            ("none", "fit_reward", 0.1, 0.8),
            ("none", "fit_reward", 0.2, 0.8),
            ("none", "maximum_likelihood", 0.1, 0.8),
            ("none", "maximum_likelihood", 0.2, 0.8),
            ("near", "fit_reward", 0.1, 0.7),
            ("near", "fit_reward", 0.2, 0.3),
            ("near", "maximum_likelihood", 0.1, 0.75),
            ("near", "maximum_likelihood", 0.2, 0.2),
            ("far", "fit_reward", 0.1, 0.79),
            ("far", "fit_reward", 0.2, 0.79),
            ("far", "maximum_likelihood", 0.1, 0.72),
            ("far", "maximum_likelihood", 0.2, 0.79),
        ]
    ]


def test_the_worst_case_is_the_lowest_mean_and_small_shares_decide():
    (found,) = standings(some_rows())
    assert found.leader == "maximum_likelihood"
    assert found.behind == pytest.approx(0.02)
    assert (found.attack, found.epsilon, found.tested) == ("near", 0.1, 40)
    plain, ours = found.lines
    assert plain.worst == pytest.approx((0.73, 0.21))
    assert ours.worst == pytest.approx((0.71, 0.31))
    assert ours.attack == ("near", "near")
    assert ours.clean == pytest.approx(0.81)
    assert ours.harm == pytest.approx(0.0)
    assert ours.found == 0.5
    assert ours.calibration == pytest.approx(0.1)


def test_the_backdoor_is_the_mean_over_folds_and_the_highest_over_attacks():
    open_doors = [
        row(attack, 0.1, "fit_reward", 0.7, fold, backdoor=share)
        for attack, shares in {
            "near": (NAN, NAN),
            "trigger": (0.5, 0.7),
            "shared_trigger": (0.1, 0.2),
        }.items()
        for fold, share in enumerate(shares)
    ]
    ((line,),) = (found.lines for found in standings(open_doors))
    assert line.backdoor == pytest.approx(0.6)
    assert "60 %" in cells(line)


def test_means_go_over_folds():
    found = means(some_rows())
    assert found["a & <b>", "near", 0.1, "fit_reward"].accuracy == pytest.approx(0.71)
    assert np.isnan(found["a & <b>", "none", 0.1, "fit_reward"].found)


def test_tables_have_a_cell_for_every_head():
    (found,) = standings(some_rows())
    assert all(len(cells(line)) == len(heading(found)) for line in found.lines)
    text = markdown([found], ["It leads."])
    for table in text.split("\n\n"):
        assert len({line.count("|") for line in table.splitlines() if line.startswith("|")}) <= 1


@pytest.mark.slow
def test_the_command_writes_all_files_and_resumes(tmp_path, capsys):
    command.benchmark_command(("rail",), CONFIG, tmp_path / "out", quiet=True)
    first = capsys.readouterr().out
    assert "majority" in first
    assert "4 cells in" in first
    for name in command.FILES:
        assert (tmp_path / "out" / name).stat().st_size > 0
    summary = json.loads((tmp_path / "out" / "benchmark.json").read_text(encoding="utf-8"))
    assert [line["estimator"] for line in summary["standings"][0]["lines"]] != []
    parts = list((tmp_path / "out" / "parts").iterdir())
    before = {path: path.stat().st_mtime_ns for path in parts}
    command.benchmark_command(("rail",), CONFIG, tmp_path / "out", quiet=True)
    assert {path: path.stat().st_mtime_ns for path in parts} == before

    # What the run writes down as claims is reproduced, and a wrong one is not.
    claims = summary["claims"]
    assert len(claims) == 4
    path = tmp_path / "claims.json"
    path.write_text(json.dumps(claims), encoding="utf-8")
    command.check_command((path,))
    assert capsys.readouterr().out.count("reproduced") == 4
    claims[-1]["accuracy"] += 0.02
    path.write_text(json.dumps(claims), encoding="utf-8")
    with pytest.raises(command.NotReproduced, match="1 of 4 claimed figures"):
        command.check_command((path,))


def test_the_page_escapes_what_comes_from_files_and_needs_no_network():
    from robust_rlhf_jax.lab.benchmark.page import render_page

    rows = some_rows()
    page = render_page(standings(rows), ["<It> leads."], means(rows), [], {}, {"date": "today"})
    assert "a &amp; &lt;b&gt;" in page
    assert "<b>" not in page
    assert "&lt;It&gt; leads." in page
    assert not re.search(r"https?://|<script", page)


PLUG = '''
import jax.numpy as jnp
import numpy as np
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate, surprise
from robust_rlhf_jax.lab.pair_attacks import AttackedPairs

def mean_difference(x, labels, epsilon, *, radius):
    """The mean of what was preferred less what was not."""
    theta = jnp.mean(labels[:, None] * x, axis=0)
    return RewardEstimate(theta, jnp.ones_like(labels), surprise(theta, x, labels), jnp.zeros((), jnp.int32))

def first_pairs(rng, pairs, epsilon, theta):
    """The first pairs of the file, flipped."""
    labels = pairs.labels.copy()
    labels[: int(epsilon * len(labels))] *= -1
    return pairs._replace(labels=labels)

ENTRIES = [Entry(mean_difference, "mean difference", None, "the mean of o·x")]
ATTACKS = (first_pairs,)
'''


@pytest.mark.slow
def test_an_outsider_adds_an_estimator_and_an_attack_with_one_file_and_one_row(tmp_path, capsys):
    plug = tmp_path / "mine.py"
    plug.write_text(PLUG, encoding="utf-8")
    known = players((plug,))
    config = benchmark.BenchmarkConfig(("first_pairs",), (0.1,), ("mean_difference",), pairs=300)
    rail = benchmark.read_problem("rail", 300, 0)
    rows = benchmark.run_benchmark([rail], config, known.attacks, known.estimators)
    mean = means(rows)["rail", "first_pairs", 0.1, "mean_difference"]
    assert mean.accuracy > 0.5
    claim = {
        "file": "rail", "data": rail.digest, "attack": "first_pairs", "epsilon": 0.1, "pairs": 300,
        "estimator": "mean_difference", "accuracy": mean.accuracy, "log_loss": mean.log_loss, "by": "somebody",
    }  # fmt: skip
    path = tmp_path / "row.json"
    path.write_text(json.dumps(claim), encoding="utf-8")
    command.check_command((path,), (plug,))
    assert "reproduced" in capsys.readouterr().out
    # It counts among the worst that are known.
    command.benchmark_command(("rail",), CONFIG, tmp_path / "out", (plug,), (path,), quiet=True)
    page = (tmp_path / "out" / "benchmark.html").read_text(encoding="utf-8")
    assert "first_pairs" in page
    assert "(somebody)" in page


RATED = '''
import jax
import jax.numpy as jnp
from robust_rlhf_jax.raters.protocol import RaterEntry, RaterEstimate

def first_rater(x, labels, epsilon, raters, n_raters, *, radius):
    """What the first rater preferred less what not; the others are called bad."""
    theta = jnp.mean(jnp.where(raters == 0, labels, 0.0)[:, None] * x, axis=0)
    said = jnp.where(jnp.arange(n_raters) == 0, 1.0, 0.0)
    return RaterEstimate(theta, said[raters], 1.0 - said[raters], jnp.zeros((), jnp.int32), said)

ENTRIES = [RaterEntry(first_rater, "first rater", "the first rater alone")]
'''


@pytest.mark.slow
def test_an_outsider_adds_an_estimator_that_knows_raters(tmp_path, capsys):
    plug = tmp_path / "mine.py"
    plug.write_text(RATED, encoding="utf-8")
    config = dataclasses.replace(
        CONFIG, attacks=("near", "contrary_raters"), estimators=("first_rater", "majority")
    )
    command.benchmark_command(("rail", "world:chain"), config, tmp_path / "out", (plug,), quiet=True)
    summary = json.loads((tmp_path / "out" / "benchmark.json").read_text(encoding="utf-8"))
    rail, world = summary["standings"]
    found = next(line for line in rail["lines"] if line["estimator"] == "first_rater")
    assert found["raters_found"] == 1.0
    assert [line["estimator"] for line in world["lines"]] == ["majority"]
    said = "Left out, since the file does not tell raters apart: contrary_raters, first_rater."
    assert summary["reasons"][1].endswith(said)
    assert said in " ".join(capsys.readouterr().out.split())
    assert said in (tmp_path / "out" / "benchmark.html").read_text(encoding="utf-8")


def test_a_row_of_other_data_is_not_reproduced():
    claim = {
        "file": "rail", "data": "0" * 16, "attack": "near", "epsilon": 0.1, "pairs": 300,
        "estimator": "majority", "accuracy": 0.5, "log_loss": 0.7,
    }  # fmt: skip
    found = check_claim(claim, players())
    assert "its data are 0000" in found.line


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "cannot be read as JSON"),
        ("[3]", "row 1 is no JSON object"),
        ("{}", "row 1 has no accuracy"),
        (
            '{"file":"rail","data":"0","attack":"near","epsilon":"x","estimator":"sever","accuracy":1,"log_loss":1}',
            "epsilon is 'x', no number",
        ),
        (
            '{"file":"rail","data":"0","attack":"near","epsilon":0.1,"estimator":"s","accuracy":1,"log_loss":1,"x":1}',
            "which is none of the fields",
        ),
    ],
)
def test_a_bad_file_of_claims_is_one_sentence(content, said, tmp_path):
    path = tmp_path / "claims.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=said):
        read_claims(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "is no Python file"),
        ("x = 1", "lists neither ATTACKS nor ENTRIES"),
        ("1 / 0", "cannot be run: ZeroDivisionError"),
        ("def near(rng, pairs, epsilon, theta): ...\nATTACKS = (near,)", "the name near is taken"),
        ("def a(): ...\ndef b(): ...\nb.__name__ = 'a'\nATTACKS = (a, b)", "the name 'a': rename one"),
        ("import functools\nATTACKS = (functools.partial(print),)", "lists a partial, which has no name"),
    ],
)
def test_a_bad_plug_in_is_one_sentence(content, said, tmp_path):
    path = tmp_path / "mine.py"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=said):
        players((path,))


def test_two_files_of_one_name_are_refused(tmp_path):
    with pytest.raises(ValueError, match="two files are called rail"):
        command.benchmark_command(("rail", "rail"), CONFIG, tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()


def line(name, worst):
    return Line(name, 0.8, 0.0, (worst,), ("near",), 0.6, 0.05, 0.5, NAN, NAN, NAN, 0.1)


@pytest.mark.slow
def test_who_leads_is_said_with_the_reason():
    lines = [line("sever", 0.71), line("fit_reward", 0.70)]
    close = Standing("rail", (0.1,), lines, "sever", 0.005, "near", 0.1, 20)
    problem = benchmark.read_problem("rail", 300, 0)
    assert "within 0.005 of sever" in explain.explain(close, problem, CONFIG, players().attacks)
    first = close._replace(behind=0.0, leader="fit_reward")
    assert explain.explain(first, problem, CONFIG, players().attacks).startswith("fit_reward leads")
    far = close._replace(behind=0.05)
    said = explain.explain(far, problem, CONFIG, players().attacks)
    assert said.startswith("sever leads in the worst case at ε ≤ .1, by 0.050: near at ε = 0.1")
    assert ("Nobody can tell" in said) != ("of the pairs would be corrupt" in said)
    large = first._replace(epsilons=(0.2,))
    assert (
        explain.explain(large, problem, CONFIG, players().attacks)
        == "fit_reward leads in the worst case at ε = 0.2."
    )
    assert "would be corrupt" not in explain.explain(
        far._replace(attack="another"), problem, CONFIG, players().attacks
    )


BROKEN = {
    "def boom(rng, pairs, epsilon, theta): return 1 / 0": "the attack boom failed: ZeroDivisionError",
    "def boom(rng, pairs, epsilon, theta): pairs.labels[:] = 1; return pairs": "the attack boom failed: ValueError",
    "def boom(rng, pairs, epsilon, theta): return None": "the attack boom failed: TypeError",
    "def boom(rng, pairs, epsilon, theta): return pairs.x, pairs.labels": "it gave a tuple: return pairs._replace",
    "def boom(rng, pairs, epsilon, theta): return pairs._replace(mark=pairs.x[0, :1])": "gave another mark",
    "def boom(rng, pairs, epsilon, theta): return pairs._replace(x=pairs.x[:5])": "gave rows of shape",
    "def boom(rng, pairs, epsilon, theta): return pairs._replace(labels=-pairs.labels)": "changed more than",
}


@pytest.mark.parametrize("code", slow_but_few(BROKEN, 3))
def test_a_plug_in_that_fails_is_named_in_one_sentence(code, tmp_path):
    plug = tmp_path / "mine.py"
    plug.write_text(code + "\nATTACKS = (boom,)\n", encoding="utf-8")
    config = dataclasses.replace(CONFIG, attacks=("boom",))
    with pytest.raises(ValueError, match=BROKEN[code]):
        command.benchmark_command(("rail",), config, tmp_path / "out", (plug,), quiet=True)


def test_an_edited_plug_in_is_computed_anew(tmp_path):
    plug = tmp_path / "mine.py"
    found = []
    for sign in ("", "-"):
        plug.write_text(PLUG.replace("theta = jnp.mean", f"theta = {sign}jnp.mean"), encoding="utf-8")
        config = dataclasses.replace(CONFIG, estimators=("mean_difference",))
        command.benchmark_command(("rail",), config, tmp_path / "out", (plug,), quiet=True)
        summary = json.loads((tmp_path / "out" / "benchmark.json").read_text(encoding="utf-8"))
        found.append(summary["standings"][0]["lines"][0]["clean"])
    assert found[0] == pytest.approx(1 - found[1])


@pytest.mark.slow
def test_a_claim_of_other_settings_counts_for_no_worst_case(tmp_path):
    out = tmp_path / "out"
    command.benchmark_command(("rail",), CONFIG, out, quiet=True)
    claims = json.loads((out / "benchmark.json").read_text(encoding="utf-8"))["claims"]
    fewer = dataclasses.replace(CONFIG, pairs=200)
    path = tmp_path / "claims.json"
    path.write_text(json.dumps(claims), encoding="utf-8")
    command.benchmark_command(("rail",), fewer, tmp_path / "fewer", (), (path,), quiet=True)
    with_claims = json.loads((tmp_path / "fewer" / "benchmark.json").read_text(encoding="utf-8"))
    assert with_claims["standings"][0]["tested"] == 42
    assert all("reproduced" in line for line in with_claims["checked"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"folds": "x"}, "folds is 'x', no whole number"),
        ({"attack": ["near"]}, r"attack is \['near'\], no text"),
        ({"accuracy": float("nan")}, "accuracy is nan, no number"),
        ({"estimator": "nobody"}, "estimator nobody is unknown"),
        ({"file": "nothing.csv"}, "does not exist"),
    ],
)
def test_claims_are_checked_before_any_work(change, said, tmp_path):
    claim = {
        "file": "rail", "data": "0", "attack": "near", "epsilon": 0.1, "estimator": "majority", "accuracy": 0.5,
        "log_loss": 0.7,
    } | change  # fmt: skip
    path = tmp_path / "claims.json"
    path.write_text(json.dumps([claim]), encoding="utf-8")
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        command.benchmark_command(("rail",), CONFIG, tmp_path / "out", (), (path,), quiet=True)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_what_needs_raters_is_refused_where_there_are_none(tmp_path):
    config = dataclasses.replace(CONFIG, estimators=("fit_weighed",))
    with pytest.raises(ValueError, match="does not tell raters apart"):
        command.benchmark_command(("world:chain",), config, tmp_path / "out", quiet=True)


@pytest.mark.slow
def test_the_quick_form_runs_and_our_default_leads(tmp_path, robust_rlhf):
    status, out, _ = robust_rlhf("benchmark", "--quick", "--quiet", "--out", str(tmp_path / "out"))
    assert status == 0
    assert "fit_reward leads in the worst case" in " ".join(out.split())
    status, _, err = robust_rlhf("benchmark", "--quick", "--pairs", "300")
    assert status == 2
    assert "--quick has its own settings" in err
