"""One JSON document that holds rows: an array, columns as pandas writes them, or objects around either."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from ..schemas.sides import CHOSEN_SIDES, PROMPTS, plain_name
from .json_splits import splits_in
from .named_splits import one_split

# Keys of rows, where other keys have lists of objects too.
ROWS = ("rows", "data", "records", "examples", "items", "instances", "pairs", "results", "comparisons")
# Keys of an object that holds the rows, whatever else there is.
AROUND = (*ROWS, "result", "dataset", "payload")
# Keys of messages.
MESSAGE = {"role", "from", "content", "value", "parts", "text"}
# What a server writes of a row beside the row itself.
BESIDE_ROW = {"row_idx", "truncated_cells"}


@dataclasses.dataclass(frozen=True)
class Document:
    """`kind`: "array", "key NAME", "columns", "pandas", "index" or "split"; `whole`: what was parsed; `rows`: its
    objects.

    `inner`: the key of the row in each object, where a server wraps them ({"row_idx": 0, "row": {…}}); `outer`: the
    objects around `whole`, each with its key of what is in it; `split`: the one that is read, "" if there are none.
    """

    kind: str
    whole: Any
    rows: list
    indent: int | None = None
    inner: str = ""
    outer: tuple[tuple[dict, str], ...] = ()
    split: str = ""

    @property
    def says(self) -> str:
        names = {
            "array": "a JSON array",
            "columns": "columns",
            "pandas": "columns by row",
            "split": "a table in parts",
            "index": "rows by their number or name",
        }
        keys = [key for _, key in self.outer]
        if self.kind not in names:
            return f"a JSON array under the key {'.'.join((*keys, self.kind.removeprefix('key ')))}"
        return names[self.kind] + (f" under the key {'.'.join(keys)}" if keys else "")

    def rebuilt(self, chosen: list[int], extra: dict[str, list]) -> Any:
        """The document with some of its rows and with further keys."""
        rebuilt = self._rebuilt(chosen, extra)
        for around, key in reversed(self.outer):
            rebuilt = around | {key: rebuilt}
        return rebuilt

    def _rebuilt(self, chosen: list[int], extra: dict[str, list]) -> Any:
        if self.kind == "array" or self.kind.startswith("key "):
            rows: list = [
                _with(self.rows[row], {n: c[i] for n, c in extra.items()}) for i, row in enumerate(chosen)
            ]
            if self.kind == "array":
                return rows
            key = self.kind.removeprefix("key ")
            if self.inner:
                rows = [
                    self.whole[key][old] | {self.inner: row} for old, row in zip(chosen, rows, strict=True)
                ]
            return self.whole | {key: rows}
        if self.kind == "columns":
            return {
                n: [column[row] for row in chosen] for n, column in self.whole.items() if n not in extra
            } | extra
        if self.kind == "index":
            labels = list(self.whole)
            return {
                labels[row]: self.rows[row] | {n: c[i] for n, c in extra.items()}
                for i, row in enumerate(chosen)
            }
        if self.kind == "pandas":
            labels = list(next(iter(self.whole.values())))
            kept = [labels[row] for row in chosen]
            old = {n: {at: column[at] for at in kept} for n, column in self.whole.items() if n not in extra}
            return old | {n: dict(zip(kept, column, strict=True)) for n, column in extra.items()}
        return self._split(chosen, extra)

    def _split(self, chosen: list[int], extra: dict[str, list]) -> dict:
        names = self.whole["columns"]
        kept = [i for i, name in enumerate(names) if name not in extra]
        data = [
            [*(self.whole["data"][row][i] for i in kept), *(column[at] for column in extra.values())]
            for at, row in enumerate(chosen)
        ]
        more = {"index": [self.whole["index"][row] for row in chosen]} if "index" in self.whole else {}
        return self.whole | {"columns": [*(names[i] for i in kept), *extra], "data": data} | more


def _with(row: Any, added: dict):
    return row | added if isinstance(row, dict) else row


def document_of(text: str, path: Path, strict: bool = True, split: str | None = None) -> Document | None:
    """The document in `text`, or one `split` of it; None where lines of objects are meant.

    **Raises:** ValueError for what is cut short or holds no rows, unless not `strict`; for several splits of which none
        is asked for.
    """
    try:
        whole = json.loads(text.lstrip("\ufeff"))
    except RecursionError:
        return None
    except json.JSONDecodeError as error:
        if not strict or error.msg == "Extra data" or not text.lstrip("\ufeff \t\r\n").startswith(("[", "{")):
            return None
        if not text.lstrip("\ufeff \t\r\n").startswith("[") and "\n" not in text.strip():
            return None
        where = "is cut short or damaged" if error.pos >= len(text.rstrip()) - 1 else "is no JSON"
        raise ValueError(f"{path} {where} (line {error.lineno}: {error.msg}): write it again.") from None
    except ValueError:  # a number of thousands of digits
        return None
    indent = re.match(r"\s*[\[{]\r?\n( *)", text)
    outer, within = _unwrapped(whole)
    names = splits_in(within, _holds_rows)
    if names:
        split = one_split(path, names, split)
        outer, within = (*outer, (within, split)), within[split]
    found = _found(within)
    if found is None:
        if not strict or (isinstance(whole, dict) and "\n" not in text.strip()):
            return None
        if isinstance(whole, dict):
            return Document("array", [whole], [whole])
        raise ValueError(f"{path} is JSON without rows: give an array of objects, or one object per line.")
    kind, rows = found
    inner = "row" if rows and all(map(_is_around_row, rows)) else ""
    rows = [row[inner] for row in rows] if inner else rows
    chosen = split if names and split is not None else ""
    return Document(kind, within, rows, len(indent[1]) or None if indent else None, inner, outer, chosen)


def _holds_rows(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(row, dict) for row in value)
    return isinstance(value, dict) and _found(value) is not None


def _is_around_row(row: Any) -> bool:
    return isinstance(row, dict) and (
        {"row", "row_idx"} <= row.keys()
        or (isinstance(row.get("row"), dict) and row.keys() - {"row"} <= BESIDE_ROW)
    )


def _unwrapped(whole: Any) -> tuple[tuple[tuple[dict, str], ...], Any]:
    """The objects around what has rows, and that; nothing is taken off what has rows by itself, or might be a row."""
    outer: list[tuple[dict, str]] = []
    within = whole
    while isinstance(within, dict) and not _has_rows(within) and not _is_row(within):
        keys = [key for key in AROUND if isinstance(within.get(key), dict)]
        if len(keys) != 1 or _has_side(within):
            return (), whole
        outer.append((within, keys[0]))
        within = within[keys[0]]
    return (tuple(outer), within) if _has_rows(within) else ((), whole)


def _has_rows(whole: Any) -> bool:
    return _found(whole) is not None or bool(splits_in(whole, _holds_rows))


def _has_side(whole: dict) -> bool:
    """Whether a key is called as a prompt or a side is, so that the object may be a row."""
    names = {plain_name(name) for name in whole} - {*AROUND}
    return bool(names & {*PROMPTS, *(side for sides in CHOSEN_SIDES for side in sides)})


def _found(whole: Any) -> tuple[str, list] | None:
    if isinstance(whole, list):
        return "array", whole
    if not isinstance(whole, dict) or not whole:
        return None
    if isinstance(whole.get("columns"), list) and isinstance(whole.get("data"), list) and _is_split(whole):
        names = whole["columns"]
        return "split", [dict(zip(names, row, strict=True)) for row in whole["data"]]
    values = list(whole.values())
    if len(values) > 1 and all(isinstance(v, dict) for v in values) and len({tuple(v) for v in values}) == 1:
        labels = list(values[0])
        if labels and (all(label.isdigit() for label in labels) or _are_columns(whole, labels)):
            return "pandas", [{n: whole[n][at] for n in whole} for at in labels]
        if all(number.isdigit() for number in whole) and len(values[0]) > 1:
            return "index", values
    if len(values) > 1 and _are_named_rows(whole):
        return "index", values
    lists = {n: v for n, v in whole.items() if isinstance(v, list)}
    rows_of = [n for n, v in lists.items() if v and all(isinstance(row, dict) for row in v)]
    if len(lists) == len(whole) > 1 and len({len(v) for v in values}) == 1 and not _is_row(whole):
        return "columns", [dict(zip(whole, row, strict=True)) for row in zip(*values, strict=True)]
    if rows_of and not _is_row(whole):
        key = next((n for n in ROWS if n in rows_of), rows_of[0] if len(rows_of) == 1 else "")
        return (f"key {key}", lists[key]) if key else None
    return None


def _are_columns(whole: dict, labels: list) -> bool:
    """Whether the keys are names of columns, prompts among them, and the labels those of rows, not of messages."""
    prompts = [column for name, column in whole.items() if plain_name(name) in PROMPTS]
    texts = any(all(isinstance(cell, str) for cell in column.values()) for column in prompts)
    return texts and len(labels) > 1 and not _has_side(dict.fromkeys(labels)) and not MESSAGE & {*labels}


def _are_named_rows(whole: dict) -> bool:
    """Whether the values are pairs under ids: all have a prompt, or the two sides under ids of one word, which are no
    prompts; no key of the document is called so."""
    rows = list(whole.values())
    if not all(
        isinstance(row, dict) and any(not isinstance(cell, list) for cell in row.values()) for row in rows
    ):
        return False
    shared = set.intersection(*({plain_name(name) for name in row} for row in rows))
    named = {plain_name(name) for name in whole}
    prompts, sides = [{prompt} for prompt in PROMPTS], [{*sides} for sides in CHOSEN_SIDES]
    found = any(names <= shared for names in prompts) or (
        any(names <= shared for names in sides) and not any(len(name.split()) > 1 for name in whole)
    )
    return found and not any(names & named for names in prompts + sides)


def _is_split(whole: Any) -> bool:
    width = len(whole["columns"])
    return all(isinstance(row, list) and len(row) == width for row in whole["data"])


def _is_row(whole: dict) -> bool:
    """Whether the object is itself a pair: its lists are messages, or answers under a prompt."""

    def messages(value):
        return (
            isinstance(value, list)
            and value
            and all(isinstance(m, dict) and ({"role", "from"} & m.keys()) for m in value)
        )

    return any(messages(value) for value in whole.values()) or bool(
        {"prompt", "instruction", "chosen", "rejected", "preferred_output"} & whole.keys()
        and not all(isinstance(value, list) for value in whole.values())
    )
