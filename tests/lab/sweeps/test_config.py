import dataclasses
import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.lab.sweeps import SweepConfig
from robust_rlhf_jax.lab.sweeps.families import PRESETS


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_runs_every_family(preset):
    SweepConfig(preset=preset, families=tuple(PRESETS[preset].every)).check()


def test_pairs_are_the_presets_unless_given():
    assert SweepConfig(preset="tiny").pairs == PRESETS["tiny"].n_pairs
    assert SweepConfig(preset="tiny", n_pairs=77).pairs == 77


def test_cells_are_the_product_of_all_axes():
    config = SweepConfig(
        families=("random", "chain"),
        attacks=("push_features",),
        epsilons=(0.0, 0.1, 0.2),
        seeds=5,
        algorithms=("standard", "clean_reference"),
    )
    assert config.n_cells == 2 * 1 * 3 * 5 * 2


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            {"preset": "huge"},
            rf"^preset: 'huge' is unknown; there are {', '.join(sorted(PRESETS))}\.$",
        ),
        ({"families": ("random", "maze")}, r"^families: 'maze' is unknown; .*gridworld"),
        (
            {"preset": "coverage_tiny"},
            r"^families: 'random' is unknown; the preset coverage_tiny has .*uniform\.$",
        ),
        (
            {"epsilons": (0.0, 0.0002)},
            r"^epsilon=0\.0002 of 4,000 pairs is no pair: give 0, or 0\.00025 or more\.$",
        ),
        ({"attacks": ("flip",)}, r"^attacks: 'flip' is unknown; .*flip_confident"),
        ({"algorithms": ("best",)}, r"^algorithms: 'best' is unknown; .*clean_reference.*standard"),
        ({"epsilons": (0.1, 0.5)}, r"^epsilon=0\.5 is outside \[0, 0\.5\)"),
        ({"epsilons": (0.1, 0.49999999)}, r"^epsilon=0\.5 is outside \[0, 0\.5\)"),
        ({"epsilons": (-0.1,)}, r"^epsilon=-0\.1 is outside"),
        ({"epsilons": (float("nan"),)}, r"^epsilon=nan is outside"),
        ({"seeds": 0}, r"^seeds=0: give 1 or more"),
        ({"lanes": -1}, r"^lanes=-1: give 1 or more"),
        ({"n_pairs": 2}, r"^n_pairs=2: .*three-way split"),
        ({"temperature": 0.0}, r"^temperature=0\.0 must be positive"),
        ({"temperature": 1e-40}, r"^temperature=1e-40 is 0 in float32"),
        ({"temperature": float("nan")}, r"^temperature=nan must be positive"),
    ],
)
def test_wrong_settings_are_named(setting, message):
    with pytest.raises(ValueError, match=message):
        SweepConfig(**setting).check()


@pytest.mark.parametrize("name", ["families", "attacks", "epsilons", "algorithms"])
def test_empty_axes_are_refused(name):
    with pytest.raises(ValueError, match=f"^{name} is empty: name at least one"):
        SweepConfig(**{name: ()}).check()


@pytest.mark.parametrize("name", ["families", "attacks", "epsilons", "algorithms"])
def test_repeated_values_are_refused(name):
    twice = getattr(SweepConfig(), name)[:2] + getattr(SweepConfig(), name)[:1]
    with pytest.raises(ValueError, match=f"^{name}: .* is given twice: name each once"):
        SweepConfig(**{name: twice}).check()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            {"attacks": "flip_random"},
            r"^attacks is of the type str: give a tuple, such as \('flip_random',\)\.$",
        ),
        ({"families": "chain"}, r"^families is of the type str: give a tuple"),
        ({"algorithms": "standard"}, r"^algorithms is of the type str"),
        ({"epsilons": 0.1}, r"^epsilons is of the type float: give a tuple, such as \(0\.1,\)\.$"),
        (
            {"epsilons": np.float64(0.1)},
            r"^epsilons is of the type float: give a tuple, such as \(0\.1,\)\.$",
        ),
        ({"epsilons": np.zeros((1, 2))}, r"^epsilons is of the type ndarray: give a tuple"),
        ({"epsilons": {0.1}}, r"^epsilons is of the type set: give a tuple, such as tuple\(epsilons\)\.$"),
        ({"temperature": "1"}, r"^temperature=1 must be positive and finite"),
        ({"seeds": 1.5}, r"^seeds=1\.5: give a whole number\.$"),
        ({"seeds": (0, 1)}, r"^seeds=\(0, 1\): give a whole number\.$"),
        ({"n_pairs": 100.5}, r"^n_pairs=100\.5: give a whole number\.$"),
        ({"lanes": True}, r"^lanes=True: give a whole number\.$"),
    ],
)
def test_settings_of_another_type_are_named(setting, message):
    with pytest.raises(ValueError, match=message):
        SweepConfig(**setting).check()


@pytest.mark.parametrize(
    ("setting", "plain"),
    [
        ({"epsilons": range(1)}, (0,)),
        ({"epsilons": np.array([0.0, 0.1])}, (0.0, 0.1)),
        ({"epsilons": jnp.asarray([0.25])}, (0.25,)),
        ({"epsilons": [np.float32(0.25), Fraction(1, 8), Decimal("0.1")]}, (0.25, 0.125, 0.1)),
        ({"epsilons": np.array([0.1, 0.3], np.float32)}, (0.1, 0.3)),
        ({"epsilons": [np.float16(0.1), jnp.float32(0.2), jnp.bfloat16(0.3)]}, (0.1, 0.2, 0.3)),
        ({"epsilons": [np.float64(1 / 3)]}, (1 / 3,)),
        ({"attacks": np.array(["flip_random"])}, ("flip_random",)),
        ({"seeds": np.int64(3)}, 3),
        ({"temperature": np.float32(0.5)}, 0.5),
    ],
)
def test_settings_of_numpy_become_what_files_can_hold(setting: Any, plain: Any):
    config = SweepConfig(**setting)
    config.check()
    ((name, _),) = setting.items()
    assert json.loads(json.dumps(dataclasses.asdict(config)))[name] == json.loads(json.dumps(plain))
    assert config == SweepConfig(**{name: plain})
    hash(config)


def test_fractions_that_rows_cannot_tell_apart_are_refused():
    with pytest.raises(ValueError, match=r"^epsilons: 0\.1 is given twice"):
        SweepConfig(epsilons=(0.1, 0.1000000001)).check()
