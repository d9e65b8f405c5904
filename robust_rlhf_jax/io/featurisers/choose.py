"""Featurisers by name, or by the path of a local model."""

import os

from robust_rlhf_jax.io.bad_cells import shown

from .base import Featuriser
from .format_features import FormatFeatures
from .hashed import HashedNgrams
from .local_model import LocalModel

FEATURISERS = {"hashed": HashedNgrams, "format": FormatFeatures}


def make_featuriser(choice: str | Featuriser) -> Featuriser:
    """A new featuriser of a name in `FEATURISERS`, a `LocalModel` of a folder, or the featuriser that is given.

    **Raises:** ValueError for a name that is neither known nor a folder.
    """
    if not isinstance(choice, str):
        return choice
    if choice in FEATURISERS:
        return FEATURISERS[choice]()
    # False, where Path.is_dir raises, for a name that is too long.
    if os.path.isdir(choice):
        return LocalModel(choice)
    raise ValueError(
        f"featuriser {shown(choice)} is neither {', '.join(FEATURISERS)} nor a folder that exists: give one of these "
        "names, or the folder of a model that lies on this machine."
    )
