"""Does refitting weights between epochs help a deep reward model? `python benchmarks/deep_heads.py [--quick]`.

Pairs of 8 normal numbers on each side, preferred as a network of 16 units says (margins of standard deviation 2). Of
2,000 pairs none, a twentieth or a tenth is corrupted: labels flipped at random, the surest labels flipped, or pairs
planted far out, one of the worst fiftieth of inputs half as far out again chosen before one of the best. A network of
64 and 32 units is trained by Adam for 8 epochs

- plain: on all pairs;
- last: the same, weighed from the second epoch on by `RobustHead(forgive=True)`, the weights of the last refit;
- kept: by `RobustHead()`, where what a refit has left out stays out;
- honest: on the honest pairs alone, which nobody knows.

Prints Markdown: accuracy and log-loss on 10,000 honest pairs that nobody trained on, means over the seeds; then what
share of the corrupted and of the honest pairs has a weight below ½ by refits on the untrained network, after the first
epoch, after the last, and after the last of plain training.
"""

import argparse
import sys
import time
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from robust_rlhf_jax.heads import RobustHead, refit_head
from robust_rlhf_jax.outputs import environment

DIM, HIDDEN, DEEP = 8, 64, 32
PAIRS, FRESH, BATCH, EPOCHS = 2_000, 10_000, 100, 8
FILES = [("none", 0.0)] + [
    (kind, share) for kind in ("random flips", "surest flipped", "planted far") for share in (0.05, 0.1)
]
WAYS = ("plain", "last", "kept", "honest")
MOMENTS = ("untrained", "first epoch", "last epoch", "plain, last epoch")


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
        order = np.argsort(-margins) if kind == "surest flipped" else self.rng.permutation(n)
        bad[order[: round(share * n)]] = True
        chosen, rejected = (side.copy() for side in (chosen, rejected))
        if kind == "planted far":
            chosen[bad], rejected[bad] = self.planted(int(bad.sum()))
        elif kind == "surest flipped":
            wrong = bad & (self.reward(chosen) > self.reward(rejected))
            chosen[wrong], rejected[wrong] = rejected[wrong], chosen[wrong]
        else:
            chosen[bad], rejected[bad] = rejected[bad], chosen[bad]
        return chosen, rejected, bad

    def planted(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The n worst of 50n inputs half as far out again as others, chosen before the n best."""
        far = 1.5 * self.rng.normal(size=(50 * n, DIM))
        order = np.argsort(self.reward(far))
        return far[order[:n]], far[order[-n:]]


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


def of(network):
    """The embeddings of a network: what its last layer is given."""
    return lambda inputs: embed(network, inputs)


class Trained(NamedTuple):
    """A network, and the weights that it was given after the first epoch."""

    network: Network
    first: np.ndarray


def trained(chosen, rejected, seed: int, weights, head: RobustHead | None = None) -> Trained:
    """A network after all epochs; weighed by `weights`, and from the second on by those of `head`, if there is one."""
    network = Network(jax.random.key(seed))
    state, rng, first = (
        OPTIMISER.init(eqx.filter(network, eqx.is_array)),
        np.random.default_rng(seed),
        weights,
    )
    for epoch in range(EPOCHS):
        order = rng.permutation(len(chosen)).reshape(-1, BATCH)
        network, state = epoch_of(network, state, chosen[order], rejected[order], weights[order])
        weights = weights if head is None else head.after_epoch(of(network))
        first = weights if epoch == 0 else first
    return Trained(network, first)


class Row(NamedTuple):
    """Scores by way, and shares (of corrupted, of honest pairs) left out, by moment."""

    scores: dict[str, Score]
    out: dict[str, tuple[float, float]]


def row_of(kind: str, share: float, seed: int) -> Row:
    """One file and one seed, trained in every way."""
    world = World(seed)
    fresh, (chosen, rejected) = world.pairs(FRESH), world.pairs(PAIRS)
    bad = np.zeros(PAIRS, bool)
    if share:
        chosen, rejected, bad = world.corrupted(chosen, rejected, kind, share)
    sides = [np.asarray(side, np.float32) for side in (chosen, rejected)]
    ones = np.ones(PAIRS, np.float32)
    heads = {"last": RobustHead(*sides, forgive=True, batch=PAIRS), "kept": RobustHead(*sides, batch=PAIRS)}
    found = {
        way: trained(*sides, seed, np.where(bad, 0, ones) if way == "honest" else ones, heads.get(way))
        for way in WAYS
    }
    weights = {
        "untrained": refit_head(of(Network(jax.random.key(seed))), *sides, batch=PAIRS).weights,
        "first epoch": found["kept"].first,
        "last epoch": heads["kept"].weights,
        "plain, last epoch": refit_head(of(found["plain"].network), *sides, batch=PAIRS).weights,
    }
    out = {
        when: (float(np.mean(w[bad] < 0.5)) if share else np.nan, float(np.mean(w[~bad] < 0.5)))
        for when, w in weights.items()
    }
    return Row({way: score(run.network, *fresh) for way, run in found.items()}, out)


def means(rows: list[Row]) -> tuple[list[str], list[str]]:
    """Cells of both tables."""
    scores = [
        f"{np.mean([getattr(row.scores[way], field) for row in rows]):.3f}"
        for field in Score._fields
        for way in WAYS
    ]
    shares = [100 * np.mean([row.out[when] for row in rows], axis=0) for when in MOMENTS]
    return scores, [
        f"{honest:.1f}" if np.isnan(bad) else f"{bad:.0f}, {honest:.1f}" for bad, honest in shares
    ]


def show(title: list[str], rows: list[list[str]]) -> None:
    print("\n| " + " | ".join(title) + " |\n|" + "---|" * len(title))
    print("\n".join("| " + " | ".join(row) + " |" for row in rows), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one seed of two files")
    given, begun = parser.parse_args(), time.perf_counter()
    scores, found = [], []
    for kind, share in FILES[::4] if given.quick else FILES:
        rows = [row_of(kind, share, seed) for seed in range(1 if given.quick else given.seeds)]
        name = [kind, f"{100 * share:.0f} %"]
        cells = means(rows)
        scores.append(name + cells[0])
        found.append(name + cells[1])
        print(
            *name, *cells[0], *cells[1], f"{time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True
        )
    show(
        ["corruption", "share", *(f"{what} {way}" for what in ("accuracy", "log-loss") for way in WAYS)],
        scores,
    )
    show(["corruption", "share", *MOMENTS], found)
    print(f"\n{time.perf_counter() - begun:.0f} s; {environment()}")


if __name__ == "__main__":
    main()
