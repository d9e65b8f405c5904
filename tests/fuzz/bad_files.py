"""Files that the command should refuse or survive, drawn by number: tables, archives, settings, results."""

import io
import json
import os
import random
import struct
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from robust_rlhf_jax.lab.sweeps.sealed import CELLS, Part, sealed

ROWS, FEATURES = 40, ("price", "time")
CELLS_NASTY = [
    "", " ", "nan", "NaN", "inf", "-inf", "Infinity", "1e400", "-1e400", "1e308", "-1e308", "3.4e38", "-3.4e38",
    "1e-320",
    "1e38", "0x10", "1_000", "1,5", "true", "None", "null", "１２", "\x1b[31mred\x1b[0m", "a\x00b", "\u202eabc", "😀",
    "9" * 400, "9" * 5000, "-0", "+1", "1.", ".5e", "[1]", '"', "=1+1", "1\n2", "\ud800", "1e5", "1e10", "1e18",
]  # fmt: skip
NUMBERS_NASTY = [
    0, -1, 1, 2**31, 2**32, 2**63, 2**64, -(2**63) - 1, 10**30, 10**400, 1e308, -1e308, 1e-320, float("inf"),
    float("-inf"), float("nan"), True, False, None, "", "x", "1", [], [[]], {}, "\x1b[2J", "a\nb", [1, "a"], 0.5, 1e9,
]  # fmt: skip


def columns(chance: random.Random) -> dict[str, list[float]]:
    """A good table."""
    names = [f"{kind}_{name}" for kind in ("chosen", "rejected") for name in FEATURES]
    return {name: [round(chance.gauss(0, 1), 3) for _ in range(ROWS)] for name in names}


def damaged(chance: random.Random, content: bytes) -> bytes:
    """`content` with bytes or bits changed, cut off, doubled or put in."""
    content = bytearray(content)
    if not content:
        return b"\x00"
    place = chance.randrange(len(content))
    how = chance.choice(["bit", "bits", "byte", "cut", "head", "double", "zeros", "noise"])
    if how == "bit":
        content[place] ^= 1 << chance.randrange(8)
    elif how == "bits":
        for _ in range(20):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif how == "byte":
        content[place] = chance.randrange(256)
    elif how == "cut":
        del content[place:]
    elif how == "head":
        del content[:place]
    elif how == "double":
        content += bytes(content)
    elif how == "zeros":
        content[place : place + 64] = bytes(len(content[place : place + 64]))
    else:
        content[place:place] = chance.randbytes(50)
    return bytes(content)


def text(lines, chance: random.Random) -> bytes:
    coding = chance.choice(["utf-8"] * 6 + ["utf-16", "utf-32", "utf-8-sig"])
    ends = chance.choice(["\n"] * 4 + ["\r\n", "\r", "\n\n"])
    return (ends.join(lines) + ends).encode(coding, errors="surrogatepass")


def csv_file(chance: random.Random) -> bytes:
    table = {name: [str(x) for x in column] for name, column in columns(chance).items()}
    damage_table(chance, table, CELLS_NASTY)
    lines = [",".join(map(str, row)) for row in [tuple(table), *zip(*table.values(), strict=True)]]
    if chance.random() < 0.15:
        lines[chance.randrange(len(lines))] += chance.choice(
            [",1", ",", '"', ",,,,", "\x00", "," * 200_000, "9" * 200_000]
        )
    content = text(lines, chance)
    return damaged(chance, content) if chance.random() < 0.3 else content


