"""The robust reward of more pairs than fit into memory, by passes over a `PairSource`."""

from .config import Streaming
from .fit import fit_source
from .ray_tasks import RayTasks

__all__ = ["RayTasks", "Streaming", "fit_source"]
