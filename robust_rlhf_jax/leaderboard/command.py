"""The leaderboard as a command: a table, two sentences, and files."""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from robust_rlhf_jax.io.unnamed_raters import has_name
from robust_rlhf_jax.outputs import environment, whole_folder, write_json
from robust_rlhf_jax.raters import RaterTable
from robust_rlhf_jax.raters.kinds import BAD
from robust_rlhf_jax.rewards import RewardModel
from robust_rlhf_jax.spreadsheets import without_formula
from robust_rlhf_jax.terminal import counted, harmless, marked, some_of

from .fragility import Change, fewest_changes
from .printed import print_ratings
from .ratings import LIGHT, Rating, believed, judged, rate, without_finite_rating
from .votes import Votes, read_votes

FILES = ("leaderboard.csv", "leaderboard.json")
# Written if the file says who voted.
RATERS = "raters.csv"


def leaderboard_command(source: str, out: Path | None = None, **options: Any) -> list[Rating]:
    """Print the leaderboard of a file of votes and what changes its first place; write `FILES` to `out`.

    **Raises:** as `read_votes`; ValueError if `out` cannot be written.
    """
    from rich.console import Console

    votes = read_votes(source, **options)
    model, table = believed(votes), judged(votes)
    rows = rate(votes, model, table)
    changes = [fewest_changes(votes.wins(), how) for how in ("dropped", "flipped")]
    said = [
        described(votes),
        # Features are models here; what a caller in Python could do next is not said.
        model.described([harmless(name) for name in votes.names], hints=False),
        *without_rating(votes, model, table),
        *bad_raters(table),
        *(sentence(change, votes) for change in changes if change is not None),
    ]
    console = Console()
    print_ratings(console, rows)
    for text in said:
        console.print(marked(text), highlight=False)
    if out is not None:
        names = FILES if table is None else (*FILES, RATERS)
        with whole_folder(out, names) as folder:
            write_csv(folder / FILES[0], rows)
            facts = {
                "source": str(source),
                "said": said,
                "ratings": [row._asdict() for row in rows],
                "changes": [told(change, votes) for change in changes if change is not None],
                **environment(),
            }
            write_json(folder / FILES[1], facts)
            if table is not None:
                with_names(table).save(folder / RATERS)
        console.print(f"Wrote {', '.join(names)} in {marked(out)}")
    return rows


def write_csv(path: Path, rows: list[Rating]) -> None:
    """The rows as CSV; lone surrogates, the halves of characters cut in two, are escaped."""
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Rating._fields)
        writer.writerows((without_formula(row.name), *(_short(value) for value in row[1:])) for row in rows)


def _short(value: float) -> str:
    return (
        f"{value:.4g}" if isinstance(value, float) and abs(value) < 10 else f"{value:.1f}".removesuffix(".0")
    )


def described(votes: Votes) -> str:
    """How many votes, ties, models and raters there are."""
    ties = int(np.sum(votes.outcome == 0))
    named = [] if votes.raters is None else np.unique(votes.raters[has_name(votes.raters)])
    raters = f" by {counted(len(named), 'rater')}" if len(named) else ""
    left = f" {counted(votes.skipped, 'unusable row')} left out." if votes.skipped else ""
    if votes.unused is not None:
        left += (
            f" Column {harmless(votes.unused)} is not used: each row is one vote, unless a column called count says "
            "how many."
        )
    return (
        f"{counted(len(votes.outcome), 'vote')}{raters} on {len(votes.names)} models, {ties:,} of them ties."
        + left
    )


def without_rating(votes: Votes, model: RewardModel, table: RaterTable | None) -> list[str]:
    """A sentence for each column of ratings on the models whose rating there is not finite, but for columns in which
    those of the plain one are not finite either, and no others.
    """
    columns = {"": votes.wins(), " without contradicted votes": votes.wins(np.asarray(model.weights, float))}
    if table is not None:
        columns[" without bad raters"] = votes.decided().wins(np.asarray(table.weights, float))
    # Weights of votes that are not believed may be small numbers instead of 0.
    missing = {
        which: without_finite_rating(np.where(wins > LIGHT, wins, 0.0)) for which, wins in columns.items()
    }
    return [
        f"No finite rating{which}: {_listed(votes, models)}. They won or lost every vote against the others, or never "
        "met them, and stand where a hundredth of a vote puts them."
        for which, models in missing.items()
        if models and (not which or models != missing[""])
    ]


def _listed(votes: Votes, models: list[int]) -> str:
    return ", ".join(harmless(votes.names[m]) for m in models[:5]) + (", …" if len(models) > 5 else "")


def with_names(table: RaterTable) -> RaterTable:
    """Those who have one: a vote of nobody has a rater of its own."""
    return table._replace(rows=tuple(row for row in table.rows if has_name(np.array([row.name]))[0]))


def bad_raters(table: RaterTable | None) -> list[str]:
    """How many raters are bad, and who, by kind; nothing where nobody is."""
    rows = () if table is None else table.rows
    names = {kind: [harmless(row.name) for row in rows if row.kind == kind] for kind in BAD}
    found = [f"{len(who):,} {kind}{some_of(who)}" for kind, who in names.items() if who]
    return [f"Raters that look bad: {', '.join(found)}."] if found else []


def sentence(change: Change, votes: Votes) -> str:
    """What it takes to change the first place."""
    where = ", ".join(
        f"{n} of {harmless(votes.names[i])} over {harmless(votes.names[j])}"
        for i, j, n in sorted(change.cells, key=lambda c: -c[2])[:3]
    )
    more = ", …" if len(change.cells) > 3 else ""
    rival, leader = (harmless(votes.names[model]) for model in (change.rival, change.leader))
    share = f"{counted(change.votes, 'vote')} {change.how} ({100 * change.share:.2f} %)"
    return f"{share} put {rival} before {leader}: {where}{more}."


def told(change: Change, votes: Votes) -> dict[str, Any]:
    """The change with the models' names, for JSON."""
    names = votes.names
    cells = [{"winner": names[i], "loser": names[j], "votes": n} for i, j, n in change.cells]
    facts = {"leader": names[change.leader], "rival": names[change.rival]}
    return change._asdict() | facts | {"cells": cells}
