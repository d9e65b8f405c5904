"""Reward heads on embeddings, and a weight for every pair: `robust-rlhf fit`, and refits while a model is trained."""

from .refit import Refit, refit_head
from .robust_head import RobustHead

__all__ = ["Refit", "RobustHead", "refit_head"]
