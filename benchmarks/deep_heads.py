"""Does refitting weights between epochs help a deep reward model? `python benchmarks/deep_heads.py [--quick]`.

Pairs of 8 normal numbers on each side, preferred as a network of 16 units says (margins of standard deviation 2). Of
4,000 pairs none, a twentieth or a tenth is corrupted: labels flipped at random, the surest labels flipped, or pairs
planted far out, the worst of many far inputs chosen before the best. A network of 64 and 32 units is trained by Adam for
15 epochs

- plain: on all pairs;
- refitted: the same, weighed from the second epoch on by `RobustHead`;
- clean: on the honest pairs alone, which nobody knows.

Prints Markdown: accuracy and log-loss on 10,000 honest pairs that nobody trained on, means over the seeds; beside it how
many of the corrupted and of the honest pairs have a weight below ½ in the end.
"""

import argparse
import time
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from robust_rlhf_jax.heads import RobustHead
from robust_rlhf_jax.outputs import environment

DIM, HIDDEN, DEEP = 8, 64, 32
PAIRS, FRESH, BATCH, EPOCHS = 4_000, 10_000, 100, 15
KINDS = ("flips", "confident flips", "planted far")
SHARES = (0.05, 0.1)
WAYS = ("plain", "refitted", "clean")


class World:
    """A reward of 16 tanh units, scaled so that margins of pairs have standard deviation 2."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.inner = self.rng.normal(size=(DIM, 16)) * 1.5 / np.sqrt(DIM)
        self.outer = self.rng.normal(size=16)
        first, second = self.rng.normal(size=(2, 20_000, DIM))
        self.outer *= 2.0 / (self.reward(first) - self.reward(second)).std()

    def reward(self, inputs: np.ndarray) -> np.ndarray:
        return np.tanh(inputs @ self.inner) @ self.outer

    def pairs(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Honest (chosen, rejected) [n, DIM]."""
        first, second = self.rng.normal(size=(2, n, DIM))
        wins = self.reward(first) - self.reward(second) + self.rng.logistic(size=n) > 0
        return np.where(wins[:, None], first, second), np.where(wins[:, None], second, first)

    def corrupted(self, chosen, rejected, kind: str, share: float):
        """(chosen, rejected, which are corrupt [n])."""
        n, bad = len(chosen), np.zeros(len(chosen), bool)
        margins = np.abs(self.reward(chosen) - self.reward(rejected))
        order = np.argsort(-margins) if kind == "confident flips" else self.rng.permutation(n)
        bad[order[: round(share * n)]] = True
        chosen, rejected = (side.copy() for side in (chosen, rejected))
        if kind == "planted far":
            chosen[bad], rejected[bad] = self.planted(int(bad.sum()))
        elif kind == "confident flips":
            wrong = bad & (self.reward(chosen) > self.reward(rejected))
            chosen[wrong], rejected[wrong] = rejected[wrong], chosen[wrong]
        else:
            chosen[bad], rejected[bad] = rejected[bad], chosen[bad]
        return chosen, rejected, bad

    def planted(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The worst of 2,000 inputs three times as far out as others chosen, the best rejected, each moved a little."""
        far = 3.0 * self.rng.normal(size=(2_000, DIM))
        order = np.argsort(self.reward(far))
        worst, best = far[order[0]], far[order[-1]]
        return tuple(side + 0.1 * self.rng.normal(size=(n, DIM)) for side in (worst, best))


class Network(eqx.Module):
    """A body of two layers and a linear head."""

    body: eqx.nn.MLP
    head: eqx.nn.Linear

    def __init__(self, key):
        inner, outer = jax.random.split(key)
        self.body = eqx.nn.MLP(DIM, DEEP, HIDDEN, 1, jax.nn.relu, jax.nn.relu, key=inner)
        self.head = eqx.nn.Linear(DEEP, 1, use_bias=False, key=outer)

    def __call__(self, x):
        return self.head(self.body(x))[0]


OPTIMISER = optax.adam(3e-3)
embed = eqx.filter_jit(lambda network, inputs: jax.vmap(network.body)(inputs))


def loss_of(network, chosen, rejected, weights):
    margins = jax.vmap(network)(chosen) - jax.vmap(network)(rejected)
    return jnp.sum(weights * jax.nn.softplus(-margins)) / jnp.sum(weights)


@eqx.filter_jit
def epoch_of(network, state, chosen, rejected, weights):
    """An epoch of batches [batches, BATCH, …]."""
    arrays, rest = eqx.partition(network, eqx.is_array)

    def step(carry, batch):
        arrays, state = carry
        grads = jax.grad(lambda a: loss_of(eqx.combine(a, rest), *batch))(arrays)
        updates, state = OPTIMISER.update(grads, state)
        return (optax.apply_updates(arrays, updates), state), None

    (arrays, state), _ = jax.lax.scan(step, (arrays, state), (chosen, rejected, weights))
    return eqx.combine(arrays, rest), state


class Score(NamedTuple):
    accuracy: float
    log_loss: float


def score(network, chosen, rejected) -> Score:
    margins = np.asarray(jax.vmap(network)(jnp.asarray(chosen)) - jax.vmap(network)(jnp.asarray(rejected)))
    return Score(float(np.mean(margins > 0)), float(np.mean(np.logaddexp(0.0, -margins))))


def trained(chosen, rejected, seed: int, head: RobustHead | None, weights, fresh, trace=None):
    """The network after all epochs; weighed by `weights`, and by those of `head` where there is one."""
    network = Network(jax.random.key(seed))
    state = OPTIMISER.init(eqx.filter(network, eqx.is_array))
    rng = np.random.default_rng(seed)
    chosen, rejected = (np.asarray(side, np.float32) for side in (chosen, rejected))
    for _ in range(EPOCHS):
        order = rng.permutation(len(chosen)).reshape(-1, BATCH)
        network, state = epoch_of(network, state, chosen[order], rejected[order], weights[order])
        if head is not None:
            weights = head.after_epoch(lambda inputs, network=network: embed(network, inputs))
        if trace is not None:
            trace.append((score(network, *fresh), None if head is None else head.weights))
    return network
