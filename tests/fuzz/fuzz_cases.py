"""Commands of `robust-rlhf` with bad files and flags, drawn by number: each makes its files and gives its words."""

import json
import os
import random
from pathlib import Path

import bad_files
import bad_pairs
import numpy as np

AUDIT = ["--estimator", "row_normalised", "--folds", "2", "--repeats", "1", "--injection", "flip_random"]
SWEEP = [
    "--preset",
    "tiny",
    "--families",
    "chain",
    "--attacks",
    "flip_confident",
    "--epsilons",
    "0.2",
    "--seeds",
    "2",
    "--algorithms",
    "standard",
]
WORDS = [
    "", "0", "-1", "1e400", "nan", "inf", "-inf", "0.5", "0.49999999999999999", "1e-320", "9" * 30, "9" * 5000,
    "1.5", "None",
    "True", "\x1b[31mred", "a\nb", "[bold]", "\udcff", "😀", "--", "-", "x" * 5000, "\u202eabc", "4294967296", "-0.0",
    "1_000", "0x10", "2147483648", "9223372036854775808", "4000000000000",
]  # fmt: skip
AUDIT_FLAGS = [
    "--epsilon",
    "--inject",
    "--injection",
    "--estimator",
    "--folds",
    "--repeats",
    "--seed",
    "--top",
    "--out",
]
COLUMN_FLAGS = [
    "--chosen", "--rejected", "--prompt", "--label", "--first-is", "--rater", "--weight", "--tie", "--pair-id",
    "--features", "--featuriser", "--truncate", "--fail-if", "--tie-is", "--ranking", "--split", "--encoding",
    "--alternatives",
]  # fmt: skip
SWEEP_FLAGS = [
    "--preset", "--families", "--attacks", "--epsilons", "--seeds", "--algorithms", "--n-pairs", "--temperature",
    "--seed", "--lanes", "--out", "--engine", "--ray-address",
]  # fmt: skip


def table(kind: str, make):
    def case(chance: random.Random):
        path = Path(chance.choice(["data", "data", "[red]", "\x1b[31m", "a\nb", "$x^{$", "-"]) + kind)
        path.write_bytes(make(chance))
        estimator = ["--estimator", "fit_reward"] if chance.random() < 0.2 else []
        return ["audit", f"./{path}", *AUDIT, "--out", "out", *estimator]

    return case


def no_table(chance):
    path = Path("data" + chance.choice([".csv", ".jsonl", ".npz", ".parquet", ".txt", ""]))
    if chance.random() < 0.7:
        bad_files.no_file(chance, path)
    else:
        path.write_bytes(chance.choice([b"", b"\n", b"\x00" * 99, chance.randbytes(500)]))
    return ["audit", str(path), *AUDIT, "--out", "out"]


def audit_flag(chance):
    Path("good.csv").write_text(good_table(), encoding="utf-8")
    flag = chance.choice(AUDIT_FLAGS)
    words = ["audit", "good.csv", *AUDIT, "--out", "out", flag, chance.choice(WORDS)]
    if flag == "--repeats" and words[-1] in ("1_000",):
        words[-1] = "-7"
    return words


def good_table() -> str:
    columns = bad_files.columns(random.Random(0))
    return (
        "\n".join(",".join(map(str, row)) for row in [tuple(columns), *zip(*columns.values(), strict=True)])
        + "\n"
    )


def pairs(make):
    """A file of `make`'s rows, with options that texts and raters have, and places for what comes of it."""

    def case(chance):
        path = bad_pairs.write(chance, make(chance))
        described = chance.random() < 0.3
        words = ["describe", str(path)] if described else ["audit", str(path), *AUDIT, "--out", "out"]
        if chance.random() < 0.5:
            words += [
                chance.choice(COLUMN_FLAGS),
                chance.choice(["id", "rater", "chosen", "prompt", "none", *WORDS]),
            ]
        if chance.random() < 0.3:
            words += ["--skip-bad", chance.choice(["1", "0.5", "40", *WORDS])]
        if chance.random() < 0.2:
            words += ["--scale", *chance.choices(["-3", "3", "0", "1", "nan", "1e400", "x"], k=2)]
        if chance.random() < 0.3 and not described:
            words += chance.choice(
                [["--export", f"more{path.suffix}"], ["--clean", f"less{path.suffix}"], ["--head", "head.safetensors"],
                 ["--export", str(path)], ["--head", "nowhere/head.safetensors"], ["--export", "wrong.xlsx"]]
            )  # fmt: skip
        return words

    return case