def damage_table(chance: random.Random, table: dict, nasty: list) -> None:
    name = chance.choice(list(table))
    how = chance.choice(["cell", "cell", "cell", "column", "scale", "rename", "drop", "rows", "none", "two"])
    if how == "cell":
        table[name][chance.randrange(ROWS)] = chance.choice(nasty)
    elif how == "column":
        table[name] = [chance.choice(nasty)] * ROWS
    elif how == "scale":
        power = chance.choice([-320, -45, -38, -20, 19, 20, 37, 38, 39, 100, 300, 308])
        for other in table:
            table[other] = [
                type(x)(f"{chance.choice('- ')}{abs(float(x)):.3f}e{power}".strip()) for x in table[other]
            ]
    elif how == "rename":
        new = chance.choice(
            ["", "chosen_", "x", "chosen_\x1b[5m", "chosen_[red]", "chosen_\n", "rejected_" + "n" * 3000]
        )
        table[new] = table.pop(name)
    elif how == "drop":
        table.pop(name)
    elif how == "rows":
        keep = chance.choice([0, 1, 2, 3])
        for other in table:
            table[other] = table[other][:keep]
    elif how == "two":
        for other in list(table):
            table[other.replace("price", "\x1b]0;title\x07$x$ [bold]")] = table.pop(other)


def jsonl_file(chance: random.Random) -> bytes:
    table = columns(chance)
    damage_table(chance, table, NUMBERS_NASTY)
    lines = [json.dumps(dict(zip(table, row, strict=True))) for row in zip(*table.values(), strict=True)]
    extra = [
        "[1]",
        "{",
        "null",
        "[" * 100_000,
        '{"a":' * 50_000,
        '{"chosen_price": 1e999}',
        "\x00",
        '"x"',
        "{}",
        "1" * 6000,
    ]
    if chance.random() < 0.4:
        lines.insert(chance.randrange(len(lines) + 1), chance.choice(extra))
    content = text(lines, chance)
    return damaged(chance, content) if chance.random() < 0.2 else content


def parquet_table(chance: random.Random) -> bytes:
    table = columns(chance)
    name = chance.choice(list(table))
    kinds = [
        pa.array(["x"] * ROWS), pa.array([True] * ROWS), pa.array([None] * ROWS, pa.float64()),
        pa.array([[1.0]] * ROWS), pa.array([1e308] * ROWS), pa.array([float("nan")] * ROWS),
        pa.array(range(ROWS), pa.timestamp("ns")), pa.array(["a"] * ROWS).dictionary_encode(),
        pa.array([10**18] * ROWS), pa.array([b"\xff"] * ROWS), pa.array([{"a": 1}] * ROWS), pa.nulls(ROWS),
        pa.array([1e38 * (-1) ** i for i in range(ROWS)]), pa.array(np.zeros(ROWS, np.float16)),
    ]  # fmt: skip
    if chance.random() < 0.6:
        table[name] = chance.choice(kinds)
    made = pa.table(table)
    if chance.random() < 0.2:
        made = made.rename_columns([chance.choice(["chosen_price", "\x1b[1m", ""]) for _ in table])
    if chance.random() < 0.2:
        header = chance.choice([b"[]", b"{}", b"{", b'{"shapes": []}', b'{"shapes": {"labels": "x"}}', b"[" * 10_000,
                                b'{"shapes": {"labels": [1e30]}}',
                                b'{"shapes": {}, "format_version": [1]}'])  # fmt: skip
        made = made.replace_schema_metadata({b"robust_rlhf_jax": header})
    sink = io.BytesIO()
    pq.write_table(made, sink)
    return damaged(chance, sink.getvalue()) if chance.random() < 0.5 else sink.getvalue()


def arrays(chance: random.Random) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(chance.randrange(2**32))
    table = rng.normal(size=(3, 2, 2)).astype(chance.choice([np.float32, np.float64]))
    states, actions = rng.integers(0, 3, (ROWS, 2, 2)), rng.integers(0, 2, (ROWS, 2, 1))
    return {
        "state_features": table, "states": states, "actions": actions,
        "features": table[states[..., :-1], actions], "labels": rng.choice([-1.0, 1.0], ROWS).astype(table.dtype),
    }  # fmt: skip


