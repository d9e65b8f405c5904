"""Could anybody find the bad raters? What an oracle finds beside `rate_raters`, and how many answers it would need.

    python benchmarks/raters_limit.py [--sets rail ...] [--kinds random contrary] [--seeds 1] [--quick]

Folds, sets, seeds and bots are those of `raters.py`. The oracle knows the share of bad raters, the law of the bots, and
a law of honest labels that is fitted to the clean labels of all raters, also of those who are replaced: one θ for all
("one taste"), or t_k ~ N(θ, Σ) ("own tastes"), whose likelihood is integrated by importance sampling. It ranks raters
by log P(labels | bot) − log P(labels | honest) and calls bad those with P(bad) > ½. The best F1 is that of the best
threshold, where each rater counts once as a bot and once as themselves, weighed by the share: the mean over all choices
of who is replaced. If the law is right, no rule that looks at one rater at a time finds more (Neyman and Pearson 1933),
and where the best F1 is below .9, precision and recall are not both .9. Raters with 15 pairs have a row of their own
where some have as many and some do not.

The second table: the least number of answers a rater, to within 5 %, with which some threshold has precision and recall
of .9, a tenth of the raters bad. "One taste": clean pairs of all people drawn with replacement into long raters. "Own
tastes": a parametric bootstrap, tastes from N(θ, Σ), differences drawn with replacement, labels from both. Prints
tables in Markdown.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from pair_sets import CHOICES
from rater_files import JUDGED, WORLDS, caught, divided, named_bad, rates_of, replaced
from studies import LEVELS, SHARED, short

from robust_rlhf_jax import Pairs
from robust_rlhf_jax.lab.attacks.rater_bots import BOTS, Rated
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.raters import rate_raters
from robust_rlhf_jax.rewards import plain_fit
from robust_rlhf_jax.rewards.coordinates import unit_free

# Points of importance sampling of a likelihood, and in each round of the fit of Σ; numbers held at once.
POINTS, FITTED, AT_ONCE = 2000, 400, 2**22
# Rounds of EM at most, nats that ten of them must gain for more, and steps of the search for each maximum.
ROUNDS, ENOUGH, STEPS = 200, 1.0, 12
# Σ begins as this share of ‖θ‖²; a tenth of it counts as seen by as many raters as there are axes and two more.
FIRST_SPREAD, PRIOR_SPREAD = 0.25, 0.025
# Long raters that are drawn, their answers at most, the points of their likelihood; what must be reached, and at which
# share of bad raters.
LONG, MOST, LONG_POINTS, WANTED, SHARE = 2000, 256, 256, 0.9, 0.1


class Law(NamedTuple):
    """Tastes N(`mean`, `root` `root`ᵀ) of honest raters."""

    mean: Float[np.ndarray, " r"]
    root: Float[np.ndarray, "r r"]


class Seen(NamedTuple):
    """Log-likelihood [K] of each rater's labels, and E[u], E[uuᵀ] of their taste mean + root·u given those."""

    evidence: Float[np.ndarray, " K"]
    first: Float[np.ndarray, "K r"]
    second: Float[np.ndarray, "K r r"]


def by_rater(z: Float[np.ndarray, "N r"], of: Int[np.ndarray, " N"]):
    """(z of each rater [K, n, r], which of them are pairs [K, n]), zeros behind the last."""
    counts = np.bincount(of)
    order = np.argsort(of, kind="stable")
    within = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    padded, there = (
        np.zeros((len(counts), counts.max(), z.shape[1])),
        np.zeros((len(counts), counts.max()), bool),
    )
    padded[of[order], within], there[of[order], within] = z[order], True
    return padded, there


