"""What a file of somebody's own may hold, and what is said where it fails."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.lab.benchmark import BenchmarkConfig, command, problems, read_problem
from robust_rlhf_jax.lab.benchmark.config import QUICK
from robust_rlhf_jax.lab.benchmark.failures import reason_of
from robust_rlhf_jax.lab.benchmark.plugins import players
from robust_rlhf_jax.lab.benchmark.run import attack_on


@pytest.mark.parametrize("name", ["mine.py", "numpy.py"])
def test_a_plug_in_may_have_data_classes_and_annotations_that_are_texts(name, tmp_path):
    path = tmp_path / name
    path.write_text(
        "from __future__ import annotations\nimport dataclasses\n"
        "@dataclasses.dataclass\nclass Settings:\n    flips: int = 3\n"
        "def mine(rng, pairs, epsilon, theta): ...\nATTACKS = (mine,)\n",
        encoding="utf-8",
    )
    assert "mine" in players((path,)).attacks
    assert sys.modules["numpy"] is np


def test_an_attack_may_not_have_the_name_of_honest_pairs(tmp_path):
    """It would be left out without a word."""
    path = tmp_path / "mine.py"
    path.write_text("def none(rng, pairs, epsilon, theta): ...\nATTACKS = (none,)\n", encoding="utf-8")
    with pytest.raises(ValueError, match="the name none is taken"):
        players((path,))


PLUG = """
import jax.numpy as jnp
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate

def nothing(rng, pairs, epsilon, theta):
    return pairs

def zeros(x, labels, epsilon, *, radius):
    return RewardEstimate(jnp.zeros(x.shape[1]), jnp.ones_like(labels), labels, 0)

ATTACKS = (nothing,)
ENTRIES = [Entry(zeros, "zeros", None, "zeros")]
"""


def test_the_quick_settings_run_what_is_plugged_in(tmp_path, monkeypatch):
    plug, ran = tmp_path / "mine.py", []
    plug.write_text(PLUG, encoding="utf-8")
    monkeypatch.setattr(command, "read_problem", lambda *_: ran.append)  # nothing is computed
    monkeypatch.setattr(command, "_check_names", lambda problems: None)

    def parts_of(problems, config, attacks, known):
        ran.append(config)
        raise ValueError("enough")

    monkeypatch.setattr(command, "parts_of", parts_of)
    for config in (QUICK, BenchmarkConfig(("near",))):
        with pytest.raises(ValueError, match="enough"):
            command.benchmark_command(("rail",), config, tmp_path / "out", (plug,))
    quick, told = ran
    assert (quick.attacks, quick.estimators) == ((*QUICK.attacks, "nothing"), (*QUICK.estimators, "zeros"))
    assert told == BenchmarkConfig(("near",))


@pytest.fixture(scope="module")
def trial():
    return next(problems.trials(read_problem("rail", 300, 0), 1, 0))


def attacked(attack, trial):
    return attack_on({"mine": attack}, "mine", trial, 0.1, np.ones(trial.train.x.shape[1]), 0, 0)


@pytest.mark.parametrize("kind", [list, jnp.asarray])
def test_an_attack_may_give_lists_and_arrays_of_jax(kind, trial):
    def mine(rng, pairs, epsilon, theta):
        labels = [-pairs.labels[0], *pairs.labels[1:]]
        return pairs._replace(labels=kind([int(label) for label in labels]))

    seen = attacked(mine, trial)
    assert isinstance(seen.labels, np.ndarray)
    assert seen.labels.dtype == float
    assert seen.changed(trial.train).sum() == 1


@pytest.mark.parametrize("raters", [lambda who: 0 * who, lambda who: who[:5], lambda who: None])
def test_an_attack_may_not_change_who_labelled_the_pairs(raters, trial):
    """Estimators that know raters would be attacked beyond the budget."""
    with pytest.raises(
        ValueError, match="the attack mine changed who labelled the pairs: change x and labels"
    ):
        attacked(lambda rng, pairs, epsilon, theta: pairs._replace(raters=raters(pairs.raters)), trial)


def diverging(x):
    raise RuntimeError("my solver diverged:\ntry again")


@pytest.mark.parametrize(
    ("estimate", "said"),
    [
        (lambda x: np.linalg.norm(np.asarray(x)), "TracerArrayConversionError: write it in jax.numpy, which"),
        (lambda x: 1.0 if x[0] > 0 else x, "TracerBoolConversionError: write it in jax.numpy, which"),
        (
            lambda x: jax.pure_callback(diverging, jax.ShapeDtypeStruct(x.shape, x.dtype), x),
            "RuntimeError: my solver diverged: try again",
        ),
    ],
)
def test_what_jax_says_on_a_page_is_one_line(estimate, said):
    with pytest.raises(Exception) as error:  # noqa: PT011
        jax.block_until_ready(jax.jit(estimate)(jnp.ones(3)))
    reason = reason_of(error.value)
    assert reason.startswith(said)
    assert "\n" not in reason


HEAD = "from robust_rlhf_jax.rewards.protocol import Entry\n\ndef mine(*args, **kwargs):\n    return None\n"


@pytest.mark.parametrize(
    ("listed", "settings", "said"),
    [
        (
            "ATTACKS = (mine,)",
            {"attacks": ("near",)},
            "--plug brings mine, which --attacks leaves out: name mine",
        ),
        (
            "ENTRIES = [Entry(mine, 'mine', None, 'x')]",
            {"estimators": ("sever",)},
            "mine, which --estimators leaves",
        ),
    ],
)
def test_a_plug_in_that_the_settings_leave_out_is_asked_about(listed, settings, said, tmp_path):
    plug = tmp_path / "mine.py"
    plug.write_text(f"{HEAD}\n{listed}\n", encoding="utf-8")
    config = BenchmarkConfig(**settings)
    with pytest.raises(ValueError, match=said):
        command.benchmark_command(("rail",), config, tmp_path / "out", (plug,), quiet=True)
    assert not (tmp_path / "out").exists()
