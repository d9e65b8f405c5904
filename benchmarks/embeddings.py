"""`fit_reward` on heavy-tailed embeddings, attacked: `python benchmarks/embeddings.py [--quick] [--seeds 3]`.

Worlds: differences of 192 features whose standard deviations fall as j⁻¹ or j⁻², turned at random so that no column is
a principal axis; normal, of Student's t with 3 degrees of freedom, or a fifth of the pairs repeats of 40 popular ones.
Attacks, ε = .05 and .1: `planted` rows three times as long as a typical one, against θ; `trigger`: pairs in which the
worse option was chosen and bears a mark, of which nobody thinks anything and which one option of every fifth honest
pair bears as well (where no honest pair bears it, nothing contradicts the attack); `confident`: the pairs of which θ is
surest, flipped.

Judged on clean pairs, and for `trigger` on pairs whose worse option bears the mark. Told ε and told nothing; `its θ
alone`: told ε, with the probabilities σ(θᵀx) of a reward head; beside plain maximum likelihood and, told ε: SEVER;
pruning by the QUE score of Dong, Hopkins & Li 2019; cleanlab's label issues, pruned. Prints Markdown. Bars: on clean
data at most .005 of accuracy and .01 of log-loss behind plain; of plain's loss (log-loss against the plain fit of clean
data, where that is above .02) at least 80 % back, unless a certificate says that nobody could tell
(`embedding_limits.py`; last column: cost / stake / regret). Exits with 1 where one is missed.
"""

import argparse
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from cleanlab.filter import find_label_issues
from embedding_limits import Attacked, certificates, many_pairs
from embedding_worlds import LEVELS, WORLDS, N, World, attacked
from rich.progress import track
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from robust_rlhf_jax.lab.diagnostics.two_chances import LogLossCertificate
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards import CEILING, fit_differences
from robust_rlhf_jax.rewards.registry import ESTIMATORS

TEST = 10_000
QUICK = 3_000
ATTACKS = ("planted", "trigger", "confident")
# The slope of QUE's weights, as its authors choose it; the ball of SEVER's θ, which does not bind.
QUE_SLOPE, RADIUS = 4.0, 50.0
# Loss of plain that is worth catching, in nats a pair, and the share of it that is to come back.
WORTH, BACK = 0.02, 0.8


def judged(theta: np.ndarray, chance: np.ndarray, world: World) -> tuple[float, float]:
    """(accuracy, log-loss) of P(first) = `chance` on clean pairs drawn for the test."""
    x = tested(world)
    truth = scipy.special.expit(x @ world.theta)
    # In float32 1 − 1e-9 would be 1.
    chance = np.clip(np.asarray(chance, float), 1e-9, 1 - 1e-9)
    right = np.mean(np.where(x @ theta > 0, truth, 1 - truth))
    return float(right), float(-np.mean(truth * np.log(chance) + (1 - truth) * np.log(1 - chance)))


def tested(world: World) -> np.ndarray:
    """Clean pairs; of a marked world those whose first option is the worse one and bears the mark."""
    x = world._replace(marked=False).rows(np.random.default_rng(99), TEST)
    return x * -np.sign(x @ world.theta)[:, None] + world.mark() if world.marked else x


fit = jax.jit(fit_differences)
sever = jax.jit(lambda x, y, epsilon: ESTIMATORS["sever"].estimate(x, y, epsilon, radius=RADIUS))


def ours(x, y, epsilon):
    """(θ, the function `RewardModel.probability` of differences)."""
    found = fit(x, y, jnp.float32(epsilon))
    return np.asarray(found.theta), lambda x: np.asarray(found.probability(jnp.asarray(x, jnp.float32)))


def alone(theta: np.ndarray, x_test: np.ndarray):
    """(θ, σ(θᵀx)), which is what a trainer makes of a reward head."""
    return theta, scipy.special.expit(x_test @ theta.astype(float))


