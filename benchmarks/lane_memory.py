"""Working memory of each algorithm on one cell in units of its data set; `batch_size.WORKING_SETS` is above it.

`python benchmarks/lane_memory.py [ALGORITHM …]` compiles each for one cell and asks XLA for its temporary memory.
"""

import sys

import jax

from robust_rlhf_jax.lab.methods import METHODS
from robust_rlhf_jax.lab.sweeps import SweepConfig
from robust_rlhf_jax.lab.sweeps.batch_size import data_bytes
from robust_rlhf_jax.lab.sweeps.families import build_worlds, stack_worlds
from robust_rlhf_jax.preferences import sample_preferences

CONFIG = SweepConfig(preset="quick", families=("random",))


def main() -> None:
    worlds = build_worlds(CONFIG.preset, CONFIG.families, jax.random.key(0))
    one = data_bytes(CONFIG, stack_worlds(worlds))
    print(f"one data set of {CONFIG.pairs} pairs: {one:,} bytes")
    data = jax.eval_shape(lambda key: sample_preferences(key, worlds[0].mdp, CONFIG.pairs), jax.random.key(0))
    for name in sys.argv[1:] or METHODS:
        lane = jax.jit(METHODS[name].run)
        compiled = lane.lower(jax.random.key(0), data, 0.1).compile()
        analysis = compiled.memory_analysis()
        print(f"{name}: {analysis.temp_size_in_bytes / one:.1f} data sets of temporary memory", flush=True)


if __name__ == "__main__":
    main()
