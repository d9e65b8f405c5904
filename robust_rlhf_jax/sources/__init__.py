"""Pairs that need not fit in memory, read in blocks: arrays, shards, Parquet files, generated ones, embedded texts."""

from ._blocks_from import blocks_from
from ._read_ahead import read_ahead
from .arrays import ArraySource
from .copies import write_copy
from .embedding import embedded
from .generated import GeneratedSource
from .opening import open_pairs
from .parquet import ParquetSource
from .protocol import PairSource
from .shards import ShardSource
from .writing import write_shards

__all__ = [
    "ArraySource",
    "GeneratedSource",
    "PairSource",
    "ParquetSource",
    "ShardSource",
    "blocks_from",
    "embedded",
    "open_pairs",
    "read_ahead",
    "write_copy",
    "write_shards",
]
