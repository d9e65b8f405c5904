"""The robust reward of more pairs than fit into memory, by passes over a `PairSource`."""

from .config import Streaming
from .fit import fit_by_passes, fit_source
from .held import held_pairs, in_memory
from .processes import Processes
from .ray_tasks import RayTasks

__all__ = [
    "Processes",
    "RayTasks",
    "Streaming",
    "fit_by_passes",
    "fit_source",
    "held_pairs",
    "in_memory",
]
