"""The packages of TRL, imported where they are needed."""

import importlib
from typing import Any


def needed(package: str) -> Any:
    """The package `torch`, `transformers` or `trl`.

    **Raises:** ImportError in one sentence without it.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            f"heads for TRL need packages ({error}): pip install 'robust-rlhf-jax[embed,trl]'"
        ) from None