def npy_pairs(chance):
    chosen, rejected = bad_pairs.vectors(chance)
    Path("data.jsonl").write_text("".join(f'{{"id": {i}}}\n' for i in range(bad_files.ROWS)))
    return ["audit", "data.jsonl", *AUDIT, "--out", "out", "--embeddings", str(chosen), str(rejected)]


def best_of_n(chance):
    """Answers that are wrong, pairs that are, or a flag; now and then the output is one of the given files."""
    answers = bad_pairs.write(chance, bad_pairs.answers(chance), "answers")
    if chance.random() < 0.3:
        given = bad_pairs.write(chance, bad_pairs.texts(chance), "texts")
    else:
        given = Path("texts.jsonl")
        given.write_text("".join(json.dumps(row) + "\n" for row in good_texts()), encoding="utf-8")
    to = chance.choice(
        ["chosen.jsonl"] * 6 + [str(answers), str(given), "", "nowhere/chosen.jsonl", "/proc/none"]
    )
    words = ["best-of-n", str(answers), "--pairs", str(given), "--out", to]
    if chance.random() < 0.4:
        flag = chance.choice(["--epsilon", "--temperature", "--featuriser", "--seed", "--chosen", "--label"])
        words += [flag, chance.choice(["0.1", "2", *WORDS])]
    return words


def good_texts() -> list[dict]:
    chance = random.Random(0)
    return [
        {name: bad_pairs.sentence(chance) for name in ("prompt", "chosen", "rejected")}
        for _ in range(bad_files.ROWS)
    ]


def leaderboard(chance):
    path = bad_pairs.write(chance, bad_pairs.votes(chance))
    words = ["leaderboard", str(path), *chance.choice([[], ["--out", "out"], ["--out", str(path)]])]
    if chance.random() < 0.4:
        flag = chance.choice(["--model-a", "--model-b", "--winner", "--rater", "--first-is", "--tie-is"])
        words += [flag, chance.choice(["winner", "judge", "A", "1", *WORDS])]
    return words


def clean(chance):
    Path("data.csv").write_text(good_table(), encoding="utf-8")
    name = chance.choice(["decisions.json", "decisions.csv"])
    if chance.random() < 0.9:
        Path(name).write_bytes(bad_pairs.decisions(chance))
    elif chance.random() < 0.5:
        bad_files.no_file(chance, Path(name))
    to = chance.choice(
        ["cleaned.csv"] * 5 + ["data.csv", name, "cleaned.xlsx", "nowhere/cleaned.csv", "", "/proc/none"]
    )
    return ["clean", "data.csv", name, "--out", to]


def embed(chance):
    path = bad_pairs.write(chance, chance.choice([bad_pairs.texts, bad_pairs.messages])(chance))
    words = [
        "embed",
        str(path),
        "--out",
        chance.choice(["shards"] * 4 + [str(path), "", "/proc/none", "a/b"]),
    ]
    if chance.random() < 0.5:
        flag = chance.choice(
            ["--dtype", "--rows-per-shard", "--skip-bad", "--featuriser", "--encoding", "--chosen"]
        )
        words += [flag, chance.choice(["float16", "7", "0.5", *WORDS])]
    return words


