"""In what files rows come: one module for each container, all alike (`Container` in `io/table.py`).

A new one is a module with `NAME`, `SUFFIXES`, `read` and `write`, and its place in `CONTAINERS`; a folder has `holds`
instead of suffixes.
"""

from types import ModuleType
from typing import Any

from . import (
    array_files,
    arrow_files,
    arrow_folders,
    delimited,
    json_texts,
    named_arrays,
    npy_folders,
    parquet_files,
)

CONTAINERS: tuple[ModuleType, ...] = (
    delimited, json_texts, parquet_files, arrow_files, array_files, named_arrays, arrow_folders, npy_folders
)  # fmt: skip
BY_SUFFIX: dict[str, ModuleType] = {suffix: module for module in CONTAINERS for suffix in module.SUFFIXES}
FOLDERS: tuple[Any, ...] = tuple(module for module in CONTAINERS if hasattr(module, "holds"))
# What writes a table again, by the container that its source names.
WRITERS: dict[str, ModuleType] = {
    "csv": delimited, "jsonl": json_texts, "parquet": parquet_files, "arrow": arrow_files,
    "arrow folder": arrow_folders,
    "npy": array_files, "npz": named_arrays, "safetensors": named_arrays,
}  # fmt: skip

__all__ = ["BY_SUFFIX", "CONTAINERS", "FOLDERS", "WRITERS"]
