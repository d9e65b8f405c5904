"""The data sets that come with the package, by name: what `robust-rlhf audit NAME` reads."""

from collections.abc import Callable

from robust_rlhf_jax.io import Pairs

from .rail_choices import rail_pairs

BUNDLED: dict[str, Callable[[], Pairs]] = {"rail": rail_pairs}
