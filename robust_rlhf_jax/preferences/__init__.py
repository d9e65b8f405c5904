"""Preferences: trajectories as a pytree, pairs of options, validation, labels, splits, the table asked, files."""

from .argument_votes import argument_pairs, arguments_file
from .as_arrays import Labelled, as_labelled, comparison_numbers, group_numbers
from .bradley_terry import label_entropy, preference_probabilities, sample_preferences, sample_segments
from .data import PreferenceData, changed_pairs, random_split
from .files import load, load_table, save
from .options import preferences_from_features, preferences_from_options
from .rail_choices import RAIL_FEATURES, load_rail_choices, rail_pairs, rail_people
from .table_check import ask_table, believed, leave_out, off_table
from .table_of_pairs import with_table
from .validation import check_preferences

__all__ = [
    "RAIL_FEATURES",
    "Labelled",
    "PreferenceData",
    "argument_pairs",
    "arguments_file",
    "as_labelled",
    "ask_table",
    "believed",
    "changed_pairs",
    "check_preferences",
    "comparison_numbers",
    "group_numbers",
    "label_entropy",
    "leave_out",
    "load",
    "load_rail_choices",
    "load_table",
    "off_table",
    "preference_probabilities",
    "preferences_from_features",
    "preferences_from_options",
    "rail_pairs",
    "rail_people",
    "random_split",
    "sample_preferences",
    "sample_segments",
    "save",
    "with_table",
]
