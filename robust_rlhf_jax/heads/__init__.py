"""`robust-rlhf fit`: a reward head from embeddings of any size, and a weight for every pair."""

from .command import FILES, fit_command

__all__ = ["FILES", "fit_command"]
