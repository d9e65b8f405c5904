"""Two models that are not the audit's, trained before and after cleaning: boosted trees and a small network."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float
from sklearn.ensemble import HistGradientBoostingClassifier

STEPS, WIDTH = 150, 32

Rows = Float[np.ndarray, "N p"]
Chances = Callable[[Rows, Rows], Float[np.ndarray, " M"]]


def boosted(chosen: Rows, rejected: Rows, room: int) -> Chances:
    """Trees on differences, each pair given both ways round; the chance is the mean of both ways."""
    x = np.concatenate([chosen - rejected, rejected - chosen])
    y = np.repeat([1, 0], len(chosen))
    trees = HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=15, min_samples_leaf=40, random_state=0
    ).fit(x, y)

    def chances(first: Rows, second: Rows):
        there, back = (trees.predict_proba(x)[:, 1] for x in (first - second, second - first))
        return (there + 1 - back) / 2

    return chances


def network(chosen: Rows, rejected: Rows, room: int) -> Chances:
    """P(first) = σ(r(φ(first)) − r(φ(second))), r a network with one hidden layer, on standardised features.

    Rows up to `room` are filled up with weight 0, so that files of any size share one program.
    """
    both = np.concatenate([chosen, rejected])
    middle, scale = both.mean(axis=0), both.std(axis=0) + 1e-6
    filled = [np.zeros((room, chosen.shape[1]), np.float32) for _ in range(2)]
    for rows, side in zip(filled, (chosen, rejected), strict=True):
        rows[: len(side)] = (side - middle) / scale
    weights = (np.arange(room) < len(chosen)) / len(chosen)
    reward = _trained(jax.random.key(0), *filled, weights.astype(np.float32))

    def chances(first: Rows, second: Rows):
        gaps = _rewards(reward, (first - middle) / scale) - _rewards(reward, (second - middle) / scale)
        return np.asarray(jax.nn.sigmoid(gaps), float)

    return chances


MODELS = {"boosted trees": boosted, "small network": network}


def _rewards(reward, rows):
    return jax.vmap(reward)(jnp.asarray(rows, jnp.float32))


@eqx.filter_jit
def _trained(key, chosen, rejected, weights):
    reward = eqx.nn.MLP(chosen.shape[1], "scalar", WIDTH, depth=1, activation=jnp.tanh, key=key)
    arrays, fixed = eqx.partition(reward, eqx.is_inexact_array)
    optimiser = optax.adamw(1e-2, weight_decay=1e-2)

    def loss(arrays):
        model = eqx.combine(arrays, fixed)
        return jnp.sum(weights * jax.nn.softplus(_rewards(model, rejected) - _rewards(model, chosen)))

    def step(state, _):
        arrays, memory = state
        updates, memory = optimiser.update(jax.grad(loss)(arrays), memory, arrays)
        return (eqx.apply_updates(arrays, updates), memory), None

    (arrays, _), _ = jax.lax.scan(step, (arrays, optimiser.init(arrays)), None, STEPS)
    return eqx.combine(arrays, fixed)


def held_out(chances: Float[np.ndarray, " M"], labels: Float[np.ndarray, " M"]) -> tuple[float, float]:
    """(accuracy, log-loss) of the chances that the first side wins, labels ±1."""
    right = np.clip(np.where(labels > 0, chances, 1 - chances), 1e-6, 1)
    return float(np.mean((right > 0.5) + 0.5 * (right == 0.5))), float(-np.mean(np.log(right)))
