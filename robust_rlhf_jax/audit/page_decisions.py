"""Decisions that a person made on the page of an audit, and the file as they want it."""

import codecs
import csv
import io
import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.io.containers.delimited import long_cells
from robust_rlhf_jax.io.exports import check_export, of_whole_rows, whole_export, write_rows
from robust_rlhf_jax.terminal import counted

from .answers import is_asked, read_answers
from .ask_pairs import BETTER
from .config import Reading
from .pair_check import pair_check
from .source import read_source

SCHEMA, VERSION = "robust_rlhf_jax.decisions", 1
WORDS = {"keep": True, "drop": False}


class Decided(NamedTuple):
    """`keep` [N] of the pairs; `said`: what there is to say of a file of answers, else empty."""

    keep: Bool[np.ndarray, " N"]
    said: str = ""


def read_decisions(path: str | os.PathLike, pairs: Pairs) -> Decided:
    """Which of N `pairs` are kept: those that a file of decisions does not name are.

    The file is what the page's buttons save: JSON {"schema", "version", "pairs": N, "decisions": [{"pair", "row",
    "decision", "check"}]}, or CSV with the columns pair, row and decision. Pairs and rows count from 1; a decision is
    keep or drop; where there is a `check`, it is that of the pair (`pair_check`). Or it is `ask.csv` with answers in
    its column better, several rows of a pair among them: pairs whose label the answers do not confirm are not kept.

    **Raises:** FileNotFoundError; ValueError in one sentence for a file that holds no decisions, another word, a pair
    decided twice, or one that `pairs` does not have in that row, or that holds something else there.

    **Example:**

    >>> import numpy as np, pathlib, tempfile
    >>> from robust_rlhf_jax import Pairs
    >>> from robust_rlhf_jax.audit.page_decisions import read_decisions
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.csv"
    >>> _ = path.write_text("pair,row,decision\\n2,2,drop\\n")
    >>> read_decisions(path, Pairs(np.ones((3, 1)), np.zeros((3, 1)))).keep.tolist()
    [True, False, True]
    """
    path = Path(path)
    try:
        text = _text(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist: check the path.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text in UTF-8: give what the page of an audit saved.") from None
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder: give the file that the page of an audit saved.") from None
    entries = _from_json(path, text, pairs) if text.lstrip().startswith(("{", "[")) else _from_csv(path, text)
    if entries and isinstance(entries[0], dict) and is_asked(list(entries[0])):
        return _as_answered(path, entries, pairs)
    keep, seen = np.ones(pairs.n_pairs, bool), set()
    for place, entry in enumerate(entries, 1):
        pair, kept = _decision(f"{path}, decision {place}", entry, pairs)
        if pair in seen:
            raise ValueError(f"{path}, decision {place}: pair {pair + 1} is decided twice: leave one.")
        seen.add(pair)
        keep[pair] = kept
    return Decided(keep)


def _as_answered(path: Path, entries: list[Any], pairs: Pairs) -> Decided:
    rows = []
    for place, entry in enumerate(entries, 1):
        where = f"{path}, question {place}"
        rows.append((where, _pair(where, entry, pairs), entry[BETTER]))
    answers = read_answers(rows, pairs)
    keep = np.ones(pairs.n_pairs, bool)
    keep[list(answers.pairs)] = answers.confirm
    return Decided(keep, answers.message)


def _text(path: Path) -> str:
    """The text of a file in UTF-8, or in UTF-16 as spreadsheets save "Unicode text"."""
    content = path.read_bytes()
    encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    # Only the answers count in an `ask.csv` that a spreadsheet saved in an encoding of its own.
    asked = BETTER.encode() in content.partition(b"\n")[0].lower()
    return content.decode(encoding, errors="replace" if asked else "strict")


def _from_json(path: Path, text: str, pairs: Pairs) -> list[Any]:
    try:
        found = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON ({error}): give what the page of an audit saved.") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA or found.get("version") != VERSION:
        raise ValueError(f"{path} is no {SCHEMA} of version {VERSION}: give what the page of an audit saved.")
    if found.get("pairs") != pairs.n_pairs:
        raise ValueError(
            f"{path} is about {found.get('pairs')} pairs, and {pairs.path} has {pairs.n_pairs}: give the file that was "
            "audited, with the same flags."
        )
    if not isinstance(found.get("decisions"), list):
        raise ValueError(f"{path} has no list of decisions: give what the page of an audit saved.")
    return found["decisions"]


def _from_csv(path: Path, text: str) -> list[Any]:
    text = re.sub(r'\A"?sep=.?"?\r?\n', "", text.lstrip("\r\n"), flags=re.I)
    # Spreadsheets of much of Europe save with semicolons.
    header = text.partition("\n")[0]
    delimiter = max(",;\t", key=header.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    names = [(name or "").strip().casefold() for name in reader.fieldnames or ()]
    columns = ("pair", "row", BETTER if is_asked(names) else "decision")
    for needed in columns:
        if names.count(needed) != 1:
            how = "has no column" if needed not in names else "has more than one column"
            raise ValueError(
                f"{path} {how} {needed}: it needs {columns[0]}, {columns[1]} and {columns[2]}, each once."
            )
    reader.fieldnames = names
    try:
        with long_cells():
            rows = [
                row for row in reader if any(cell.strip() for cell in row.values() if isinstance(cell, str))
            ]
    except csv.Error as error:
        raise ValueError(f"{path} is no CSV ({error}): give what the page of an audit saved.") from None
    # Files of several raters, one below the other, repeat the header.
    return [row for row in rows if str(row["pair"]).strip("\ufeff ").casefold() != "pair"]


def _decision(where: str, entry: Any, pairs: Pairs) -> tuple[int, bool]:
    """(the pair, from 0, whether it is kept)."""
    if not isinstance(entry, dict) or not {"pair", "row", "decision"} <= entry.keys():
        raise ValueError(f"{where}: it needs pair, row and decision.")
    pair, word = _pair(where, entry, pairs), entry["decision"]
    if not isinstance(word, str) or word.strip().lower() not in WORDS:
        raise ValueError(f"{where}: {str(word)[:40]!r} is neither keep nor drop.")
    return pair, WORDS[word.strip().lower()]


def _pair(where: str, entry: Any, pairs: Pairs) -> int:
    """The pair that an entry is about, from 0."""
    pair, row = (_count(where, entry[name], name) for name in ("pair", "row"))
    if not 1 <= pair <= pairs.n_pairs or pairs.rows[pair - 1] + 1 != row:
        raise ValueError(
            f"{where}: {pairs.path} has no pair {pair} in row {row}: give the file that was audited, with the "
            "same flags."
        )
    check = str(entry.get("check") or "").strip().casefold()
    if check and check != pair_check(pairs, pair - 1):
        raise ValueError(
            f"{where}: pair {pair} of {pairs.path} is not the one that was audited: give the file that was audited, "
            "with the same flags."
        )
    return pair - 1


def _count(where: str, value: Any, name: str) -> int:
    try:
        if isinstance(value, bool) or not float(value).is_integer():
            raise ValueError
        return int(float(value))
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{where}: {name} is {str(value)[:40]!r}: give a number from 1.") from None


def clean_file(source: str, decisions: Path, out: Path, reading: Reading) -> tuple[int, int, str]:
    """Write `source` without the pairs that `decisions` drop, as `out`; nothing is fitted.

    **Returns:** pairs that are kept, all pairs, and what is said of unusable rows, of ties that are kept, and of rows
    that hold both (`of_whole_rows`).

    **Raises:** as `read_source` and `read_decisions`; ValueError for an `out` that cannot be written.
    """
    # Nothing is fitted, and the cheapest features will do.
    pairs = read_source(source, featuriser="format", **reading.options())
    check_export(pairs, out, "--out")
    keep, said = read_decisions(decisions, pairs)
    with whole_export(pairs, out) as scratch:
        write_rows(pairs, scratch, {}, keep=keep)
    skipped = f"{counted(pairs.n_skipped, 'unusable row')} left out." if pairs.n_skipped else ""
    parts = (said, skipped, _kept_ties(int(np.sum(pairs.ties & keep))), of_whole_rows(pairs, keep))
    return int(keep.sum()), len(keep), " ".join(part for part in parts if part)


def _kept_ties(count: int) -> str:
    if not count:
        return ""
    are, them = ("is", "it") if count == 1 else ("are", "them")
    return f"{counted(count, 'tie')} {are} among them: drop {them}, too, if your trainer expects a winner of each pair."
