"""What the robust reward recovers: `python benchmarks/catch_harm.py [--repeats 2] [--seeds 10] [--out FILE]`.

`fit_reward` with ε and without ε beside plain maximum likelihood, on clean held-out pairs, after the attacks of
`lab/pair_attacks/` (`PLANTED`) on real choices and the delivery grid, and on the grid also the library's attacks on
trajectories.
Where plain loses more than .02 of accuracy, the fit with ε should recover 80 % of it at ε ≤ .1 and 50 % at .2; where it
does not, the fit should lose no more than .02 either. Only a certificate (`lab.diagnostics`) excuses a miss: a world
in which the fit's own answer is right and the true reward is not, with no more than ε of the pairs corrupt either.
The log-loss, with and without ε, should exceed plain's by no more than .05, hopeless or not; the expected
calibration error should be .1 at most, unless hopeless, or unless a certificate says that the fit's probabilities may
be the true ones; and giving ε should cost no more than .01 of accuracy.
Columns of log-loss and calibration: plain / with ε / without ε. Exits with 1 where one of these fails.
"""

import argparse
import dataclasses
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from pair_sets import Score, Trial, available, fit_world, trials
from rich.progress import track
from studies import LEVELS, PLANTED, SHARED, short

from robust_rlhf_jax.lab.attacks import ATTACKS
from robust_rlhf_jax.lab.diagnostics.two_chances import ProbabilityCertificate, certificate_of_probabilities
from robust_rlhf_jax.lab.diagnostics.two_worlds import LOSS, Certificate, certificate, chance_of_wins
from robust_rlhf_jax.lab.pair_attacks import PAIR_ATTACKS, AttackedPairs
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards import CEILING

# Nats by which the log-loss may exceed plain's.
DEARER = 0.05
# The most that the expected calibration error may be, and what giving ε may cost in accuracy.
CALIBRATION, TOLD = 0.1, 0.01
SETS = ("rail", "electricity", "swissmetro", "delivery", "delivery, trajectories")
WORLD_ATTACKS = (
    "push_on_table", "scale_on_table", "leverage_on_table", "praise_rare", "mimicry", "push_features",
    "flip_confident", "goal_haters",
)  # fmt: skip


def bar(epsilon: float) -> float:
    return 0.8 if epsilon <= 0.1 else 0.5


class Result(NamedTuple):
    """One attack on one trial; `certificate`: of the answer with ε, None where it recovers enough; those of the
    probabilities with ε and without it, None where they are calibrated.
    """

    clean: Score
    plain: Score
    told: Score
    nothing: Score
    certificate: Certificate | None
    told_probabilities: ProbabilityCertificate | None = None
    nothing_probabilities: ProbabilityCertificate | None = None


class Seen(NamedTuple):
    """What is left to see after an attack: differences, labels, how to fit them, and the attack on labels alone."""

    x: np.ndarray
    labels: np.ndarray
    fit: Callable
    relabel: Callable | None


def on_pairs(trial: Trial, name: str, epsilon: float, theta, seed: int) -> Seen:
    """An attack of `PAIR_ATTACKS`."""
    attack = PAIR_ATTACKS[name]
    rng = np.random.default_rng(seed)
    found = attack(rng, AttackedPairs(trial.x, trial.labels, trial.options), epsilon, theta)

    def relabel(labels):
        return attack(rng, AttackedPairs(trial.x, labels, trial.options), epsilon, theta).labels

    changes_x = not np.array_equal(found.x, trial.x)
    fit = partial(trial.fit, found.x, found.labels)
    return Seen(found.x, found.labels, fit, None if changes_x else relabel)


@cache
def _attack(name):
    return jax.jit(ATTACKS[name])


def on_trajectories(trial: Trial, name: str, epsilon: float, seed: int) -> Seen:
    """An attack of the library on the data of a world."""
    mdp, clean, _ = trial.world
    keys = iter(jax.random.split(jax.random.key(1000 + seed), 1000))
    found = _attack(name)(next(keys), clean, jnp.float32(epsilon), mdp)

    def relabel(labels):
        honest = dataclasses.replace(clean, labels=jnp.asarray(labels, clean.labels.dtype))
        return np.asarray(_attack(name)(next(keys), honest, jnp.float32(epsilon), mdp).labels, float)

    x = np.asarray(found.differences(), float)
    changes_x = not np.array_equal(x, trial.x)
    relabel = None if changes_x else relabel
    return Seen(x, np.asarray(found.labels, float), partial(fit_world, found), relabel)


