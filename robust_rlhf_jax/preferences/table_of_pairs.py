"""`with_table`: pairs of options get the table of states on which a policy is planned."""

import dataclasses

from robust_rlhf_jax.io import Pairs, check_pairs
from robust_rlhf_jax.io.pairs import given_names

from .data import PreferenceData
from .options import preferences_from_features
from .validation import check_decided, check_preferences


def with_table(data: PreferenceData | Pairs) -> PreferenceData:
    """Checked preference data that a policy can be planned on: pairs of options get their table here.

    **Raises:** ValueError as `check_preferences`, and for ties and pairs of weight 0.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import Pairs
    >>> from robust_rlhf_jax.preferences import with_table
    >>> data = with_table(Pairs(np.array([[3.0, 1.0], [0.0, 2.0]]), np.array([[1.0, 1.0], [1.0, 0.0]])))
    >>> data.state_features.shape, data.horizon
    ((4, 1, 2), 1)
    """
    if isinstance(data, Pairs):
        check_pairs(data)
        check_decided(data)
        table = preferences_from_features(data.chosen, data.rejected)
        return dataclasses.replace(table, names=given_names(data))
    check_preferences(data)
    return data