def ridge(z: np.ndarray, x_test: np.ndarray):
    """scikit-learn's, in columns of standard deviation 1, pairs turned at random."""
    size, sign = z.std(axis=0), np.where(np.random.default_rng(0).random(len(z)) < 0.5, 1.0, -1.0)
    model = LogisticRegression(fit_intercept=False, max_iter=500).fit(z / size * sign[:, None], sign)
    theta = model.coef_[0] / size
    return theta, scipy.special.expit(x_test @ theta)


def que_pruned(z: np.ndarray, epsilon: float) -> np.ndarray:
    """z less the ε·n rows of highest score zᵀUz, U ∝ exp(α(Σ − I)/‖Σ − I‖) in whitened columns."""
    # Of a mixture with its mirror image, as labels of turned pairs make it, the mean is 0.
    scale = np.median(np.abs(z), axis=0) / 0.6745
    values, axes = np.linalg.eigh(np.cov((z / scale).T))
    white = z / scale @ (axes / np.sqrt(np.maximum(values, 1e-9)))
    # The middle half of the rows by length says what is normal.
    length = np.linalg.norm(white, axis=1)
    middle = white[np.abs(length - np.median(length)) <= np.quantile(np.abs(length - np.median(length)), 0.5)]
    values, axes = np.linalg.eigh(middle.T @ middle / len(middle))
    white = white @ (axes / np.sqrt(values))
    values, axes = np.linalg.eigh(white.T @ white / len(white))
    weights = np.exp(QUE_SLOPE * (values - values.max()) / max(np.abs(values - 1).max(), 1e-9))
    score = (white @ axes) ** 2 @ weights
    return z[np.argsort(score)[: len(z) - int(epsilon * len(z))]]


def cleanlab_pruned(z: np.ndarray) -> np.ndarray:
    """z less what cleanlab calls label issues."""
    label = np.random.default_rng(0).integers(0, 2, len(z))
    x = z / z.std(axis=0) * (2 * label - 1)[:, None]
    model = LogisticRegression(fit_intercept=False, max_iter=500)
    chance = cross_val_predict(model, x, label, cv=5, method="predict_proba")
    return z[~find_label_issues(label, chance)]


def rivals(z: np.ndarray, x, y, epsilon: float, x_test: np.ndarray):
    theta = np.asarray(sever(x, y, jnp.float32(epsilon)).theta, float)
    return {
        "SEVER": (theta, scipy.special.expit(x_test @ theta)),
        "QUE": ridge(que_pruned(z, epsilon), x_test),
        "cleanlab": ridge(cleanlab_pruned(z), x_test),
    }


NAMES = ("fit_reward", "its θ alone", "told nothing", "SEVER", "QUE", "cleanlab")
# Those that the bars are for.
OURS = ("fit_reward", "told nothing")


class Row(NamedTuple):
    """Scores (accuracy, log-loss) of the plain fit to clean pairs, to attacked ones, and of every other by name; of
    `OURS` the certificates, where too little is back.
    """

    world: str
    attack: str
    epsilon: float
    clean: tuple[float, float]
    plain: tuple[float, float]
    others: dict[str, tuple[float, float]]
    certificates: dict[str, LogLossCertificate]

    @property
    def loss(self) -> float:
        return self.plain[1] - self.clean[1]

    def back(self, name: str) -> float | None:
        """The share of plain's loss that is back; None where there was none worth catching."""
        return None if self.loss < WORTH else (self.plain[1] - self.others[name][1]) / self.loss

    def too_little(self, name: str) -> bool:
        back = self.back(name)
        return back is not None and back < BACK

    def excused(self, name: str) -> bool:
        """Whether nobody could tell the answer's world from the true one."""
        return name in self.certificates and self.certificates[name].holds(
            self.epsilon, (1 - BACK) * self.loss
        )


