"""`Streaming`: how a source that does not fit into memory is read, and from how large a sample."""

import dataclasses
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from robust_rlhf_jax.memory import host_bytes

from .engine import Engine

# Reports (what is done, pairs read, pairs in all) after every block.
Tell = Callable[[str, int, int], None]
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
# Pairs of a sample: of 256 features, a tenth of the surest labels flipped was found in 64 for each, and not in 32.
PER_FEATURE, FEWEST = 64, 16_384
# Copies of the differences in float32 that a fit in memory takes at its peak, programs included.
COPIES = 20
# A sample, second moments, lengths, a step, leverages.
STAGES = 5
# The share of the machine's memory that is used if `memory` is not given.
SHARE = 0.5


@dataclasses.dataclass(frozen=True)
class Streaming:
    """How `fit_reward` reads a `PairSource`.

    | option | meaning |
    |---|---|
    | `memory` | bytes, or words such as "2GB", that the fit may use beside Python and JAX; None: half of all |
    | `checkpoint` | a folder for the state after each pass, from which an interrupted fit goes on; None: none |
    | `sample` | pairs from which the explanations come, as memory allows; None: 64 per feature, at least 16,384 |
    | `passes` | after so many passes a fit ends, settled or not |
    | `engine` | who reads and multiplies the pairs: `RayTasks()`, `Processes()`; None: this process |
    | `tell` | is called after every block with what is done, the pairs read and the pairs in all |

    **Raises:** ValueError for a memory that is no number of bytes, fewer passes than a fit has stages, a sample of no
    pair, and an engine that is none.

    **Example:**

    >>> from robust_rlhf_jax.rewards import Streaming
    >>> Streaming(memory="2GB").memory_bytes
    2000000000
    """

    memory: int | str | None = None
    checkpoint: str | os.PathLike | None = None
    sample: int | None = None
    passes: int = 15
    tell: Tell | None = None
    engine: Engine | None = None

    def __post_init__(self):
        _ = self.memory_bytes
        if not _whole(self.passes) or self.passes < STAGES:
            raise ValueError(f"passes={self.passes!r}: give a whole number; a fit takes at least {STAGES}.")
        if self.sample is not None and (not _whole(self.sample) or self.sample < 1):
            raise ValueError(f"sample={self.sample!r}: give a whole number of pairs, or None.")
        if not isinstance(self.engine, Engine | None):
            raise ValueError(
                f"engine={self.engine!r}: give RayTasks(), Processes(), or None for this process."
            )

    @property
    def memory_bytes(self) -> int:
        if self.memory is None:
            return int(SHARE * host_bytes())
        return parsed_bytes(self.memory)

    def sample_of(self, n_features: int) -> int:
        """How many pairs the sample should have."""
        return max(FEWEST, PER_FEATURE * n_features) if self.sample is None else self.sample

    @property
    def folder(self) -> Path | None:
        return None if self.checkpoint is None else Path(self.checkpoint)


def _whole(number: object) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def parsed_bytes(memory: int | str) -> int:
    """The number of bytes that `memory` says.

    **Raises:** ValueError for anything but a positive number with one of the units B, kB, MB, GB, TB.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", str(memory), re.IGNORECASE)
    size = float(found[1]) * UNITS[found[2].upper()] if found else 0.0
    if size < 1:
        raise ValueError(f"memory is {memory!r}: give a number of bytes such as 2000000000 or '2GB'.")
    return int(size)
