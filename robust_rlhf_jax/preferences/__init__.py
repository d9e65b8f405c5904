"""Preference data: the pytree, Bradley–Terry labels, validation, splits, the table asked, files, bundled real data."""

from .bradley_terry import label_entropy, preference_probabilities, sample_preferences, sample_segments
from .data import PreferenceData, changed_pairs, random_split
from .files import load, load_table, save
from .pairs import preferences_from_features, preferences_from_options
from .rail_choices import RAIL_FEATURES, load_rail_choices, rail_people
from .table_check import ask_table, believed, leave_out, off_table
from .validation import check_preferences

__all__ = [
    "RAIL_FEATURES",
    "PreferenceData",
    "ask_table",
    "believed",
    "changed_pairs",
    "check_preferences",
    "label_entropy",
    "leave_out",
    "load",
    "load_rail_choices",
    "load_table",
    "off_table",
    "preference_probabilities",
    "preferences_from_features",
    "preferences_from_options",
    "rail_people",
    "random_split",
    "sample_preferences",
    "sample_segments",
    "save",
]
