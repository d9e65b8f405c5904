"""Features of texts: one protocol, several ways."""

from .base import Featuriser
from .choose import FEATURISERS, make_featuriser
from .format_features import FORMAT_NAMES, FormatFeatures
from .hashed import HashedNgrams
from .local_model import LocalModel

__all__ = [
    "FEATURISERS",
    "FORMAT_NAMES",
    "Featuriser",
    "FormatFeatures",
    "HashedNgrams",
    "LocalModel",
    "make_featuriser",
]
