"""What sources show of themselves."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from robust_rlhf_jax.sources import ArraySource, GeneratedSource, ParquetSource, ShardSource


def test_sources_say_how_many_pairs_of_which_features(tmp_path):
    x = np.ones((1200, 2), np.float32)
    np.save(tmp_path / "x.npy", x)
    pq.write_table(pa.table({"chosen": list(x)}), tmp_path / "x.parquet")
    named = pd.DataFrame(x, columns=["price", "time"])
    shown = {
        "ArraySource(1,200 pairs of 2 features)": ArraySource(x),
        "ArraySource(1,200 pairs of 2 features (price, time); with groups)": ArraySource(
            named, raters=np.arange(1200) % 20
        ),
        "GeneratedSource(1,200 pairs of 2 features)": GeneratedSource(lambda: iter([x])),
        "ShardSource(1,200 pairs of 2 features)": ShardSource(tmp_path / "x.npy"),
        "ParquetSource(1,200 pairs of 2 features)": ParquetSource(tmp_path / "x.parquet", rejected=None),
    }
    assert list(map(repr, shown.values())) == list(shown)
