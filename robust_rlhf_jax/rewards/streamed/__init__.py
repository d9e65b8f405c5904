"""The robust reward of more pairs than fit into memory, by passes over a `PairSource`."""

from .config import Streaming
from .fit import fit_source

__all__ = ["Streaming", "fit_source"]