def measured(name: str, seed: int, n: int, attack: str, epsilon: float) -> Row:
    world = World.of(**WORLDS[name], seed=seed, marked=attack == "trigger")
    clean = world.preferred(np.random.default_rng([1, seed]), n)
    z = attacked(world, clean, attack, epsilon, np.random.default_rng([2, seed]))
    x_test, x, y = tested(world), jnp.asarray(z, jnp.float32), jnp.ones(n, jnp.float32)

    fits = {"fit_reward": ours(x, y, epsilon or 0.1), "told nothing": ours(x, y, CEILING)}
    found = {who: (theta, chance(x_test)) for who, (theta, chance) in fits.items()}
    found["its θ alone"] = alone(found["fit_reward"][0], x_test)
    found |= rivals(z, x, y, epsilon or 0.1, x_test)
    clean_theta, of_clean = ours(jnp.asarray(clean, jnp.float32), y, 0.0)
    plain_theta, of_plain = ours(x, y, 0.0)
    row = Row(
        name, attack, epsilon, judged(clean_theta, of_clean(x_test), world),
        judged(plain_theta, of_plain(x_test), world),
        {who: judged(*what, world) for who, what in found.items()}, {},
    )  # fmt: skip
    short = {who: fits[who][1] for who in OURS if row.too_little(who)}
    return row._replace(certificates=limits(Attacked(world, clean, z, attack, epsilon), short, row, x_test))


def limits(seen: Attacked, short: dict, row: Row, x_test: np.ndarray) -> dict[str, LogLossCertificate]:
    """The certificates of answers that fall `short`; other worlds are sought towards what many pairs say."""
    if not short:
        return {}
    many = jnp.asarray(many_pairs(seen), jnp.float32)
    limit = ours(many, jnp.ones(len(many), jnp.float32), seen.epsilon)[1]
    return certificates(seen, short, limit, x_test, (1 - BACK) * row.loss)


def shown(row: Row, name: str) -> str:
    accuracy, loss = row.others[name]
    back = row.back(name)
    return f"{accuracy:.3f} / {loss:.3f}" + ("" if back is None else f" ({100 * back:.0f} %)")


def certified(row: Row) -> str:
    """Of `fit_reward`: cost / stake / regret of its certificate."""
    found = row.certificates.get(OURS[0])
    if found is None:
        return ""
    return " / ".join(f"{value:.3f}" for value in found) + ("" if row.excused(OURS[0]) else " (none)")


def missed(row: Row) -> list[str]:
    bad = []
    for name in OURS:
        accuracy, loss = row.others[name]
        where = f"{row.world}, {row.attack} {row.epsilon}, {name}"
        if not row.epsilon and (accuracy < row.clean[0] - 0.005 or loss > row.clean[1] + 0.01):
            bad.append(f"harm on clean data: {where}")
        if row.too_little(name) and not row.excused(name):
            bad.append(f"less than {BACK:.0%} back: {where}")
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help=f"one world, {QUICK:,} pairs, ε = .1")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    given = parser.parse_args()
    n, names = (QUICK, list(WORLDS)[:1]) if given.quick else (N, given.worlds)
    cases = [("clean", 0.0)] + [(attack, e) for attack in ATTACKS for e in LEVELS[given.quick :]]
    todo = [(name, seed, n, *case) for name in names for seed in range(given.seeds) for case in cases]
    rows = [measured(*case) for case in track(todo, "fits", disable=not sys.stderr.isatty())]
    print("Accuracy / log-loss, and the share of plain's loss that is back:\n")
    print("| spectrum | attack | ε | plain, clean | plain | " + " | ".join(NAMES) + " | certificate |")
    print("|---" * (6 + len(NAMES)) + "|")
    for row in rows:
        plain = [f"{a:.3f} / {loss:.3f}" for a, loss in (row.clean, row.plain)]
        cells = [row.world, row.attack, f"{row.epsilon or '–'}", *plain, *(shown(row, who) for who in NAMES)]
        cells.append(certified(row))
        print("| " + " | ".join(cells) + " |")
    bad = [problem for row in rows for problem in missed(row)]
    print(f"\n{environment()}" + "".join(f"\nMISSED: {what}" for what in bad))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
