"""The cases of containers: compression, encodings, separators, Arrow's types, folders, arrays."""

import json

import pyarrow as pa

from . import arenas, chosen, sheets, stores, tools, worlds
from .case import Case
from .truths import by_vote

TIES = {"ties": True}
AB = sheets.words("A", "B", column="preference")
LATIN = "latin-1"


def features(**kinds: dict) -> dict[str, str]:
    """What `datasets` writes into a schema's metadata."""
    text = {"dtype": "string", "_type": "Value"}
    return {"huggingface": json.dumps({"info": {"features": {n: k or text for n, k in kinds.items()}}})}


CLASSES = {"names": ["model_a", "model_b", "tie"], "_type": "ClassLabel"}
CLASS_LABEL = features(prompt={}, response_a={}, response_b={}, winner=CLASSES)
IMAGE = features(image={"_type": "Image"}, prompt={}, chosen={}, rejected={})
DICTIONARY = pa.dictionary(pa.int32(), pa.string())
TYPES = {"small": pa.int8(), "day": pa.date32(), "count": pa.uint16(), "raw": pa.large_binary()}
VIEWS = {name: pa.string_view() for name in ("prompt", "chosen", "rejected")}
LARGE = {name: pa.large_string() for name in ("prompt", "chosen", "rejected")}

FILES = (
    Case("json_array", chosen.explicit, stores.json_array()),
    Case("json_array_indented", chosen.conversational, stores.json_array(indent=2)),
    Case("json_wrapped", chosen.explicit, stores.json_wrapped("data", version="1.0")),
    Case("json_wrapped_labels", arenas.wsdm, stores.json_wrapped("records")),
    Case("json_server_rows", chosen.explicit, stores.server_rows),
    Case("json_columns", chosen.explicit, stores.json_columns),
    Case("json_columns_by_label", chosen.explicit, stores.json_within(make=stores.by_label)),
    Case("json_rows_alone", chosen.explicit, stores.json_within(make=stores.rows_alone)),
    Case("json_lists_within", chosen.explicit, stores.json_within("data", make=stores.lists)),
    Case("json_split_within", arenas.wsdm, stores.json_within("data", make=stores.split)),
    Case("json_array_within", chosen.explicit, stores.json_within("result", "data", make=lambda rows: rows)),
    Case("json_rows_within", chosen.explicit, stores.json_within("payload", make=stores.rows_alone)),
    Case("json_by_number", chosen.explicit, stores.json_by_number),
    Case("json_by_name", chosen.explicit, stores.json_by_name),
    Case("json_by_name_labels", AB, stores.json_by_name, options=TIES),
    Case("jsonl_array", chosen.explicit, stores.json_array("pairs.jsonl")),
    Case("jsonl_no_last_line_end", chosen.explicit, stores.jsonl(end="")),
    Case("ndjson", chosen.explicit, stores.jsonl("pairs.ndjson")),
    Case("jsonl_gz", AB, stores.jsonl("pairs.jsonl.gz"), options=TIES),
    Case("jsonl_bz2", AB, stores.jsonl("pairs.jsonl.bz2"), options=TIES),
    Case("jsonl_xz", AB, stores.jsonl("pairs.jsonl.xz"), options=TIES),
    Case("jsonl_zst", AB, stores.jsonl("pairs.jsonl.zst"), options=TIES),
    Case("json_gz", chosen.explicit, stores.json_array("pairs.json.gz")),
    Case("csv", chosen.explicit, stores.table()),
    Case("csv_gz", AB, stores.table("pairs.csv.gz"), options=TIES),
    Case("csv_bz2", chosen.explicit, stores.table("pairs.csv.bz2")),
    Case("csv_crlf", chosen.explicit, stores.table(end="\r\n")),
    Case("csv_bom", chosen.explicit, stores.table(encoding="utf-8-sig")),
    Case("csv_semicolons", AB, stores.table(sep=";"), options=TIES),
    Case("csv_semicolons_bom", chosen.explicit, stores.table(sep=";", encoding="utf-8-sig", end="\r\n")),
    Case("csv_tabs", chosen.explicit, stores.table(sep="\t")),
    Case("csv_utf16", chosen.explicit, stores.table(encoding="utf-16")),
    Case("csv_latin1", chosen.explicit, stores.table(encoding=LATIN)),
    Case("csv_semicolons_latin1", AB, stores.table(sep=";", encoding=LATIN), options=TIES),
    Case("csv_index", chosen.explicit, stores.table(index=True)),
    Case("csv_index_labels", AB, stores.table(index=True), options=TIES),
    Case("csv_bullets", sheets.bullets, stores.table(),
         truth=lambda items: _bullets(items)),
    Case("csv_messages", sheets.messages_as_text, stores.table()),
    Case("tsv", chosen.explicit, stores.table("pairs.tsv", sep="\t")),
    Case("tsv_utf16_bom", AB, stores.table("pairs.tsv", sep="\t", encoding="utf-16"), options=TIES),
    Case("tsv_gz", chosen.explicit, stores.table("pairs.tsv.gz", sep="\t")),
)  # fmt: skip

