"""Does it help to know who votes? `python benchmarks/votes.py [--folds 5]`, on the bundled votes on arguments, ties in.

Folds by text: votes on a pair with a text of the fold are held out, and pairs with such a text are not trained on.
Log-loss of the three outcomes (first, tie, second), in nats: of the share of ties alone, of Davidson's model of the
crowd, and of the same with each rater's reliability and ties. Then reliability beside
agreement with the majority of the others.
"""

import argparse

import numpy as np

from robust_rlhf_jax import fit_reward
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.preferences import argument_pairs
from robust_rlhf_jax.raters import fit_votes

# Votes a rater needs to be shown.
SHOWN = 15


def texts_of(pairs):
    """Numbers [N, 2] of the two texts of each pair."""
    both = np.array([(pairs.texts.chosen[i], pairs.texts.rejected[i]) for i in range(pairs.n_pairs)], object)
    return np.unique(both.astype(str).ravel(), return_inverse=True)[1].reshape(-1, 2)


def log_loss(chances, outcome):
    return -np.log(np.clip(chances[np.arange(len(outcome)), outcome], 1e-12, 1))


def fold_losses(pairs, texts, fold_of_text, fold):
    """Log-losses [4, m] on the votes that touch a text of the fold, and their raters."""
    touched = (fold_of_text[texts] == fold).any(axis=1)
    train, test = pairs.take(np.flatnonzero(~touched)), pairs.take(np.flatnonzero(touched))
    x = np.asarray(test.preferred_differences())
    outcome = np.where(test.ties, 1, 0)
    # Which option is the first says nothing: both halves of a decided pair count alike.
    ties = train.ties.mean()
    constant = np.tile([(1 - ties) / 2, ties, (1 - ties) / 2], (len(x), 1))
    model, votes = fit_reward(train, groups=train.raters), fit_votes(train)
    crowd = np.asarray(model.outcome_probabilities(test.chosen, test.rejected), float)
    found = [constant, crowd, votes.chances(x), votes.chances(x, test.raters)]
    return np.array([log_loss(chances, outcome) for chances in found]), np.asarray(test.raters)


def agreement_with_others(pairs, texts):
    """rater → (share of decided votes that the majority of the other raters' decided votes on the pair agrees with,
    number of them); even majorities do not count."""
    low = np.minimum(texts[:, 0], texts[:, 1])
    high = np.maximum(texts[:, 0], texts[:, 1])
    sign = np.where(pairs.ties, 0, np.where(texts[:, 0] == low, 1, -1))
    pair = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    others = np.bincount(pair, sign)[pair] - sign
    told = (others != 0) & (sign != 0)
    raters, of = np.unique(pairs.raters[told], return_inverse=True)
    agree = np.bincount(of, (np.sign(others) == sign)[told]) / np.bincount(of)
    return dict(zip(raters, zip(agree, np.bincount(of), strict=True), strict=True))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folds", type=int, default=5)
    given = parser.parse_args()
    pairs = argument_pairs()
    texts = texts_of(pairs)
    n_texts = texts.max() + 1
    fold_of_text = np.random.default_rng(0).permutation(n_texts) % given.folds
    losses, who = zip(*(fold_losses(pairs, texts, fold_of_text, f) for f in range(given.folds)), strict=True)
    losses, who = np.concatenate(losses, axis=1), np.concatenate(who)
    names = [
        "shares of the outcomes",
        "the crowd (`fit_reward`)",
        "anybody (`fit_votes`)",
        "each rater (`fit_votes`)",
    ]
    print(
        "| held-out votes, ties in | log-loss | less than the crowd's, ± standard error by rater |\n|---|---|---|"
    )
    for name, row in zip(names, losses, strict=True):
        gain = losses[1] - row
        sums = np.bincount(np.unique(who, return_inverse=True)[1], gain - gain.mean())
        print(
            f"| {name} | {row.mean():.4f} | {gain.mean():+.4f} ± {np.sqrt(np.sum(sums**2)) / len(gain):.4f} |"
        )
    print(
        f"\n{len(who):,} held-out votes of {len(np.unique(who)):,} raters, {n_texts} texts in {given.folds} folds."
    )
    votes, others = fit_votes(pairs), agreement_with_others(pairs, texts)
    shown = [(a, *others[n]) for n, a in zip(votes.names, votes.reliability, strict=True) if n in others]
    reliability, agree, count = np.array([row for row in shown if row[2] >= SHOWN]).T
    rank = np.corrcoef(*(np.argsort(np.argsort(values)) for values in (reliability, agree)))[0, 1]
    print(
        f"\n| reliability, fifths of {len(reliability)} raters with {SHOWN} votes or more | agree with others |"
    )
    print("|---|---|")
    for part in np.array_split(np.argsort(reliability), 5):
        low, high = reliability[part].min(), reliability[part].max()
        print(f"| {low:.2f} to {high:.2f} | {np.average(agree[part], weights=count[part]):.3f} |")
    print(f"\nSpearman's rank correlation {rank:.2f}. {environment()}")


if __name__ == "__main__":
    main()
