"""A liking for the option shown first, or for the longer one, that honest raters share is not a habit of bad ones."""

import numpy as np
import pytest

from robust_rlhf_jax import Pairs
from robust_rlhf_jax.raters import rate_raters

K, EACH = 40, 25
WHO = np.repeat(np.arange(K), EACH)


def kinds(seed, bots, habit):
    """Of 40 raters who lean to an option by 1.5 logits, give or take .7; the first `bots` see nothing else."""
    rng = np.random.default_rng(seed)
    taste = np.array([2.0, -1.5, 1.0, 0.5]) + 0.3 * rng.normal(size=(K, 4))
    leaning = 1.5 + 0.7 * rng.normal(size=K)
    x = rng.normal(size=(K * EACH, 4))
    chose = rng.logistic(size=len(x)) < np.sum(x * taste[WHO], axis=1) + leaning[WHO]
    chose = np.where(bots > WHO, rng.random(len(x)) < 0.97, chose)
    pairs = Pairs.of_differences(x, np.where(chose, 1, -1))
    return [row.kind for row in rate_raters(pairs, WHO, **{habit: chose}).rows]


@pytest.mark.slow
@pytest.mark.parametrize("habit", ["first", "longer"])
@pytest.mark.parametrize("bots", [0, 4])
def test_only_those_who_look_at_nothing_else_have_the_habit(habit, bots):
    named = np.array([kinds(seed, bots, f"chose_{habit}") for seed in range(3)]) == f"always {habit}"
    assert named[:, :bots].all()
    assert named[:, bots:].sum() <= 1


@pytest.mark.slow
def test_the_opposite_of_a_taste_leans_as_others_do():
    """Contrary raters who like the first option, as all do, are called contrary, and nobody else is."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(K * EACH, 4))
    margins = x @ [2.0, -1.5, 1.0, 0.5] * np.where(WHO < 4, -1, 1)
    first = rng.logistic(size=len(x)) < margins + 1.5
    table = rate_raters(Pairs.of_differences(x, np.where(first, 1, -1)), WHO, chose_first=first)
    assert [row.name for row in table.rows if row.kind == "contrary"] == ["0", "1", "2", "3"]
