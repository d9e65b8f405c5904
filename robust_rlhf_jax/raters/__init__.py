"""Who judged how: tests, reliabilities, tastes and kinds of raters, and rewards that weigh them."""

from ._holm import holm
from ._reliability import Reliability, reliability
from ._score_test import ScoreTest, score_test
from .agreement import Agreement, krippendorff_alpha
from .rating import WeighedReward, fit_weighed, rate_raters
from .table import Rater, RaterTable
from .votes import RaterVotes, fit_votes

__all__ = [
    "Agreement",
    "Rater",
    "RaterTable",
    "RaterVotes",
    "Reliability",
    "ScoreTest",
    "WeighedReward",
    "fit_votes",
    "fit_weighed",
    "holm",
    "krippendorff_alpha",
    "rate_raters",
    "reliability",
    "score_test",
]
