"""What others named cannot command a terminal, and a terminal that cannot print loses no result."""

import io
import os
import signal
import subprocess
import sys
import time

import pytest

from robust_rlhf_jax.terminal import harmless, harmless_errors, marked, shortened

COMMAND = [sys.executable, "-c", "from robust_rlhf_jax.cli import main; main()"]
AUDIT = [
    "--estimator",
    "row_normalised",
    "--folds",
    "2",
    "--repeats",
    "1",
    "--inject",
    "0.1",
    "--injection",
    "flip_random",
]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("price", "price"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\u202eabc", r"\u202eabc"),
        ("\udcff", r"\udcff"),
        ("Größe 😀 1 2", "Größe 😀 1 2"),
    ],
)
def test_harmless(text, shown):
    assert harmless(text) == shown


def test_markup_is_text():
    from rich.text import Text

    assert Text.from_markup(marked("[red]a[/]\x1b")).plain == r"[red]a[/]\x1b"


def test_errors_that_repeat_words_are_harmless(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with harmless_errors(["\x1b[31m"]):
        print("no \x1b[31m\nhere", file=sys.stderr)
    with harmless_errors(["plain"]):
        print("\x1b[1mours", file=sys.stderr)
    assert sys.stderr.getvalue() == "no \\x1b[31m\nhere\n\x1b[1mours\n"


def good_table(path):
    rows = [f"{i % 7},{i % 5},{i % 3},{i % 11}" for i in range(40)]
    path.write_text(
        "\n".join(["chosen_\x1b[5ma,rejected_\x1b[5ma,chosen_[red]b,rejected_[red]b", *rows]) + "\n"
    )


@pytest.mark.slow
def test_names_of_features_and_files_are_shown_harmless(robust_rlhf, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "\x1b[31m[bold]$x^{$.csv"
    good_table(tmp_path / name)
    monkeypatch.setenv("COLUMNS", "200")
    status, printed, errors = robust_rlhf("audit", name, *AUDIT, "--out", "out\x1b[2J")
    assert (status, errors) == (0, "")
    assert r"\x1b[31m[bold]$x^{$.csv: 40 pairs" in printed
    assert r"\x1b[5ma" in printed
    assert printed.replace("\n", "").isprintable()
    assert sorted(path.name for path in (tmp_path / "out\x1b[2J").iterdir()) == [
        "ask.csv", "audit.html", "audit.json", "suspects.csv", "suspicion.png",
    ]  # fmt: skip


@pytest.mark.parametrize("words", [["audit", "\x1b[31m.csv"], ["\x1b[31m"], ["audit", "rail", "--\x1b[31m"]])
def test_sentences_are_harmless(robust_rlhf, words):
    status, printed, errors = robust_rlhf(*words)
    assert status == 2
    assert r"\x1b[31m" in errors
    assert (printed + errors).replace("\n", "").isprintable()


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return os.environ | {
        "ROBUST_RLHF_CACHE": str(tmp_path_factory.mktemp("cache") / "cache"),
        "PYTHONIOENCODING": "ascii",
    }


def audit_with(stdout, tmp_path, environment):
    good_table(tmp_path / "good.csv")
    words = [*COMMAND, "audit", "good.csv", *AUDIT, "--out", "out"]
    ended = subprocess.run(
        words, cwd=tmp_path, env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=300
    )
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "ask.csv",
        "audit.html",
        "audit.json",
        "suspects.csv",
        "suspicion.png",
    ]
    return ended


@pytest.mark.slow
def test_a_terminal_without_our_signs_gets_escapes(tmp_path, environment):
    ended = audit_with(subprocess.PIPE, tmp_path, environment)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert r"\u03b5 from evidence" in ended.stdout or r"\u03b5 = 0.1" in ended.stdout


@pytest.mark.slow
def test_a_full_disk_behind_the_terminal_loses_no_result(tmp_path, environment):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with open("/dev/full", "w") as full:
        ended = audit_with(full, tmp_path, environment)
    assert (ended.returncode, ended.stderr) == (2, "robust-rlhf: [Errno 28] No space left on device\n")


@pytest.mark.slow
def test_a_reader_that_went_loses_no_result(tmp_path, environment):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        ended = audit_with(closed, tmp_path, environment)
    assert (ended.returncode, ended.stderr) == (1, "")  # as rich ends, without a word


def test_ctrl_c_while_everything_is_imported(environment):
    """As the installed script starts: importing JAX is most of the time before the first word."""
    start = "from robust_rlhf_command import main; print('now', flush=True); main()"
    words = [sys.executable, "-c", start, "--help"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(words, env=environment, **pipes)
    assert process.stdout.readline() == "now\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=60)
    assert (process.returncode, printed, errors) == (130, "", "robust-rlhf: stopped.\n")


def test_the_module_of_the_script_is_the_command(environment):
    words = [sys.executable, "-m", "robust_rlhf_command", "no-command"]
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 2
    assert "no-command" in ended.stderr


@pytest.mark.slow
def test_a_description_may_be_read_in_part(tmp_path, environment):
    """As by `robust-rlhf describe FILE | head`, which is no fault."""
    (tmp_path / "good.csv").write_text("chosen_a,rejected_a\n1,2\n3,4\n")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        ended = subprocess.run(
            [*COMMAND, "describe", "good.csv"], cwd=tmp_path, env=environment, stdout=closed,
            stderr=subprocess.PIPE, text=True, timeout=120,
        )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("text", "length", "shown"),
    [
        ("short enough", 12, "short enough"),
        ("The file calls it a tie, twice.", 18, "The file calls it…"),
        ("The file calls it a tie, twice.", 17, "The file calls…"),
        ("https://example.org/" + "a" * 40, 20, "https://example.org…"),
        ("答えは長い文章で空白がありません", 12, "答えは長い文章で空白が…"),
    ],
)
def test_a_text_is_shortened_after_a_word_and_says_so(text, length, shown):
    assert shortened(text, length) == shown
    assert len(shown) <= length
