import dataclasses

import pytest

from robust_rlhf_jax.lab.sweeps import SweepConfig, config_toml, read_config

OTHER = SweepConfig(
    preset="tiny",
    families=("chain",),
    attacks=("joint", "flip_random"),
    epsilons=(0.0, 0.1, 0.30000000000000004),
    seeds=3,
    algorithms=("sever",),
    n_pairs=77,
    temperature=1e-3,
    seed=9,
    lanes=5,
)


@pytest.mark.parametrize("config", [SweepConfig(), OTHER])
def test_what_is_written_is_read(config, tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(config_toml(config), encoding="utf-8")
    assert read_config(path) == config


def test_no_setting_of_the_round_trip_is_a_default():
    differs = [getattr(OTHER, field.name) != field.default for field in dataclasses.fields(SweepConfig)]
    assert all(differs)


def test_what_a_file_does_not_name_keeps_its_default(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text("seeds = 2\nepsilons = [0, 0.1]\ntemperature = 2\n")
    config = read_config(path)
    assert config == SweepConfig(seeds=2, epsilons=(0.0, 0.1), temperature=2.0)
    assert [type(x) for x in (*config.epsilons, config.temperature)] == [float] * 3


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("sedes = 2", r"'sedes' is unknown; there are preset, families, .*, seeds, .*, lanes\.$"),
        ("[table]\nseeds = 2", r"'table' is unknown; "),
        ("seeds = '2'", r"seeds = '2' is of the wrong type: give a whole number\.$"),
        ("seeds = 2.0", r"seeds = 2\.0 is of the wrong type: give a whole number\.$"),
        ("seeds = true", r"seeds = True is of the wrong type: give a whole number\.$"),
        ("lanes = 'many'", r"lanes = 'many' is of the wrong type: give a whole number\.$"),
        ("epsilons = 0.1", r"epsilons = 0\.1 is of the wrong type: give a list of numbers\.$"),
        ("epsilons = ['a']", r"epsilons = \['a'\] is of the wrong type: give a list of numbers\.$"),
        ("families = 'chain'", r"families = 'chain' is of the wrong type: give a list of strings\.$"),
        ("temperature = '1'", r"temperature = '1' is of the wrong type: give a number\.$"),
        ("preset = 1", r"preset = 1 is of the wrong type: give a string\.$"),
        ("seeds = ", r"^.*sweep\.toml is not a TOML file that can be read \(Invalid value"),
    ],
)
def test_a_wrong_file_gets_one_sentence(text, sentence, tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=sentence) as error:
        read_config(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"none\.toml does not exist: check the path\.$"):
        read_config(tmp_path / "none.toml")