def corrupted_arrays(chance: random.Random) -> dict[str, np.ndarray]:
    found = arrays(chance)
    name = chance.choice([*found, "labels", "features"])
    old = found[name]
    changes = [
        lambda: old * 7, lambda: old * 0, (lambda: (old + 1) / 2), lambda: old > 0, lambda: old.astype(np.float16),
        lambda: old.astype(complex), lambda: old.astype(str), lambda: old.astype(object), lambda: old[:0],
        lambda: old[..., None], lambda: old.astype(">f4"), lambda: np.asfortranarray(old), lambda: old * 1e38,
        lambda: old.astype(float) * 1e300, lambda: np.full(old.shape, np.nan), lambda: old.astype(np.uint64),
        lambda: old.astype(float) * 1e-300, lambda: old.astype("datetime64[s]"), lambda: np.zeros(()), lambda: -old,
        lambda: old.astype(np.longdouble), lambda: old.astype("i1"), lambda: old.ravel()[::-1],
        lambda: np.broadcast_to(old, old.shape), lambda: old.astype([("a", old.dtype)]), lambda: old.astype("S3"),
    ]  # fmt: skip
    with np.errstate(all="ignore"):
        found[name] = chance.choice(changes)()
    more = {
        "format_version": np.array(chance.choice([0, 2, -1, 2**63 - 1])), "stationary": np.array([True, False]),
        "planning_horizon": np.array(chance.choice([0, -1, 2**62, 3])), "planning_start": np.ones(3),
        "rounding": np.ones(chance.choice([1, ROWS])), "\x1b[31m": np.zeros(2), "reward_table": np.zeros((3, 2, 1)),
    }  # fmt: skip
    if chance.random() < 0.3:
        extra = chance.choice(list(more))
        found[extra] = more[extra]
    if chance.random() < 0.1:
        found.pop(chance.choice(list(found)))
    return found


