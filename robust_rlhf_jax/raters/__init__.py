"""Who judged how: tests, reliabilities, tastes and kinds of raters, and rewards that weigh them."""

from .holm import holm
from .reliability import Reliability, reliability
from .score_test import ScoreTest, score_test

__all__ = ["Reliability", "ScoreTest", "holm", "reliability", "score_test"]