def attacked(trial: Trial, seen: Seen, epsilon: float, truth, clean: Score, draws: int) -> Result:
    """All fits to what is seen, and the certificate where the fit with ε recovers too little."""
    fits = {ceiling: seen.fit(ceiling) for ceiling in {0.0, epsilon, CEILING}}
    plain, told, nothing = (trial.score(fits[c]) for c in (0.0, epsilon, CEILING))
    wins = cache(lambda: chance_of_wins(seen.x, seen.labels, truth, seen.relabel, trial.x, draws))
    lost = clean.accuracy - plain.accuracy
    found = None
    if clean.accuracy - told.accuracy > (1 - bar(epsilon)) * max(lost, 0.0):
        found = certificate(seen.x, wins(), np.asarray(fits[epsilon].theta, float), truth, epsilon)

    def of_probabilities(score: Score, ceiling: float) -> ProbabilityCertificate | None:
        if score.calibration <= CALIBRATION:
            return None
        return certificate_of_probabilities(seen.x, wins(), fits[ceiling].probability, truth)

    return Result(
        clean,
        plain,
        told,
        nothing,
        found,
        of_probabilities(told, epsilon),
        of_probabilities(nothing, CEILING),
    )


def recovered(results: list[Result], which: str = "told") -> float:
    """Share of plain's lost accuracy that a fit has back; NaN where plain loses no more than `LOSS`."""
    clean, plain, robust = (
        np.mean([getattr(r, w).accuracy for r in results]) for w in ("clean", "plain", which)
    )
    return (robust - plain) / (clean - plain) if clean - plain > LOSS else np.nan


def reaches(results: list[Result], epsilon: float) -> bool:
    """The fit with ε recovers enough; where plain loses no more than `LOSS`, it may lose that itself."""
    clean, plain, told = (
        np.mean([getattr(r, w).accuracy for r in results]) for w in ("clean", "plain", "told")
    )
    lost = clean - plain
    return clean - told <= (LOSS if lost <= LOSS else (1 - bar(epsilon)) * lost)


def verdict(results: list[Result], epsilon: float) -> str:
    """pass, hopeless or MISSED: trials whose certificate holds are excused, the others must reach the bar."""
    if reaches(results, epsilon):
        return "no loss" if np.isnan(recovered(results)) else "pass"
    excused = [r for r in results if r.certificate is not None and r.certificate.holds(epsilon)]
    missed = [r for r in results if r.certificate is not None and not r.certificate.holds(epsilon)]
    fine = [r for r in results if r.certificate is None]
    if missed + fine and not reaches(missed + fine, epsilon):
        return f"MISSED in {len(missed)} of {len(results)} ({costs([r.certificate for r in missed])})"
    return f"hopeless in {len(excused)} of {len(results)} ({costs([r.certificate for r in excused])})"


def costs(certificates: list[Certificate] | list[ProbabilityCertificate]) -> str:
    """Their mean cost and stake, if there are any."""
    if not certificates:
        return "no certificate"
    cost, stake = (np.mean([getattr(c, what) for c in certificates]) for what in ("cost", "stake"))
    return f"cost {short(cost)}, stake {short(stake)}"


