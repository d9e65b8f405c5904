"""Preference files of any kind as pairs with features, and back."""

from .bad_cells import BadCell
from .columns import Columns
from .containers import CONTAINERS
from .descriptions import Description, Example
from .exports import export
from .featurisers import FEATURISERS, Featuriser
from .loading import describe, load_pairs
from .pair_checks import check_pairs
from .pairs import Pairs
from .reading import read_table
from .reward_head import RewardHead
from .schemas import SCHEMAS
from .table import Source, Table
from .texts import Texts

__all__ = [
    "CONTAINERS",
    "FEATURISERS",
    "SCHEMAS",
    "BadCell",
    "Columns",
    "Description",
    "Example",
    "Featuriser",
    "Pairs",
    "RewardHead",
    "Source",
    "Table",
    "Texts",
    "check_pairs",
    "describe",
    "export",
    "load_pairs",
    "read_table",
]
