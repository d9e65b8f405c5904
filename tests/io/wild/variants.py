"""What hands do to the schemas: other names, other words, missing cells, keys that come and go, rows without a vote."""

import json
import zipfile
from pathlib import Path

from . import chosen, sheets, sides, stores, tools
from .arenas import arena_33k, word
from .chosen import each
from .worlds import Item

Rows = list[dict]


def renamed(encode, **names: str):
    """The same under other names of columns."""

    def other(items: list) -> Rows:
        return [{names.get(name, name): cell for name, cell in row.items()} for row in encode(items)]

    return other


def emptied(encode, column: str, every: int = 8, cell: object = None):
    """Nothing in one cell of `every` of the rows."""

    def other(items: list) -> Rows:
        return [
            row | ({column: cell} if i % every == every - 1 else {}) for i, row in enumerate(encode(items))
        ]

    return other


def sheet_of_a_person(items: list[Item]) -> Rows:
    """Names with blanks and capitals, as typed."""
    rows = sheets.words("Response A", "Response B", "Tie", column="Preferred")(items)
    names = {"prompt": "Prompt", "response_a": "Response A", "response_b": "Response B"}
    return [{names.get(name, name): cell for name, cell in row.items()} for row in rows]


@each
def arena_as_text(i, item):
    """Conversations as JSON texts."""
    row = arena_33k([item])[0]
    return row | {name: json.dumps(row[name]) for name in ("conversation_a", "conversation_b")}


@each
def messages_as_repr(i, item):
    """Lists of messages as pandas writes them into CSV: Python's own words for them."""
    return {side: str(chosen.dialogue(item.prompt, getattr(item, side))) for side in ("chosen", "rejected")}


@each
def ragged(i, item):
    """Keys that some rows lack."""
    row = chosen.explicit([item])[0]
    return row | ({"note": f"n{i}"} if i % 3 else {}) | ({"source": None} if i % 4 == 1 else {})


@each
def labelled_chosen(i, item):
    """Sides called chosen and rejected, and a label of 0 and 1 beside them: which of the two counts?"""
    return {"prompt": item.prompt, "chosen": item.a, "rejected": item.b, "label": int(item.vote > 0)}


@each
def safe_rlhf(i, item):
    """The safer response is now and then not the better one."""
    row = sides.safe_rlhf([item])[0]
    return row | {
        "safer_response_id": 1 - row["better_response_id"] if i % 3 == 1 else row["better_response_id"]
    }


def argilla2_pending(items: list[Item]) -> Rows:
    """Records that nobody has answered yet."""
    return [
        row | ({} if row["preference.responses"] else {"status": "pending"})
        for row in tools.argilla2_flat(items)
    ]


def label_studio_cancelled(items: list[Item]) -> Rows:
    """Tasks without an annotation, and annotations that were skipped."""
    rows = tools.label_studio(items)
    for i, row in enumerate(rows):
        if i % 3 == 0:
            skipped = {"id": 9000 + i, "completed_by": 99, "was_cancelled": True, "task": i, "result": []}
            row["annotations"] = [*row["annotations"], skipped]
    return rows


@each
def some_raters(i, item):
    """A column for each of four annotators, of whom two judged."""
    said = {f"annotator_{j + 1}": "" for j in range(4)}
    for j, (_, value) in enumerate(item.votes):
        said[f"annotator_{(i + j) % 4 + 1}"] = word(value, "A", "B", "tie")
    return {"prompt": item.prompt, "response_a": item.a, "response_b": item.b, **said}


@each
def decimal_commas(i, item):
    """Stars as a European spreadsheet writes them."""
    row = sheets.stars([item])[0]
    return row | {name: f"{row[name]},5" for name in ("rating_a", "rating_b")}


def thinned(items: list[Item]) -> list[Item]:
    """Every fourth item has no votes."""
    return [
        Item(item.prompt, item.a, item.b, () if i % 4 == 2 else item.votes) for i, item in enumerate(items)
    ]


def bom_and_blank_lines(folder: Path, rows: Rows) -> Path:
    """A byte order mark, line ends of Windows, empty lines, and every letter beyond ASCII escaped."""
    lines = "\r\n\r\n".join(json.dumps(row) for row in rows)
    return stores.put(folder / "pairs.jsonl", b"\xef\xbb\xbf" + lines.encode() + b"\r\n\r\n")


def quoted(folder: Path, rows: Rows) -> Path:
    """Every cell in quotation marks."""
    import csv

    with open(folder / "pairs.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
        writer.writerows([list(rows[0]), *(list(row.values()) for row in rows)])
    return folder / "pairs.csv"


def workbook(folder: Path, rows: Rows) -> Path:
    """No more than what shows that it is one."""
    with zipfile.ZipFile(folder / "pairs.xlsx", "w") as file:
        file.writestr("[Content_Types].xml", "<Types/>")
        file.writestr("xl/workbook.xml", "<workbook/>")
    return folder / "pairs.xlsx"


def snapshot(folder: Path, rows: Rows) -> Path:
    """A clone of a data set's repository: a card, and the shards in data/."""
    stores.shards()(folder, rows)
    (folder / "README.md").write_text("---\nlicense: mit\n---\n# Pairs\n")
    (folder / ".gitattributes").write_text("*.parquet filter=lfs\n")
    return folder


def two_splits(folder: Path, rows: Rows) -> Path:
    """Shards of train and of test in one folder."""
    import pyarrow.parquet as pq

    stores.shards()(folder, rows)
    pq.write_table(stores.arrow_table(rows[:2]), folder / "data" / "test-00000-of-00001.parquet")
    return folder / "data"


def jsonl_shards(folder: Path, rows: Rows) -> Path:
    half = len(rows) // 2
    (folder / "parts").mkdir()
    for i, part in enumerate((rows[:half], rows[half:])):
        stores.jsonl(f"part-{i}.jsonl.gz")(folder / "parts", part)
    return folder / "parts" / "*.jsonl.gz"
