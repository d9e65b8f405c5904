"""Preference data: the pytree, Bradley–Terry labels, validation, splits, files, bundled real data."""

from .bradley_terry import label_entropy, preference_probabilities, sample_preferences, sample_segments
from .data import PreferenceData, changed_pairs, random_split
from .files import load, save
from .pairs import preferences_from_features, preferences_from_options
from .rail_choices import RAIL_FEATURES, load_rail_choices, rail_people
from .tables import load_table
from .validation import check_preferences

__all__ = [
    "RAIL_FEATURES",
    "PreferenceData",
    "changed_pairs",
    "check_preferences",
    "label_entropy",
    "load",
    "load_rail_choices",
    "load_table",
    "preference_probabilities",
    "preferences_from_features",
    "preferences_from_options",
    "rail_people",
    "random_split",
    "sample_preferences",
    "sample_segments",
    "save",
]
