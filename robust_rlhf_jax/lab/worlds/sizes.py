"""Sizes of the worlds of the coverage presets, which several files share."""

from typing import Any

# Sparse features and six steps: labels carry .45 bits, so that a tenth of them can lie and not all be lost.
SURE: dict[str, Any] = {"n_states": 36, "n_actions": 4, "dim": 6, "horizon": 6, "feature_concentration": 0.2}
SMALL: dict[str, Any] = {"n_states": 8, "n_actions": 3, "dim": 3, "horizon": 2, "feature_concentration": 0.2}
