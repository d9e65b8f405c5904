"""The first-order RobRL (paper: Algorithm 7): the data of the game, its updates, and the oracle that plays it."""

from .oracle import PrimalDual, theory_steps

__all__ = ["PrimalDual", "theory_steps"]
