"""How long audits of files of about one size take, one after the other, from an empty cache of programs.

`python benchmarks/next_audit.py [--pairs 500 510 530]`: the first compiles, the others mostly do not.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from robust_rlhf_jax.outputs import environment

COMMAND = "import robust_rlhf_command; robust_rlhf_command.main()"
AUDIT_SIZE = Path(__file__).with_name("audit_size.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, nargs="+", default=[500, 510, 530])
    parser.add_argument("--features", type=int, default=8)
    given = parser.parse_args()
    print("| pairs | seconds |\n|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        surroundings = os.environ | {"ROBUST_RLHF_CACHE": f"{folder}/cache"}
        for count in given.pairs:
            file = f"{folder}/{count}.parquet"
            shape = ["--pairs", f"{count}", "--features", f"{given.features}"]
            subprocess.run([sys.executable, AUDIT_SIZE, file, *shape], check=True)
            audit = [sys.executable, "-c", COMMAND, "audit", file, "--out", f"{folder}/{count}"]
            started = time.perf_counter()
            subprocess.run(audit, check=True, env=surroundings, stdout=subprocess.DEVNULL)
            print(f"| {count:,} | {time.perf_counter() - started:.1f} |", flush=True)
    print(environment())


if __name__ == "__main__":
    main()
