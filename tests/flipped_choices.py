"""The bundled rail choices with the labels flipped of which a clean fit is surest: the attack that decides a fit."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax import PreferenceData, fit_reward, load_rail_choices


def surest_flipped(share: float) -> tuple[PreferenceData, np.ndarray]:
    """(the choices, mask of the ⌊share·N⌋ flipped ones)."""
    data = load_rail_choices()
    agreement = np.asarray(data.labels * fit_reward(data, 0.0).reward(data.differences()))
    corrupt = np.zeros(data.n_pairs, bool)
    corrupt[np.argsort(-agreement)[: int(share * data.n_pairs)]] = True
    return dataclasses.replace(data, labels=jnp.where(corrupt, -data.labels, data.labels)), corrupt