def look(
    z: Float[np.ndarray, "K n r"], there: Bool[np.ndarray, "K n"], law: Law, points: int, moments=False
) -> Seen:
    """∫ Π_i σ(tᵀz_i) N(t; mean, Σ) dt of each rater by importance sampling, seed 0.

    Half of the points are from the prior and half from the normal density that fits the posterior at its maximum; each
    is weighed by their mixture (Hesterberg 1995), so that no weight exceeds twice the likelihood.
    """
    k, n, r = z.shape
    block = max(1, AT_ONCE // (points * (n + r)))
    rng = np.random.default_rng(0)
    parts = [
        _look(rng, z[i : i + block], there[i : i + block], law, points, moments) for i in range(0, k, block)
    ]
    return Seen(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _look(rng, z, there, law, points, moments):
    # Few pairs see few directions of a taste: the integral is over those alone.
    axes, y = np.linalg.qr(np.swapaxes(z @ law.root, 1, 2))
    crowd, y, unit = z @ law.mean, np.swapaxes(y, 1, 2), np.eye(y.shape[1])
    u = np.zeros((len(z), len(unit)))
    for _ in range(STEPS):  # the bound of Jaakkola and Jordan 2000
        margins = crowd + (y @ u[..., None])[..., 0]
        half = np.abs(margins) / 2
        weight = np.where(half > 1e-6, np.tanh(half) / (4 * np.maximum(half, 1e-6)), 0.25)
        pull = np.sum(y * (0.5 - weight * crowd)[..., None], axis=1)
        u = np.linalg.solve(unit + np.swapaxes(y * weight[..., None], 1, 2) @ y, pull[..., None])[..., 0]
    spread = 1 / (2 + 2 * np.cosh(np.clip(crowd + (y @ u[..., None])[..., 0], -30, 30)))
    precision = unit + np.swapaxes(y * spread[..., None], 1, 2) @ y
    factor = np.linalg.cholesky(precision)
    # Points of their own for every rater: errors that all share would add up in Σ.
    at = rng.normal(size=(*u.shape, points))
    near = np.arange(points) >= points // 2
    at[..., near] = u[..., None] + np.linalg.solve(np.swapaxes(factor, 1, 2), at[..., near])
    prior = -0.5 * np.sum(at**2, axis=1)
    off = np.swapaxes(factor, 1, 2) @ (at - u[..., None])
    fitted = (
        -0.5 * np.sum(off**2, axis=1) + np.sum(np.log(np.diagonal(factor, axis1=1, axis2=2)), axis=1)[:, None]
    )
    likelihood = -np.sum(np.where(there[..., None], np.logaddexp(0, -(crowd[..., None] + y @ at)), 0), axis=1)
    log_weight = likelihood + prior - np.logaddexp(prior, fitted) + np.log(2)
    top = np.max(log_weight, axis=1, keepdims=True)
    weight = np.exp(log_weight - top)
    evidence = top[:, 0] + np.log(np.mean(weight, axis=1))
    if not moments:
        return evidence, u[:, :0], precision[:, :0]
    weight /= np.sum(weight, axis=1, keepdims=True)
    second = (at * weight[:, None]) @ np.swapaxes(at, 1, 2) - unit
    first = axes @ np.sum(at * weight[:, None], axis=2)[..., None]
    return evidence, first[..., 0], axes @ second @ np.swapaxes(axes, 1, 2) + np.eye(len(law.mean))


def fit_law(z, there, theta) -> Law:
    """θ and Σ that make the labels of all raters likeliest, by EM from the `theta` of all, under a weak prior of Σ."""
    r, seen, before = len(theta), len(theta) + 2, -np.inf
    size = theta @ theta / r
    law = Law(theta, np.sqrt(FIRST_SPREAD * size) * np.eye(r))
    for n in range(ROUNDS):
        found = look(z, there, law, FITTED, moments=True)
        if n % 10 == 0:
            now = np.sum(found.evidence)
            if now < before + ENOUGH:
                break
            before = now
        first = np.mean(found.first, axis=0)
        square = law.root @ (np.mean(found.second, axis=0) - np.outer(first, first)) @ law.root.T
        spread = (len(z) * square + seen * PRIOR_SPREAD * size * np.eye(r)) / (len(z) + seen)
        law = Law(law.mean + law.root @ first, np.linalg.cholesky(spread))
    return law


class Clean(NamedTuple):
    """Clean labels of one seed: `train`, `of` as in `raters.py`; `z` [N, r], the same without units; `theta`, `law`."""

    train: Float[np.ndarray, "N k"]
    of: Int[np.ndarray, " N"]
    z: Float[np.ndarray, "N r"]
    theta: Float[np.ndarray, " r"]
    law: Law

    def one_taste(self, z, of):
        """log P(labels) [K] of raters who all follow θ."""
        return -np.bincount(of, np.logaddexp(0, -z @ self.theta))

    def own_tastes(self, z, of):
        """log P(labels) [K] of raters with tastes of the law."""
        return look(*by_rater(z, of), self.law, POINTS).evidence


def clean_labels(name, shared, seed) -> Clean:
    train, of, _ = divided(name, shared, seed)
    x, labels = np.float32(train), np.ones(len(train), np.float32)
    pairs, theta = unit_free(x, labels), plain_fit(x, labels)[0]
    z, theta = np.asarray(pairs.rows, float), np.asarray(pairs.from_theta @ theta, float)
    return Clean(train, of, z, theta, fit_law(*by_rater(z, of), theta))


def turns_of(train, rated: Rated):
    """−1 where a bot turned the clean label, else 1."""
    return np.where(np.sum(train * rated.z[:, : train.shape[1]], axis=1) < 0, -1.0, 1.0)


def ratios(kind, honest, z, of, rated: Rated):
    """log P(labels | bot of this kind) − log P(labels | honest) of each rater; `honest(z, of)` gives the latter."""
    if kind == "random":
        bot = -np.log(2) * np.bincount(of)
    elif kind == "contrary":
        bot = honest(-z, of)
    else:
        follows = rated.chose_first if kind == "always first" else rated.chose_longer
        bot = np.where(np.bincount(of, follows < 0) > 0, -np.inf, 0.0)
    return bot - honest(z, of)


def best_f1(bots, honest, share):
    """The largest F1 over all thresholds of the ratio, where `share` of the raters are such bots, the others honest."""
    thresholds = np.unique(bots)
    right = share * (1 - np.searchsorted(np.sort(bots), thresholds) / len(bots))
    wrong = (1 - share) * (1 - np.searchsorted(np.sort(honest), thresholds) / len(honest))
    return np.max(2 * right / (right + wrong + share))


def everybody(kind, seed, clean: Clean):
    """Ratios [2 oracles, 2, K] of each rater as a bot and as themselves."""
    found = []
    for case in ((kind, 1.0), ("none", 0.0)):
        rated = replaced(clean.train, clean.of, *case, seed)
        z = clean.z * turns_of(clean.train, rated)[:, None]
        found.append(
            [ratios(kind, honest, z, clean.of, rated) for honest in (clean.one_taste, clean.own_tastes)]
        )
    return np.swapaxes(found, 0, 1)


def cell(kind, share, seed, clean: Clean):
    """Of each rater: bad or not, named by `rate_raters`, log-odds of being bad for either oracle."""
    rated = replaced(clean.train, clean.of, kind, share, seed)
    pairs = Pairs(np.float32(rated.z), np.zeros_like(rated.z, np.float32))
    table = rate_raters(pairs, clean.of, chose_first=rated.chose_first, chose_longer=rated.chose_longer)
    z = clean.z * turns_of(clean.train, rated)[:, None]
    prior = np.log(np.mean(rated.bad)) - np.log(np.mean(~rated.bad))
    odds = [
        ratios(kind, honest, z, clean.of, rated) + prior for honest in (clean.one_taste, clean.own_tastes)
    ]
    return rated.bad, named_bad(table), *odds


def found(cells, both, kept, share):
    """(bad raters of all, what the table says of them) of all seeds together, of the raters `kept`."""
    bad, named, *odds = (np.concatenate(part)[kept] for part in zip(*cells, strict=True))
    said = [rates_of(caught(named, bad))]
    for mine, (bots, honest) in zip(odds, np.concatenate(both, axis=2)[..., kept], strict=True):
        said += [rates_of(caught(mine > 0, bad)), short(best_f1(bots, honest, share))]
    return f"{np.sum(bad)} of {len(bad)} | {' | '.join(said)}"


def reached(bots, honest):
    """Whether a threshold of the ratio has precision and recall `WANTED` where `SHARE` of the raters are bots."""
    tried = np.sort(bots)[: int((1 - WANTED) * len(bots)) + 1]  # recall WANTED or more
    wrong = 1 - np.searchsorted(np.sort(honest), tried, side="left") / len(honest)
    right = 1 - np.searchsorted(np.sort(bots), tried, side="left") / len(bots)
    return bool(np.any(SHARE * right >= WANTED * (SHARE * right + (1 - SHARE) * wrong)))


def least(enough):
    """The least number of answers that is `enough`, to within a twentieth and up to `MOST`, in words."""
    low, high = 0, 4
    while not enough(high):
        if high == MOST:
            return f"> {MOST}"
        low, high = high, min(2 * high, MOST)
    while high - low > max(1, low // 20):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return str(high)


def needed(kind, clean: Clean):
    """Answers a rater (one taste, own tastes) with which the oracle has precision and recall of `WANTED`."""
    rng = np.random.default_rng(0)
    rows = rng.integers(len(clean.z), size=(LONG, MOST))
    coins = rng.choice([-1.0, 1.0], (LONG, MOST))
    margins = (clean.z @ clean.theta)[rows]

    def with_one(n):
        bots = margins * (coins if kind == "random" else -1.0)
        log_bot = -n * np.log(2) if kind == "random" else _log_sigmoid(-bots[:, :n])
        log_bot_of_honest = -n * np.log(2) if kind == "random" else _log_sigmoid(-margins[:, :n])
        return reached(log_bot - _log_sigmoid(bots[:, :n]), log_bot_of_honest - _log_sigmoid(margins[:, :n]))

    tastes = clean.law.mean + rng.normal(size=(LONG, len(clean.theta))) @ clean.law.root.T
    x = clean.z[rows]
    drawn = np.where(rng.logistic(size=rows.shape) < np.einsum("knr,kr->kn", x, tastes), 1.0, -1.0)

    def evidence(labels, n):
        return look(x[:, :n] * labels[:, :n, None], np.ones((LONG, n), bool), clean.law, LONG_POINTS).evidence

    def with_own(n):
        honest = evidence(drawn, n)
        if kind == "random":
            return reached(-n * np.log(2) - evidence(coins, n), -n * np.log(2) - honest)
        turned = evidence(-drawn, n)
        return reached(honest - turned, turned - honest)

    return least(with_one), least(with_own)


def _log_sigmoid(margins):
    return -np.sum(np.logaddexp(0, -margins), axis=1)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=[*WORLDS, *CHOICES])
    parser.add_argument("--kinds", nargs="+", default=["random", "contrary"], choices=BOTS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--quick", action="store_true", help="a tenth of the raters alone")
    args = parser.parse_args()
    print(
        "| data | bad raters | share | bad of raters | `rate_raters` | one taste | best F1 | own tastes | best F1 |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    answers, missing = [], []
    for name in args.sets:
        if name in CHOICES and name != "rail" and not (args.shared / f"{name}.csv.gz").exists():
            missing.append(f"{name} is skipped: {args.shared / name}.csv.gz does not exist.")
            continue
        seeds = [clean_labels(name, args.shared, seed) for seed in range(args.seeds)]
        pairs_each = np.concatenate([np.bincount(clean.of) for clean in seeds])
        many = pairs_each >= JUDGED
        groups = {f"≥ {JUDGED} pairs": many, "all": np.ones_like(many)}
        for kind in args.kinds:
            both = [everybody(kind, seed, clean) for seed, clean in enumerate(seeds)]
            for share in (0.1,) if args.quick else LEVELS:
                cells = [cell(kind, share, seed, clean) for seed, clean in enumerate(seeds)]
                for which in groups if 0 < np.mean(many) < 1 else ("all",):
                    told = found(cells, both, groups[which], share)
                    print(f"| {name} | {kind} | {share:.2f} | {which}: {told} |", flush=True)
            if kind in ("random", "contrary"):
                row = (name, kind, f"{np.median(pairs_each):.0f}", *needed(kind, seeds[0]))
                answers.append(f"| {' | '.join(row)} |")
    print("\n| data | bad raters | answers a rater, median | needed: one taste | needed: own tastes |")
    print("|---|---|---|---|---|")
    print("\n".join(answers))
    print("\n".join(["", *missing, f"{environment()}"]))


if __name__ == "__main__":
    main()