def claiming(shape: str, kind: str = "<f8", version: int = 1) -> bytes:
    """An array's header that claims what is not there."""
    text = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    size = struct.pack("<H", len(text)) if version == 1 else struct.pack("<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + bytes(64)


def npz_file(chance: random.Random) -> bytes:
    if chance.random() < 0.25:
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w") as archive:
            shapes = ["(10**23,)", f"({10**23},)", "(-5,)", f"({10**10},)", "(1,)" * 2, "(((1,),),)", "(2**62, 4)",
                      f"({2**62}, 4)", "(1.5,)", "[3]", "(" * 3000, "(True,)", f"({2**31}, {2**31}, 2)"]  # fmt: skip
            for name in arrays(chance):
                kind = chance.choice(["<f8", "|O", "<U9999999", "|V0", "<f99", "M8[s]", "(3,)f4"])
                archive.writestr(
                    f"{name}.npy", claiming(chance.choice(shapes), kind, chance.choice([1, 2, 3, 9]))
                )
        return sink.getvalue()
    sink = io.BytesIO()
    np.savez(sink, **corrupted_arrays(chance))
    return damaged(chance, sink.getvalue()) if chance.random() < 0.5 else sink.getvalue()


def toml_file(chance: random.Random) -> bytes:
    keys = [
        "preset",
        "families",
        "attacks",
        "epsilons",
        "seeds",
        "algorithms",
        "n_pairs",
        "temperature",
        "seed",
        "lanes",
    ]
    values = [
        "0", "-1", "1e400", "nan", "inf", "-inf", '""', '"\\u001b[31m"', "[]", "[[]]", "[nan]", "[-0.0, 0.0]",
        "[0.5]", "true",
        "1979-05-27", "{}", "{a = 1}", "9" * 30, "9" * 5000, "[" * 5000 + "]" * 5000, '["chain", "chain"]',
        '"tiny"', "[1, 'a']",
        '["a\\nb"]', "4_000_000_000_000", "[0.1, 0.1000000001]", "[1e-320]", "'x", "= 3", "0x7fffffffffffffff",
        "[true]", "1.5",
    ]  # fmt: skip
    keys += ["sedes", "a.b", '"\\u001b[31m"']
    lines = [f"{chance.choice(keys)} = {chance.choice(values)}" for _ in range(chance.choice([1, 1, 2]))]
    if chance.random() < 0.2:
        lines.append(
            chance.choice(
                ["[table]", "[[a]]", "\x00", "\x1b[31m", "a" * 100_000, "seeds = 1\nseeds = 2", "\ufeff"]
            )
        )
    content = text(lines, chance)
    return damaged(chance, content) if chance.random() < 0.2 else content


def cells(chance: random.Random) -> list[dict]:
    return [
        {
            "family": "chain", "attack": "flip_confident", "epsilon": epsilon, "seed": seed, "algorithm": algorithm,
            "normalised_gap": chance.random(), "value": 1.0, "status": "converged", "oracle_calls": 3,
        }
        for algorithm in ("standard", "robust_policy") for epsilon in (0.0, 0.1) for seed in range(3)
    ]  # fmt: skip


def corrupted_cells(chance: random.Random) -> list[dict]:
    rows = cells(chance)
    values = {
        "family": ["", "\x1b[31m", "<script>", None, 3, "a\nb", "\u202e"], "attack": ["none", None, "x" * 5000,
        "]]>", 1.5],
        "epsilon": [-1.0, 0.5, 1e308, float("nan"), None, "x", 2.0], "seed": [-1, 2**62, None, 1.5, "x"],
        "algorithm": ["", "unknown", None, "{{ 1 }}", 7], "oracle_calls": [-1, -100, 0, 2**62, None, 0.5],
        "normalised_gap": [float("nan"), float("inf"), -1e308, None, 1e308, "x"], "status": [None, "\x00",
        "max_steps", 3],
    }  # fmt: skip
    name = chance.choice(list(values))
    value = chance.choice(values[name])
    for row in (
        rows
        if chance.random() < 0.5 or isinstance(value, str) != isinstance(rows[0][name], str)
        else rows[:1]
    ):
        row[name] = value
    if chance.random() < 0.2:
        rows = [{k: v for k, v in row.items() if k != name} for row in rows]
    return rows[: chance.choice([0, 1, 12, 12, 12])]


def facts(chance: random.Random) -> bytes:
    value = chance.choice(
        ["1e999", "-5", "9" * 400, "9" * 5000, "NaN", "Infinity", '"x"', "null", "[]", "1e300", "true", "3"]
    )
    deep = chance.choice(
        ["{}", '{"a":' * 500 + "1" + "}" * 500, "[" * 100_000, '{"\\u001b[31m": "<b>"}', "[[1, [2]], NaN]"]
    )
    content = f'{{"wall_seconds": {value}, "configuration": {deep}}}'.encode()
    return damaged(chance, content) if chance.random() < 0.3 else content


def parquet_of(rows: list[dict], chance: random.Random) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    content = sink.getvalue()
    return damaged(chance, content) if chance.random() < 0.3 else content


def result_folder(chance: random.Random, folder: Path) -> None:
    """What a sweep leaves, corrupted: results and settings, or parts alone."""
    folder.mkdir()
    if chance.random() < 0.6:
        name = chance.choice(["results", "robustness", "table1"])
        (folder / f"{name}.parquet").write_bytes(parquet_of(corrupted_cells(chance), chance))
        settings = {"results": "summary"}.get(name, name)
        if chance.random() < 0.7:
            (folder / f"{settings}.json").write_bytes(facts(chance))
        return
    (folder / "parts").mkdir()
    for name in "ab":
        rows = cells(random.Random(1)) if name == "a" else corrupted_cells(chance)
        content = sealed(
            Part(chance.choice([CELLS, CELLS, "label entropy", "x"]), chance.choice([name, name, "c"]), rows)
        )
        (folder / "parts" / f"{name}.parquet").write_bytes(
            damaged(chance, content) if chance.random() < 0.5 else content
        )
    if chance.random() < 0.3:
        no_file(chance, folder / "parts" / "c.parquet")


def no_file(chance: random.Random, path: Path) -> None:
    """Something of that name that is no regular file."""
    make = [
        os.mkfifo,
        os.mkdir,
        lambda p: os.symlink("nowhere", p),
        lambda p: os.symlink(p.name, p),
        lambda p: os.symlink("/dev/zero", p),
    ]
    chance.choice(make)(path)