def fit(chance):
    """Shards of embeddings, of differences, or a Parquet file; damaged, or of shapes that do not fit together."""
    if chance.random() < 0.4:
        bad_pairs.vectors(chance)
    else:
        for number, name in enumerate(("chosen", "rejected")):
            np.save(f"{name}.npy", np.random.default_rng(number).normal(size=(bad_files.ROWS, 4)))
    if chance.random() < 0.3:
        Path("chosen.npy").rename("data.npy")
        source = "data.npy"
    else:
        Path("data").mkdir()
        for name in ("chosen", "rejected"):
            Path(f"{name}.npy").rename(f"data/{name}.npy")
        source = "data"
    words = ["fit", source, "--out", chance.choice(["out"] * 4 + [source, "", "/proc/none"]), "--quiet"]
    if chance.random() < 0.5:
        flag = chance.choice(["--epsilon", "--memory", "--checkpoint", "--export", "--clean"])
        words += [flag, chance.choice(["0.1", "1GB", "1KB", "kept", "more.parquet", source, *WORDS])]
    return words


def sweep_flag(chance):
    flag = chance.choice(SWEEP_FLAGS)
    return ["sweep", *SWEEP, "--out", "out", flag, *chance.sample(WORDS, chance.choice([0, 1, 1, 1, 2]))]


def sweep_file(chance):
    path = Path(chance.choice(["my.toml", "\x1b[31m.toml", "[red].toml"]))
    if chance.random() < 0.9:
        path.write_bytes(bad_files.toml_file(chance))
    else:
        bad_files.no_file(chance, path)
    return ["sweep", str(path), *([] if chance.random() < 0.3 else SWEEP[:-2]), "--out", "out"]


def report(chance):
    folder = Path(chance.choice(["results", "[red]", "\x1b[31m", "a\nb"]))
    bad_files.result_folder(chance, folder)
    return ["report", str(folder), *chance.choice([[], [], ["--out", "out/page.html"]])]


def out(chance):
    """Places that cannot be written, or only in part."""
    command = chance.choice(["audit", "sweep", "reproduce", "report"])
    Path("taken").write_text("mine", encoding="utf-8")
    Path("good.csv").write_text(good_table(), encoding="utf-8")
    Path("results").mkdir()
    Path("results/results.parquet").write_bytes(
        bad_files.parquet_of(bad_files.cells(chance), random.Random(3))
    )
    Path("nested").mkdir()
    for name in ("results.parquet", "summary.json", "audit.json", "suspicion.png", "table1.json", "parts"):
        if chance.random() < 0.5:
            Path("nested", name).mkdir()
    os.mkfifo("fifo")
    os.symlink("nowhere", "dangling")
    place = chance.choice(["taken", "taken/below", "nested", "fifo", "dangling", "x" * 300, "/proc/none", "/dev/null",
                           "\x1b[31m", "a\nb", "", "deep/er/out", "[red]", "nested/audit.json"])  # fmt: skip
    words = {
        "audit": ["audit", "good.csv", *AUDIT], "sweep": ["sweep", *SWEEP], "reproduce": ["reproduce", "table1",
        "--quick"],
        "report": ["report", "results"],
    }[command]  # fmt: skip
    return [*words, "--out", f"{place}/page.html" if command == "report" and chance.random() < 0.5 else place]


def syntax(chance):
    first = chance.choice(
        ["", "audit", "sweep", "report", "reproduce", "train", "--help", "--tyro-print-completion"]
    )
    return [
        first,
        *chance.sample(
            [*WORDS, *SWEEP_FLAGS, "--colour", "--help", "rail", "table1"], chance.choice([0, 1, 2])
        ),
    ]


KINDS = {
    "csv": table(".csv", bad_files.csv_file),
    "npz": table(".npz", bad_files.npz_file),
    "audit flag": audit_flag,
    "jsonl": table(".jsonl", bad_files.jsonl_file),
    "texts": pairs(bad_pairs.texts),
    "sweep flag": sweep_flag,
    "report": report,
    "parquet": table(".parquet", bad_files.parquet_table),
    "messages": pairs(bad_pairs.messages),
    "sweep file": sweep_file,
    "embeddings": pairs(bad_pairs.embeddings),
    "open sides": pairs(bad_pairs.open_sides),
    "rankings": pairs(bad_pairs.rankings),
    "out": out,
    "best of n": best_of_n,
    "leaderboard": leaderboard,
    "clean": clean,
    "embed": embed,
    "fit": fit,
    "no table": no_table,
    "npy pairs": npy_pairs,
    "syntax": syntax,
}
