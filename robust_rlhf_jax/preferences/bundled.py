"""The data sets that come with the package, by name: what `robust-rlhf audit NAME` reads."""

from collections.abc import Callable
from pathlib import Path

from robust_rlhf_jax.io import Pairs

from .argument_votes import arguments_file
from .rail_choices import rail_pairs

# Sets of numbers, which need no reading.
BUNDLED: dict[str, Callable[[], Pairs]] = {"rail": rail_pairs}
# Preference files, read and exported as a user's own.
BUNDLED_FILES: dict[str, Path] = {"arguments": arguments_file()}