HEAD = (
    "| set | attack | ε | clean | plain | with ε | without ε | recovered | without ε | log-loss | calibration | "
    "return | verdict |\n" + "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def line(name: str, attack: str, epsilon: float, results: list[Result]) -> str:
    means = [np.mean([getattr(r, which) for r in results], axis=0) for which in Result._fields[:4]]
    shares = [recovered(results, which) for which in ("told", "nothing")]
    cells = [name, attack, f"{epsilon:g}", *(short(m[0]) for m in means)]
    cells += ["" if np.isnan(share) else f"{share:.0%}" for share in shares]
    cells.append(" / ".join(f"{m[1]:.3f}" for m in means[1:]))
    cells.append(" / ".join(f"{Score(*m).calibration:.3f}" for m in means[1:]))
    cells.append("" if np.isnan(means[0][2]) else " / ".join(f"{m[2]:.2f}" for m in means))
    kept = verdict(results, epsilon)
    kept += remarks(results, epsilon, "hopeless" in kept)
    return "| " + " | ".join([*cells, kept]) + " |"


def remarks(results: list[Result], epsilon: float, hopeless: bool) -> str:
    """LOG-LOSS where a fit, with or without ε, exceeds plain's by `DEARER`; what `calibration` says, unless the row is
    hopeless; TOLD where giving ε costs accuracy.
    """
    plain, told, nothing = (mean_score(results, which) for which in Result._fields[1:4])
    found = []
    if max(told.log_loss, nothing.log_loss) > plain.log_loss + DEARER:
        found.append("LOG-LOSS")
    if not hopeless:
        found += [calibration(results, epsilon)]
    if told.accuracy < nothing.accuracy - TOLD:
        found.append("TOLD")
    return "".join(f"; {remark}" for remark in found if remark)


def calibration(results: list[Result], epsilon: float) -> str:
    """CALIBRATION where the expected error with or without ε is above `CALIBRATION` and stays so without the trials
    whose certificate holds; then how many those are; "" where it is not above.
    """
    excused = []
    for which, ceiling in (("told", epsilon), ("nothing", CEILING)):
        if mean_score(results, which).calibration <= CALIBRATION:
            continue
        certificates = [getattr(r, f"{which}_probabilities") for r in results]
        holds = [c is not None and c.holds(ceiling, CALIBRATION) for c in certificates]
        others = [r for r, held in zip(results, holds, strict=True) if not held]
        if others and mean_score(others, which).calibration > CALIBRATION:
            return "CALIBRATION"
        excused = excused or [c for c, held in zip(certificates, holds, strict=True) if held]
    if not excused:
        return ""
    return f"calibration hopeless in {len(excused)} of {len(results)} ({costs(excused)})"


def mean_score(results: list[Result], which: str) -> Score:
    return Score(*np.mean([getattr(r, which) for r in results], axis=0))


def lines_of(name: str, shared: Path, repeats: int, seeds: int, levels=LEVELS, attacks=None, draws=100):
    """All lines of a set, a progress line with the time left meanwhile."""
    in_world = name == SETS[-1]
    attacks = attacks or (WORLD_ATTACKS if in_world else PLANTED)
    results = {(attack, epsilon): [] for attack in attacks for epsilon in levels}
    for seed, build in enumerate(track(trials(name.split(",")[0], shared, repeats, seeds), name)):
        trial = build()
        fitted = trial.fit(trial.x, trial.labels, 0.0)
        clean = trial.score(fitted)
        truth = np.asarray(fitted.theta, float) if trial.world is None else trial.world.theta
        for (attack, epsilon), found in results.items():
            seen = (
                on_trajectories(trial, attack, epsilon, seed)
                if in_world
                else on_pairs(trial, attack, epsilon, truth, seed)
            )
            found.append(attacked(trial, seen, epsilon, truth, clean, draws))
    return [line(name, attack, epsilon, found) for (attack, epsilon), found in results.items()]


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2, help="of the 5 folds of people")
    parser.add_argument("--seeds", type=int, default=10, help="delivery grids")
    parser.add_argument("--quick", action="store_true", help="one repeat and two seeds")
    parser.add_argument("--sets", nargs="+", choices=SETS, help="only these sets")
    parser.add_argument("--attacks", nargs="+", help="only these attacks")
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder of the sets that are not bundled")
    parser.add_argument("--out", type=Path, help="write the table to this file, too")
    return parser


def main(words=None) -> int:
    arguments = parser().parse_args(words)
    repeats, seeds = (1, 2) if arguments.quick else (arguments.repeats, arguments.seeds)
    names, skipped = available(arguments.shared)
    lines = [*skipped, "", HEAD] if skipped else [HEAD]
    print("\n".join(lines), flush=True)
    for name in arguments.sets or [name for name in SETS if name.split(",")[0] in names]:
        found = lines_of(name, arguments.shared, repeats, seeds, attacks=arguments.attacks)
        lines += found
        print("\n".join(found), flush=True)
    lines += ["", f"{repeats} × 5 folds of people, {seeds} grids. {environment()}"]
    print("\n".join(lines[-2:]))
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ("MISSED", "LOG-LOSS", "CALIBRATION", "TOLD")
    return int(any(word in found for found in lines for word in words))


if __name__ == "__main__":
    sys.exit(main())
