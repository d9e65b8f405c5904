import csv
import json

import pyarrow.parquet as pq
import pytest

import robust_rlhf_jax
from robust_rlhf_jax import cli
from robust_rlhf_jax.lab.sweeps import SweepConfig, read_config

# Of the shapes that tests/lab/sweeps compiles before.
SMALL = "--preset tiny --families random chain --seeds 2 --n-pairs 600 --lanes 3"
FLIPS = "--attacks flip_confident --epsilons 0 0.2 --algorithms standard"


@pytest.fixture
def command(robust_rlhf, monkeypatch, tmp_path):
    """command("sweep …") → (exit status, stdout, stderr), run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda line: robust_rlhf(*line.split())


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
def test_sweep_writes_what_was_asked_for(command, tmp_path):
    status, printed, errors = command(f"sweep {SMALL} {FLIPS} --seed 5 --out deep/out")
    assert (status, errors) == (0, "")
    assert "8 cells in" in printed
    out = tmp_path / "deep" / "out"
    assert names(out) == ["gap_vs_epsilon.png", "parts", "results.parquet", "summary.json"]
    rows = pq.read_table(out / "results.parquet").to_pylist()
    assert {row["family"] for row in rows} == {"random", "chain"}
    assert {(row["attack"], row["algorithm"]) for row in rows} == {("flip_confident", "standard")}
    assert sorted({row["epsilon"] for row in rows}) == [0.0, 0.2]
    given = json.loads((out / "summary.json").read_text(encoding="utf-8"))["configuration"]
    assert (given["seed"], given["lanes"], given["n_pairs"], given["preset"]) == (5, 3, 600, "tiny")


def test_flags_win_over_the_file_and_the_file_over_defaults(command, tmp_path):
    (tmp_path / "my.toml").write_text('seeds = 3\nepsilons = [0, 0.25]\nlanes = 7\nattacks = ["joint"]\n')
    status, printed, errors = command("sweep my.toml --seeds 8 --lanes None --print-config")
    assert (status, errors) == (0, "")
    (tmp_path / "printed.toml").write_text(printed)
    # The default given as a flag wins too.
    expected = SweepConfig(seeds=8, epsilons=(0.0, 0.25), attacks=("joint",))
    assert read_config(tmp_path / "printed.toml") == expected
    assert command("sweep printed.toml --print-config")[1] == printed
    assert names(tmp_path) == ["my.toml", "printed.toml"]


def test_what_would_run_by_default_is_printed(command, tmp_path):
    printed = command("sweep --print-config")[1]
    (tmp_path / "printed.toml").write_text(printed)
    assert read_config(tmp_path / "printed.toml") == SweepConfig()


@pytest.mark.slow
def test_audit_of_the_bundled_choices(command, tmp_path):
    # What compiles fastest.
    options = "--estimator row_normalised --injection flip_random --folds 2 --repeats 1"
    status, printed, errors = command(f"audit rail {options} --inject 0.1 --top 3 --out out")
    assert (status, errors) == (0, "")
    for word in ("2,929 pairs, 292 labels flipped", "plain", "robust", "precision", "price"):
        assert word in printed
    record = json.loads((tmp_path / "out" / "audit.json").read_text(encoding="utf-8"))
    assert min(record["robust"]["accuracy"], record["plain"]["accuracy"]) > 0.6
    assert record["n_injected"] == 292
    assert record["config"]["folds"] == 2
    with open(tmp_path / "out" / "suspects.csv", newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 2929


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("sweep --algorithms best", "algorithms: 'best' is unknown; there are cdpo, clean_reference, "),
        ("sweep --families maze", "families: 'maze' is unknown; "),
        ("sweep --attacks flip", "attacks: 'flip' is unknown; "),
        (
            "sweep --preset huge",
            "preset: 'huge' is unknown; there are coverage, coverage_tiny, delivery, delivery_tiny, full, quick, tiny.",
        ),
        ("sweep --epsilons 0.1 0.5", "epsilon=0.5 is outside [0, 0.5)"),
        ("sweep --epsilons", "epsilons is empty: name at least one."),
        ("sweep --epsilons 0.1 0.1", "epsilons: 0.1 is given twice"),
        ("sweep --seeds 0", "seeds=0: give 1 or more."),
        ("sweep --out taken", "--out taken is a file: give a folder."),
        ("sweep --out taken/below", "--out taken/below cannot be written (Not a directory): "),
        ("sweep missing.toml", "missing.toml does not exist: check the path."),
        ("sweep unknown.toml", "unknown.toml: 'sedes' is unknown; there are preset, families, "),
        ("sweep typed.toml", "typed.toml: seeds = '2' is of the wrong type: give a whole number."),
        ("sweep wrong.toml --print-config", "seeds=0: give 1 or more."),
        ("audit missing.csv", "missing.csv does not exist: check the path."),
        ("audit words.txt", "words.txt: suffix '.txt' is not one of "),
        ("audit lonely.csv", "lonely.csv lacks the column rejected_price: "),
        ("audit other.csv", "other.csv has no column chosen_<name> or rejected_<name>: "),
        ("audit text.csv", "text.csv: column rejected_a is not numeric (row 1 holds 'x')"),
        ("audit rail --epsilon 0.5", "epsilon=0.5 is outside [0, 0.5)"),
        ("audit rail --inject 0.6", "inject=0.6 is outside"),
        ("audit rail --estimator best", "estimator='best' is unknown"),
        ("audit rail --folds 1", "folds=1"),
        ("audit rail --out taken", "--out taken is a file: give a folder."),
        ("audit rail --out taken/below", "--out taken/below cannot be written (Not a directory): "),
    ],
)
def test_bad_input_ends_in_one_sentence(command, tmp_path, arguments, sentence):
    files = {
        "taken": "mine",
        "lonely.csv": "chosen_price,rejected_time\n1,2\n",
        "other.csv": "price,time\n1,2\n",
        "text.csv": "chosen_a,rejected_a\n1,x\n",
        "unknown.toml": "sedes = 2",
        "typed.toml": "seeds = '2'",
        "wrong.toml": "seeds = 0",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    out = "" if "--out" in arguments else " --out new"
    status, printed, errors = command(arguments + out)
    assert status == 2
    assert errors.startswith(f"robust-rlhf: {sentence}")
    assert errors.count("\n") == 1
    assert "cells in" not in printed
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files


def test_errors_of_the_system_are_one_sentence_too(command, tmp_path):
    """A folder stands where a file must go, which is found out before the work."""
    (tmp_path / "out" / "results.parquet").mkdir(parents=True)
    status, _, errors = command(f"sweep {SMALL} {FLIPS} --out out")
    assert status == 2
    assert errors == (
        "robust-rlhf: out/results.parquet is a folder, and a result of that name goes there: move it away.\n"
    )
    assert names(tmp_path / "out") == ["results.parquet"]


def test_a_full_disk_is_named_with_what_to_do(command, monkeypatch, tmp_path):
    def full(*_):
        raise OSError(28, "No space left on device", "state/lengths.npz")

    monkeypatch.setattr("robust_rlhf_jax.heads.arguments.FitArguments.run", full)
    assert command("fit embeddings")[::2] == (
        2,
        "robust-rlhf: state/lengths.npz cannot be written (No space left on device): make room there, or name another "
        "place.\n",
    )


def test_a_file_that_the_system_refuses_is_named_first(command):
    name = "a" * 300 + ".csv"
    assert command(f"audit {name}")[::2] == (
        2,
        f"robust-rlhf: {name} cannot be opened (File name too long): check the path and its permissions.\n",
    )


@pytest.mark.parametrize(
    "arguments",
    ["", "train", "sweep --epsilons x", "sweep --colour red", "audit", "audit rail --injection flip_all"],
)
def test_bad_syntax_points_to_the_help(command, tmp_path, arguments):
    status, _, errors = command(arguments)
    assert status == 2
    assert "--help" in errors
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", ("sweep", "audit")),
        (
            "sweep",
            (
                "--algorithms",
                "--epsilons",
                "uniform_coverage",
                "praise_rare",
                "--out",
                "--print-config",
                "--quiet",
            ),
        ),
        ("audit", ("rail", "--inject", "--folds", "suspects.csv")),
    ],
)
def test_help(command, tmp_path, arguments, words):
    status, printed, _ = command(f"{arguments} --help")
    assert status == 0
    for word in words:
        assert word in printed
    assert names(tmp_path) == []


def test_the_help_says_where_to_begin(command):
    printed = " ".join(command("--help")[1].replace("│", "").split())
    assert "robust-rlhf describe FILE, then robust-rlhf audit FILE" in printed
    assert printed.index("• describe") < printed.index("• audit") < printed.index("• sweep")
    assert "[CLEAN OPTIONS] FILE DECISIONS" in command("clean --help")[1]


@pytest.mark.parametrize("arguments", ["", "audit", "leaderboard", "benchmark", "reproduce", "report"])
def test_no_line_of_help_is_wider_than_the_terminal(command, arguments, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    printed = command(f"{arguments} --help")[1]
    assert max(map(len, printed.splitlines())) <= 80
    assert printed.startswith("usage: robust-rlhf")


def test_the_version_is_that_of_the_package(command):
    assert command("--version") == (0, f"robust-rlhf {robust_rlhf_jax.__version__}\n", "")


def test_help_names_every_choice(command):
    from robust_rlhf_jax.lab.attacks import ATTACKS
    from robust_rlhf_jax.lab.methods import METHODS
    from robust_rlhf_jax.lab.sweeps.families import PRESETS
    from robust_rlhf_jax.lab.sweeps.programs import REFERENCE

    printed = command("sweep --help")[1]
    for name in (
        *PRESETS,
        *PRESETS["tiny"].every,
        *PRESETS["coverage"].every,
        *ATTACKS,
        *METHODS,
        REFERENCE,
    ):
        assert name in printed, name


def test_without_its_packages_the_command_says_what_to_install(command, monkeypatch):
    monkeypatch.setattr(cli, "tyro", None)
    assert command("sweep")[0] == cli.EXTRAS
    assert "pip install 'robust-rlhf-jax[cli]'" in cli.EXTRAS


@pytest.mark.parametrize(
    "name", ["describe", "audit", "clean", "best-of-n", "leaderboard", "benchmark", "report"]
)
def test_help_shows_no_none_as_a_value(command, name):
    assert "{None" not in command(f"{name} --help")[1]


@pytest.mark.parametrize("name", ["audit", "fit", "leaderboard", "sweep", "report"])
@pytest.mark.parametrize("width", ["60", "80"])
def test_help_names_no_default_where_there_is_none(command, monkeypatch, name, width):
    monkeypatch.setenv("COLUMNS", width)
    printed = command(f"{name} --help")[1]
    assert "None)" not in printed
    assert "(default: " in printed or name == "report"
    assert len({len(line) for line in printed.splitlines() if line[:1] in "|│"}) <= 1


def test_help_of_a_sweep_shows_its_file_as_such(command):
    """Of its settings None takes back what the file says."""
    printed = command("sweep --help")[1]
    assert "[SWEEP OPTIONS] [FILE]" in printed
    assert "--ray-address STR" in printed
    assert "--lanes {None}|INT" in printed


def test_none_is_no_name_of_a_ranking(command):
    status, _, errors = command("describe arguments --ranking None")
    assert status == 2
    assert "--ranking" in errors


def test_help_names_every_file_of_decisions(command):
    printed = command("clean --help")[1]
    assert all(name in printed for name in ("decisions.json", "decisions.csv", "suspects.csv", "ask.csv"))
