"""Parquet files whose columns are lists of numbers."""

import numpy as np
import pytest


def parquet_file(path, columns, rows=None, fixed=True):
    """Write arrays [N, k] as lists of fixed or of any size, and arrays [N] as they are; return the path.

    **Arguments:** `rows`: of a row group.
    """
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def column(x):
        if x.ndim == 1:
            return pa.array(x)
        flat = pa.array(np.ascontiguousarray(x).reshape(-1))
        if fixed:
            return pa.FixedSizeListArray.from_arrays(flat, x.shape[1])
        return pa.ListArray.from_arrays(pa.array(np.arange(len(x) + 1) * x.shape[1], pa.int32()), flat)

    table = pa.table({name: column(np.asarray(x)) for name, x in columns.items()})
    parquet.write_table(table, path, row_group_size=rows, write_page_checksum=True)
    return path
