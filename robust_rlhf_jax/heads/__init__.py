"""Reward heads on embeddings, and a weight for every pair: `robust-rlhf embed` and `fit`, and refits in training."""

from .refit import Refit, refit_head
from .robust_head import RobustHead
from .score_inputs import last_states
from .training_callback import trl_callback
from .weighted_loss import weighted_trainer
from .weighted_sampling import resampling_trainer

__all__ = [
    "Refit",
    "RobustHead",
    "last_states",
    "refit_head",
    "resampling_trainer",
    "trl_callback",
    "weighted_trainer",
]
