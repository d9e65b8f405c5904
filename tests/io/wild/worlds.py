"""Invented pairs, votes and rankings: what the files of this folder are written from."""

import dataclasses

import numpy as np

WORDS = (
    "kettle", "garden", "window", "copper", "ladder", "river", "basket", "lantern", "pebble", "saddle", "thread",
    "orchard", "bridge", "candle", "meadow", "anchor", "barrel", "harbour", "compass", "quilt", "timber", "fiddle",
    "warms", "turns", "keeps", "slides", "mends", "holds", "slowly", "gently", "twice", "seldom", "often", "evenly",
    "naïve", "café",
)  # fmt: skip
RATERS = ("w-amber", "w-birch", "w-cedar", "w-delta")


@dataclasses.dataclass(frozen=True)
class Item:
    """A prompt with two answers (texts, or tuples of numbers) and `votes`: (rater, how much `a` is the better one)."""

    prompt: str
    a: object
    b: object
    votes: tuple[tuple[str, float], ...]

    @property
    def vote(self) -> float:
        """The only vote."""
        ((_, value),) = self.votes
        return value

    @property
    def chosen(self):
        return self.a if self.vote >= 0 else self.b

    @property
    def rejected(self):
        return self.b if self.vote >= 0 else self.a


@dataclasses.dataclass(frozen=True)
class Ranking:
    """A prompt with k answers and a score for each, all different: more is better."""

    prompt: str
    answers: tuple[str, ...]
    scores: tuple[int, ...]


def _sentence(rng: np.random.Generator, number: int) -> str:
    words = rng.choice(WORDS, int(rng.integers(5, 12)))
    middle = rng.choice([" ", ", ", "; ", '. "Then" ', "\n"], p=[0.5, 0.2, 0.1, 0.1, 0.1])
    half = len(words) // 2
    return f"{' '.join(words[:half]).capitalize()}{middle}{' '.join(words[half:])} {number}."


def _prompt(rng: np.random.Generator, number: int) -> str:
    first, second = rng.choice(WORDS, 2)
    return f"What does the {first} do for the {second} in case {number}?"


def pairs(
    rng: np.random.Generator,
    n: int = 24,
    votes: int = 1,
    ties: bool = False,
    strengths: tuple[float, ...] = (1.0,),
) -> list[Item]:
    """`n` items with `votes` votes each; some of them ties; raters that disagree now and then."""
    items = []
    for i in range(n):
        better = 1.0 if (i % 5) in (0, 1, 3) else -1.0
        raters = [RATERS[(i + j) % len(RATERS)] for j in range(votes)]
        values = [better * (-1.0 if j and (i + j) % 4 == 0 else 1.0) for j in range(votes)]
        values = [value * strengths[(i + j) % len(strengths)] for j, value in enumerate(values)]
        values = [0.0 if ties and (i + 2 * j) % 6 == 4 else value for j, value in enumerate(values)]
        first, second = _sentence(rng, 2 * i), _sentence(rng, 2 * i + 1)
        items.append(Item(_prompt(rng, i), first, second, tuple(zip(raters, values, strict=True))))
    return items


def vectors(rng: np.random.Generator, n: int = 24, width: int = 5) -> list[Item]:
    """Items whose answers are tuples of `width` float32 numbers."""
    sides = rng.normal(size=(2, n, width)).astype(np.float32).round(3)
    return [
        Item(f"case {i}", tuple(map(float, a)), tuple(map(float, b)), (("w-amber", 1.0),))
        for i, (a, b) in enumerate(zip(*sides, strict=True))
    ]


def voted_vectors(rng: np.random.Generator, **sizes: int) -> list[Item]:
    """Of `vectors` every other pair was won by the second side."""
    return [
        dataclasses.replace(item, votes=(("w-amber", 1.0 - 2.0 * (i % 2)),))
        for i, item in enumerate(vectors(rng, **sizes))
    ]


def rankings(rng: np.random.Generator, n: int = 12, k: int = 4) -> list[Ranking]:
    """`n` rankings of `k` answers."""
    return [
        Ranking(
            _prompt(rng, i),
            tuple(_sentence(rng, k * i + j) for j in range(k)),
            tuple(int(score) for score in 1 + rng.permutation(k)),
        )
        for i in range(n)
    ]


def swapped(items: list) -> list:
    """The answers change places, what was said of the places stays."""
    return [
        dataclasses.replace(item, a=item.b, b=item.a)
        if isinstance(item, Item)
        else dataclasses.replace(item, answers=item.answers[::-1])
        for item in items
    ]


def negated(items: list) -> list:
    """The places stay, what was said of them is turned round."""
    turned = []
    for item in items:
        if isinstance(item, Item):
            turned.append(dataclasses.replace(item, votes=tuple((who, -value) for who, value in item.votes)))
        else:
            most = max(item.scores) + min(item.scores)
            turned.append(dataclasses.replace(item, scores=tuple(most - score for score in item.scores)))
    return turned