ARROW = (
    Case("parquet", chosen.explicit, stores.parquet()),
    Case("parquet_zstd", chosen.explicit, stores.parquet(compression="zstd", row_group_size=7)),
    Case("parquet_dictionary", AB, stores.parquet(types={"preference": DICTIONARY, "prompt": DICTIONARY}),
         options=TIES),
    Case("parquet_large", chosen.explicit, stores.parquet(types=LARGE)),
    Case("parquet_view", chosen.explicit, stores.parquet(types=VIEWS)),
    Case("parquet_pandas_metadata", chosen.explicit, stores.parquet(metadata={"pandas": "{}", "mine": "kept"})),
    Case("parquet_typed", sheets.typed, stores.parquet(types=TYPES)),
    Case("parquet_image", sheets.with_image, stores.parquet(metadata=IMAGE)),
    Case("parquet_class_label", sheets.with_class_label, stores.parquet(metadata=CLASS_LABEL), options=TIES),
    Case("feather", AB, stores.feather, options=TIES),
    Case("arrow_stream", chosen.conversational, stores.arrow_stream),
    Case("shards", chosen.explicit, stores.shards()),
    Case("shards_glob", arenas.wsdm, stores.shards("*.parquet")),
    Case("saved", chosen.conversational, stores.saved()),
    Case("saved_labels", tools.long_table, stores.saved(), options=TIES | {"votes": 2}, truth=by_vote,
         facts=("prompt", "row", "rater")),
    Case("dataset_dict_of_one", chosen.explicit, stores.saved("train")),
)  # fmt: skip

WIDE = {f"{side}_embedding": pa.list_(pa.float32(), 5) for side in ("chosen", "rejected")}
HALF = {f"{side}_embedding": pa.list_(pa.float32()) for side in ("chosen", "rejected")}
VECTORS = {"world": worlds.vectors, "facts": ("row",)}

NUMBERS = (
    Case("features", sheets.numbers, stores.table(), **VECTORS),
    Case("features_parquet", sheets.numbers, stores.parquet(), **VECTORS),
    Case("features_labelled", sheets.numbers_labelled, stores.table(), world=worlds.voted_vectors, facts=("row",),
         refused="column label could be the label", flags={"--label": "label", "--first-is": "1"}),
    Case("embeddings_jsonl", sheets.embeddings, **VECTORS),
    Case("embeddings_parquet", sheets.embeddings_beside_prompt, stores.parquet(types=HALF), **VECTORS),
    Case("embeddings_fixed_size", sheets.embeddings, stores.parquet(types=WIDE), **VECTORS),
    Case("embeddings_bare", sheets.bare_vectors, stores.parquet(), **VECTORS),
    Case("embeddings_as_text", sheets.numbers_as_text, stores.table(), **VECTORS),
    Case("npy_pair", sheets.bare_vectors, stores.arrays("npy"), **VECTORS),
    Case("npy_folder", sheets.bare_vectors, stores.arrays("folder"), **VECTORS),
    Case("npz", sheets.bare_vectors, stores.arrays("npz"), **VECTORS),
    Case("safetensors", sheets.bare_vectors, stores.arrays("safetensors"), **VECTORS),
)  # fmt: skip


def _bullets(items):
    """`sheets.bullets` changes the answers by row."""
    import dataclasses

    from .truths import by_item

    marks = "-=+@"
    return [
        dataclasses.replace(
            v, chosen=f"{marks[v.row % 4]} {v.chosen}", rejected=f"{marks[v.row % 4]} {v.rejected}"
        )
        for v in by_item(items)
    ]
