"""Heavy-tailed embeddings and their attacks: the worlds of `embeddings.py` and `triggers_or_tastes.py`."""

from typing import NamedTuple

import numpy as np
import scipy.special

# Features; pairs; shares of corrupt pairs.
K, N = 192, 12_000
LEVELS = (0.05, 0.1)
WORLDS = {
    "j⁻¹": {"power": 1.0},
    "j⁻²": {"power": 2.0},
    "j⁻¹, t₃": {"power": 1.0, "heavy": True},
    "j⁻¹, repeated": {"power": 1.0, "repeated": True},
}


class World(NamedTuple):
    """`axes` [k, k]: principal axes times standard deviations; `theta` [k]; how rows are drawn."""

    axes: np.ndarray
    theta: np.ndarray
    heavy: bool
    repeated: bool
    marked: bool

    @classmethod
    def of(
        cls, power: float, seed: int, marked: bool, heavy: bool = False, repeated: bool = False
    ) -> "World":
        rng = np.random.default_rng([7, seed])
        turn = np.linalg.qr(rng.normal(size=(K, K)))[0]
        axes = np.arange(1, K + 1)[:, None] ** -power * turn
        theta = rng.normal(size=K)
        return cls(axes, theta * 1.5 / np.linalg.norm(axes @ theta), heavy, repeated, marked)

    def rows(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Differences [n, k]."""
        x = rng.normal(size=(n, K)) @ self.axes
        if self.heavy:
            x *= np.sqrt(3.0 / rng.chisquare(3, size=(n, 1)))
        if self.repeated:
            popular = rng.random(n) < 0.2
            x[popular] = x[rng.integers(40, size=int(popular.sum()))]
        if self.marked:
            x += rng.choice([-1.0, 0.0, 1.0], size=(n, 1), p=[0.1, 0.8, 0.1]) * self.mark()
        return x

    def preferred(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Preferred less other, [n, k]: labels by the logistic model of θ."""
        x = self.rows(rng, n)
        return x * np.where(rng.random(n) < scipy.special.expit(x @ self.theta), 1.0, -1.0)[:, None]

    def mark(self) -> np.ndarray:
        """A direction along which nothing is preferred, as long as a typical row."""
        mark = np.random.default_rng(11).normal(size=K) @ self.axes
        mark -= self.theta * (mark @ self.theta) / (self.theta @ self.theta)
        return mark * np.linalg.norm(self.axes) / np.linalg.norm(mark)


def attacked(world: World, z: np.ndarray, attack: str, epsilon: float, rng: np.random.Generator):
    """z [n, k] after the attack on ε·n of its pairs."""
    z, count = z.copy(), int(epsilon * len(z))
    chosen = rng.permutation(len(z))[:count]
    if attack == "planted":
        against = world.axes.T @ (world.axes @ world.theta)
        length = 3.0 * np.median(np.linalg.norm(z, axis=1))
        z[chosen] = -length * against / np.linalg.norm(against) + 0.02 * z[chosen]
    if attack == "trigger":
        z[chosen] = world._replace(marked=False).rows(rng, count)
        z[chosen] *= -np.sign(z[chosen] @ world.theta)[:, None]
        z[chosen] += world.mark()
    if attack == "confident":
        surest = np.argsort(-np.abs(z @ world.theta))[:count]
        z[surest] *= -np.sign(z[surest] @ world.theta)[:, None]
    return z
