"""Honest people who do not choose by a logistic model of the features: `CHOOSERS` by name.

Each draws n pairs: the differences `x` [n, k] and whether the first option `wins` [n].
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit


class Drawn(NamedTuple):
    """`x` [n, k]: first option less second; `wins` [n]: whether the first is preferred."""

    x: np.ndarray
    wins: np.ndarray

    def preferred(self) -> np.ndarray:
        """Chosen less rejected, [n, k]."""
        return self.x * np.where(self.wins, 1.0, -1.0)[:, None]


def _logistic(rng: np.random.Generator, x: np.ndarray, utility: np.ndarray) -> Drawn:
    return Drawn(x, rng.random(len(x)) < expit(utility))


def _of_options(rng: np.random.Generator, options: np.ndarray, utility: np.ndarray) -> Drawn:
    """`options` [n, 2, k] with `utility` [n, 2]."""
    return _logistic(rng, options[:, 0] - options[:, 1], utility[:, 0] - utility[:, 1])


def two_tastes(rng: np.random.Generator, n: int) -> Drawn:
    """Three in ten have a taste that has nothing to do with the others'."""
    x, (one, other) = rng.standard_normal((n, 6)), rng.standard_normal((2, 6))
    return _logistic(rng, x, 2 * np.where(rng.random(n) < 0.3, x @ other, x @ one))


def logarithms(rng: np.random.Generator, n: int) -> Drawn:
    """The utility is linear in the logarithm of two attributes that spread over decades, as prices do."""
    amounts = np.exp(rng.standard_normal((n, 2, 2)))
    flags = rng.integers(0, 2, (n, 2, 2))
    utility = np.log(amounts) @ [-1.5, 1.0] + flags @ [0.5, -0.8]
    return _of_options(rng, np.concatenate([amounts, flags], axis=2), utility)


def one_reason(rng: np.random.Generator, n: int) -> Drawn:
    """A quarter look at the first feature alone, and never err."""
    x = rng.standard_normal((n, 5))
    found = _logistic(rng, x, x @ rng.standard_normal(5))
    return Drawn(x, np.where(rng.random(n) < 0.25, x[:, 0] > 0, found.wins))


def indifferent(rng: np.random.Generator, n: int) -> Drawn:
    """A difference of utility below 2 is not felt."""
    x = rng.standard_normal((n, 5))
    utility = 3 * x @ rng.standard_normal(5)
    return _logistic(rng, x, np.where(np.abs(utility) < 2, 0.0, utility))


def heavy_noise(rng: np.random.Generator, n: int) -> Drawn:
    """Cauchy noise: some choices are blunders however large the difference."""
    x = rng.standard_normal((n, 5))
    return Drawn(x, x @ rng.standard_normal(5) + 0.7 * rng.standard_cauchy(n) > 0)


def own_scale(rng: np.random.Generator, n: int) -> Drawn:
    """Each choice has a log-normal temperature of its own."""
    x = rng.standard_normal((n, 5))
    return _logistic(rng, x, np.exp(1.2 * rng.standard_normal(n)) * (x @ rng.standard_normal(5)))


def interactions(rng: np.random.Generator, n: int) -> Drawn:
    """Products and squares of features count, which the reward does not have."""
    options = rng.standard_normal((n, 2, 5))
    more = 1.5 * options[..., 0] * options[..., 1] + options[..., 2] ** 2
    return _of_options(rng, options, options @ rng.standard_normal(5) + more)


def topics(rng: np.random.Generator, n: int) -> Drawn:
    """What is liked depends on the topic, one of four, which is not among 16 features."""
    x, topic, taste = rng.standard_normal((n, 16)), rng.integers(0, 4, n), rng.standard_normal((4, 16)) / 2
    return _logistic(rng, x, np.einsum("nk,nk->n", x, taste[topic] + taste[0]))


def uneven_topics(rng: np.random.Generator, n: int) -> Drawn:
    """As `topics`, and the options of some topics differ much more than those of others."""
    topic, taste = rng.integers(0, 5, n), rng.standard_normal((5, 4))
    x = rng.standard_normal((n, 4)) * np.exp(0.8 * rng.standard_normal(5))[topic][:, None]
    return _logistic(rng, x, np.einsum("nk,nk->n", x, 0.6 * taste[topic] + taste[0]))


def tags(rng: np.random.Generator, n: int) -> Drawn:
    """Thirty tags of which most are rare."""
    options = (rng.random((n, 2, 30)) < 0.5 * rng.random(30) ** 2).astype(float)
    return _of_options(rng, options, options @ (1.2 * rng.standard_normal(30)))


