"""Preference files of any kind as pairs with features, and back."""

from .bad_cells import BadCell
from .exports import export
from .featurisers import FEATURISERS, Featuriser
from .pairs import Columns, Pairs, load_pairs
from .reading import READERS, read_table
from .reward_head import RewardHead
from .table import Table
from .texts import Texts

__all__ = [
    "FEATURISERS",
    "READERS",
    "BadCell",
    "Columns",
    "Featuriser",
    "Pairs",
    "RewardHead",
    "Table",
    "Texts",
    "export",
    "load_pairs",
    "read_table",
]
