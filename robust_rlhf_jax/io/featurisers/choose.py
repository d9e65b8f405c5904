"""Featurisers by name, or by the path of a local model."""

from pathlib import Path

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
    if Path(choice).is_dir():
        return LocalModel(choice)
    raise ValueError(
        f"featuriser {choice!r} is neither {', '.join(FEATURISERS)} nor the folder of a local model"
    )