def rounds(rng: np.random.Generator, n: int) -> Drawn:
    """One-hot models, some voted on much more than others, of which A may beat B, B C, and C A."""
    quality, popularity = rng.standard_normal(25), rng.dirichlet(np.full(25, 0.5))
    beats = 0.7 * rng.standard_normal((25, 25))
    one, other = rng.choice(25, n, p=popularity), rng.choice(25, n, p=popularity)
    other = np.where(one == other, (other + 1) % 25, other)
    utility = quality[one] - quality[other] + (beats - beats.T)[one, other]
    return _logistic(rng, np.eye(25)[one] - np.eye(25)[other], utility)


def embeddings(rng: np.random.Generator, n: int) -> Drawn:
    """Student t features with a falling spectrum in 64 dimensions, and a utility that is not linear in them."""
    axes = np.linalg.qr(rng.standard_normal((64, 64)))[0] * np.arange(1, 65) ** -0.7
    x = rng.standard_t(4, size=(n, 64)) @ axes.T
    waves = 0.8 * np.sin(3 * x @ rng.standard_normal(64))
    return _logistic(rng, x, 3 * x @ rng.standard_normal(64) + waves)


def lengths(rng: np.random.Generator, n: int) -> Drawn:
    """Half prefer the longer text, and the feature is the length, not its logarithm."""
    words, more = np.exp(4.5 + 0.8 * rng.standard_normal((n, 2))), rng.standard_normal((n, 2, 4))
    utility = 0.6 * np.log(words) * (rng.random((n, 1)) < 0.5) + 0.8 * more @ rng.standard_normal(4)
    return _of_options(rng, np.concatenate([words[..., None] / 100, more], axis=2), utility)


def ratings(rng: np.random.Generator, n: int) -> Drawn:
    """Options that recur are rated in whole numbers, and a pair is two whose ratings differ."""
    features = rng.standard_normal((max(30, n // 20), 6))
    one = rng.integers(0, len(features), 4 * n)
    both = np.column_stack([one, one + rng.integers(1, len(features), 4 * n)]) % len(features)
    given = np.rint((features @ rng.standard_normal(6))[both] + rng.standard_normal((4 * n, 2)))
    at = np.flatnonzero(given[:, 0] != given[:, 1])[:n]
    x = features[both[at, 0]] - features[both[at, 1]]
    return Drawn(x, given[at, 0] > given[at, 1])


def careless(rng: np.random.Generator, n: int) -> Drawn:
    """Three in a hundred choices toss a coin, and the others never err."""
    x = rng.standard_normal((n, 5))
    return Drawn(x, np.where(rng.random(n) < 0.03, rng.random(n) < 0.5, x @ rng.standard_normal(5) > 0))


def rare_attributes(rng: np.random.Generator, n: int) -> Drawn:
    """Two features are 0 in 98 of 100 pairs and large in the others, where more of them counts less and less."""
    x, rare = rng.standard_normal((n, 5)), (rng.random((n, 2)) < 0.02) * 20 * rng.standard_normal((n, 2))
    utility = x @ rng.standard_normal(5) + 5 * np.tanh(rare @ [rng.standard_normal(), 0.3] / 5)
    return _logistic(rng, np.concatenate([x, rare], axis=1), utility)


def decoys(rng: np.random.Generator, n: int) -> Drawn:
    """One of three options is chosen, and makes two pairs; one that is better than a decoy in all features gains 4."""
    sets = (n + 1) // 2
    theta = rng.standard_normal(4)
    theta /= np.linalg.norm(theta)
    options = rng.standard_normal((sets, 3, 4))
    options[:, 2] = options[:, 0] - np.sign(theta) * np.abs(0.5 * rng.standard_normal((sets, 4)))
    utility = 1.5 * options @ theta + [4.0, 0.0, 0.0]
    best = np.argmax(utility + rng.gumbel(size=utility.shape), axis=1)
    others = np.array([[1, 2], [0, 2], [0, 1]])[best]
    each = np.arange(sets)
    preferred = (options[each, best][:, None] - options[each[:, None], others]).reshape(-1, 4)[:n]
    wins = rng.random(n) < 0.5
    return Drawn(np.where(wins[:, None], preferred, -preferred), wins)


def far_guesses(rng: np.random.Generator, n: int) -> Drawn:
    """Options that differ too much to be compared are guessed."""
    options, theta = rng.standard_normal((n, 2, 4)), rng.standard_normal(4)
    utility = 4 * options @ theta / np.linalg.norm(theta)
    far = np.linalg.norm(options[:, 0] - options[:, 1], axis=1, keepdims=True) > 3.6
    return _of_options(rng, options, np.where(far, 0.0, utility))


CHOOSERS: dict[str, Callable[[np.random.Generator, int], Drawn]] = {
    chooser.__name__: chooser
    for chooser in (
        two_tastes, logarithms, one_reason, indifferent, heavy_noise, own_scale, interactions, topics, uneven_topics,
        tags, rounds, embeddings, lengths, ratings, careless, rare_attributes,
        decoys, far_guesses,
    )
}  # fmt: skip
