"""Who judged how: tests, reliabilities, tastes and kinds of raters, and rewards that weigh them."""

from .front_door import WeighedReward, fit_weighed, rate_raters
from .holm import holm
from .reliability import Reliability, reliability
from .score_test import ScoreTest, score_test
from .table import Rater, RaterTable

__all__ = [
    "Rater",
    "RaterTable",
    "Reliability",
    "ScoreTest",
    "WeighedReward",
    "fit_weighed",
    "holm",
    "rate_raters",
    "reliability",
    "score_test",
]
