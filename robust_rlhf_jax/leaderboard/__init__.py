"""Ratings of models from votes between two of them, and how few votes change the first place."""

from .fragility import Change, fewest_changes
from .ratings import Rating, believed, bradley_terry, judged, rate
from .votes import Votes, read_votes

__all__ = [
    "Change",
    "Rating",
    "Votes",
    "believed",
    "bradley_terry",
    "fewest_changes",
    "judged",
    "rate",
    "read_votes",
]
