"""A large file of numbers for the audit: `python benchmarks/audit_size.py pairs.parquet [--pairs 200000]`.

Normal features, honest Bradley–Terry labels. Time the audit alone: `time robust-rlhf audit pairs.parquet --out audit`.
"""

import argparse

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=64)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    theta = rng.normal(size=given.features) / 4
    chosen, rejected = rng.normal(size=(2, given.pairs, given.features)).astype(np.float32)
    turned = rng.random(given.pairs) < 1 / (1 + np.exp((chosen - rejected) @ theta))
    chosen[turned], rejected[turned] = rejected[turned], chosen[turned].copy()
    sides = {"chosen": chosen, "rejected": rejected}
    columns = {f"{side}_f{j}": x[:, j] for side, x in sides.items() for j in range(given.features)}
    pq.write_table(pa.table(columns), given.path)


if __name__ == "__main__":
    main()
