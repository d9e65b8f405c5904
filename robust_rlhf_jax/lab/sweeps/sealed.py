"""Rows in a parquet file that says what it is, under a checksum of every byte: damage is found when it is read."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

KEY = b"robust_rlhf_jax_rows"
# The seal stands in the file's own metadata; its digits are zeros while the checksum is taken.
MARK = b"sealed by sha256 "
BLANK = b"0" * 64
SEAL = re.compile(re.escape(MARK) + rb"([0-9a-f]{64})")
# What a part may hold.
CELLS = "cells"


class Part(NamedTuple):
    """`kind` and `name` as the file has them."""

    kind: str
    name: str
    rows: list[dict[str, Any]]


def sealed(part: Part) -> bytes:
    """The file's content."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    facts = {"kind": part.kind, "name": part.name, "seal": (MARK + BLANK).decode()}
    table = pa.Table.from_pylist(part.rows)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, store_schema=False, write_page_checksum=True) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({KEY: json.dumps(facts).encode()})
    content = sink.getvalue().to_pybytes()
    return content.replace(MARK + BLANK, MARK + hashlib.sha256(content).hexdigest().encode())


def unsealed(content: bytes) -> Part:
    """What `sealed` was given. Nothing is parsed before the checksum is right.

    **Raises:** ValueError with the reason, for any content but that of `sealed`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not SEAL.search(content):
        raise ValueError("it has no checksum")
    if not _holds(content):
        raise ValueError("its checksum is wrong")
    file = pq.ParquetFile(pa.BufferReader(content))
    facts = json.loads(file.metadata.metadata[KEY])
    return Part(facts["kind"], facts["name"], file.read().to_pylist())


def _holds(content: bytes) -> bool:
    """Whether the one seal in `content` is right."""
    found = SEAL.findall(content)
    blank = SEAL.sub(MARK + BLANK, content)
    return len(found) == 1 and hashlib.sha256(blank).hexdigest().encode() == found[0]


def is_cut_short(content: bytes) -> bool:
    """Whether a file begins as parquet does and does not end so."""
    return content[:4] == b"PAR1" and (len(content) < 8 or content[-4:] != b"PAR1")


def check_seal(path: Path) -> None:
    """**Raises:** ValueError for a file whose seal is wrong; one without is none of ours."""
    content = path.read_bytes()
    if KEY in content and not _holds(content):
        raise ValueError(f"{path} is not as it was written (its checksum is wrong): run the command again.")


def read_part(path: Path) -> Part:
    """The part in the file `path`.

    **Raises:** ValueError in one sentence for a damaged part, one under another's name or without rows, and for
    what is no file; OSError where it cannot be read.
    """
    try:
        if not path.is_file():  # a FIFO would be waited for
            raise ValueError("it is no regular file")
        part = unsealed(path.read_bytes())
        if part.name != path.stem:
            raise ValueError(f"it says that it is {part.name}.parquet")
        if not part.rows:
            raise ValueError("it has no rows")
    except ValueError as error:
        raise ValueError(
            f"{path} is not a part as it was written ({error}): remove it, and the command that wrote it computes it "
            "anew."
        ) from None
    return part
