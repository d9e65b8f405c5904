"""Files with bad raters, for `raters.py` and `raters_limit.py`: sets, folds, bots, and how a rating is counted."""

import numpy as np
from pair_sets import CHOICES, real_choices
from studies import short

from robust_rlhf_jax.audit import group_folds
from robust_rlhf_jax.lab.attacks.rater_bots import replace_raters
from robust_rlhf_jax.raters.kinds import BAD

WORLDS = ("one taste", "many tastes")
# Pairs that a rater needs to be judged by precision and recall.
JUDGED = 15


def pairs_of(name, shared, seed):
    """(preferred less other [N, k], raters [N])."""
    if name in CHOICES:
        real = real_choices(name, shared)
        return (real.options[:, 1] - real.options[:, 0]) * real.labels[:, None], real.people
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(125), 25)
    theta = rng.normal(size=6)
    theta *= 3 / np.linalg.norm(theta)
    tastes = theta + (0.5 if name == "many tastes" else 0.0) * rng.normal(size=(125, 6))
    x = rng.normal(size=(len(who), 6))
    return x * np.where(rng.logistic(size=len(x)) < np.sum(x * tastes[who], axis=1), 1, -1)[:, None], who


def divided(name, shared, seed):
    """(clean pairs to train on, numbers of their raters, clean pairs of the people held out)."""
    z, who = pairs_of(name, shared, seed)
    out = group_folds(np.random.default_rng(seed), who, 5) == 0
    return z[~out], np.unique(who[~out], return_inverse=True)[1], z[out]


def replaced(train, of, kind, share, seed, theta=None):
    """The pairs to train on with bots among their raters: the same raters for every kind of bot."""
    return replace_raters(np.random.default_rng(seed + 1), train, of, kind, share, theta)


def named_bad(table):
    """Which raters are called bad; `raters` are numbers, and the table has them in the order of the numbers."""
    return np.isin([row.kind for row in table.rows], BAD)


def caught(named, bad):
    """(named and bad, named, bad)."""
    return np.array([np.sum(named & bad), np.sum(named), np.sum(bad)])


def rates_of(counts):
    """Precision / recall."""
    right, *of = counts
    return " / ".join(short(right / n) if n else "–" for n in of)
