# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Your own file: reward, audit, cleaned copy
#
# This page goes from a CSV file of choices to a reward, and from there to a cleaned copy of the file. The file holds
# the bundled choices of 235 Dutch travellers between two train journeys (Ben-Akiva, Bolduc & Bradley 1993), with one
# fault that this page puts in: an importer that swaps the two journeys of some rows. For your own file, set `file` to
# its path and leave out the cell that writes it.

# %%
import csv
import dataclasses
import os
import tempfile
import textwrap
from importlib import resources
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from robust_rlhf_jax import fit_reward
from robust_rlhf_jax.audit import advise, find, flag, hold_out
from robust_rlhf_jax.io import Columns, describe, export, load_pairs

SMOKE = bool(os.environ.get("NOTEBOOK_SMOKE"))
FEATURES = ("price", "time", "change", "comfort")
folder = tempfile.TemporaryDirectory()
file = Path(folder.name, "choices.csv")

# %% [markdown]
# ## The file
# One row is one choice: `chosen_<name>` and `rejected_<name>` for each feature, and who chose. Where the traveller
# saved 15 guilders or more, the importer writes the journeys the wrong way round.

# %%
bundled = resources.files("robust_rlhf_jax.preferences") / "data_files" / "rail_choices.csv"
rows = list(csv.DictReader(bundled.read_text("utf-8").splitlines()))[: 400 if SMOKE else None]
swapped = []
with file.open("w", newline="", encoding="utf-8") as out:
    table = csv.writer(out)
    table.writerow(["person", *(f"{side}_{name}" for side in ("chosen", "rejected") for name in FEATURES)])
    for row in rows:
        sides = [[float(row[f"{name}_{option}"]) for name in FEATURES] for option in "ab"]
        chosen, rejected = sides if row["choice"] == "A" else sides[::-1]
        swapped.append(rejected[0] - chosen[0] >= 1500)  # cents of guilders
        table.writerow([row["person"], *(rejected + chosen if swapped[-1] else chosen + rejected)])
swapped = np.array(swapped)
print("\n".join(file.read_text("utf-8").splitlines()[:4]))
print(f"… {len(rows):,} rows, {swapped.sum():,} of them swapped")

# %% [markdown]
# ## What the library understands of it
# `describe` says what each column is taken for. It ignores `person`, so we say that this column names the raters. What
# a file does not say is not guessed.

# %%
columns = Columns(rater="person")
print(
    "\n".join(
        [
            "without help:",
            *describe(file).lines()[3:],
            "with `columns`:",
            *describe(file, columns=columns).lines(),
        ]
    )
)

# %% [markdown]
# ## The reward
# `fit_reward` counts the answers of one person as dependent, and its message says what it found. Beside it: plain
# maximum likelihood (`epsilon=0`) on the same file, and on the file as the importer should have written it.

# %%
pairs = load_pairs(file, columns=columns)
right_way = dataclasses.replace(
    pairs,
    chosen=np.where(swapped[:, None], pairs.rejected, pairs.chosen),
    rejected=np.where(swapped[:, None], pairs.chosen, pairs.rejected),
)
robust = fit_reward(pairs)
fits = {"robust": robust, "plain": fit_reward(pairs, epsilon=0), "no fault": fit_reward(right_way, epsilon=0)}


def print_rewards(fits):
    """Reward per unit of each feature, a column for each fit."""
    print(f"{'':10}" + "".join(f"{name:>12}" for name in fits))
    for place, feature in enumerate(pairs.names):
        print(f"{feature:10}" + "".join(f"{float(fit.theta[place]):>+12.5f}" for fit in fits.values()))


print(textwrap.fill(robust.message, 100))
print_rewards(fits)

# %% [markdown]
# ## The pairs that look wrong
# `flag` names as many pairs as there is evidence against. Each dot is a row of the file. Had everybody chosen what is
# cheaper and faster, all dots would lie to the left or below.

# %%
flagged = np.asarray(flag(pairs))
print(
    f"{flagged.sum():,} rows flagged, {(flagged & swapped).sum():,} of the {swapped.sum():,} swapped ones among them"
)

# %% alt="All rows by price and time: the flagged ones lie far to the right, where the costlier one is called chosen"
difference = pairs.chosen - pairs.rejected
groups = {
    "left alone": (~flagged & ~swapped, "#c4ccd4"),
    "flagged, and swapped by the importer": (flagged & swapped, "#1d3557"),
    "flagged, and as the traveller chose": (flagged & ~swapped, "#c1432e"),
    "swapped and missed": (~flagged & swapped, "#d98e04"),
}
figure, axes = plt.subplots(figsize=(7, 4.6), layout="constrained")
for name, (chosen, colour) in groups.items():
    axes.scatter(
        difference[chosen, 0] / 100,
        difference[chosen, 1],
        s=12,
        color=colour,
        label=f"{name} ({chosen.sum():,})",
    )
axes.axhline(0, color="black", linewidth=0.6)
axes.axvline(0, color="black", linewidth=0.6)
axes.set(
    xlabel="price, chosen − rejected (guilders)",
    ylabel="time, chosen − rejected (minutes)",
    title="The rows of choices.csv",
)
axes.legend(fontsize=9)
plt.show()

# %% [markdown]
# ## The advice
# The audit fits rewards to some people and looks at the answers of the others. `advise` says whether leaving the
# flagged rows out gains anything on held-out answers, and asks for a second look where two rewards explain the file.

# %%
findings = find(pairs, hold_out(pairs, folds=2 if SMOKE else 5, repeats=1))
advice = advise(findings)
print(*(textwrap.fill(sentence, 100) for sentence in advice.sentences), sep="\n")
print(
    f"lines of the file to ask about first: {', '.join(str(pairs.rows[i] + 2) for i in advice.ask[:8]) or 'none'}"
)

# %% [markdown]
# ## The cleaned copy
# `export` writes the file again with what the audit found in further columns; `keep` leaves rows out. Here it leaves
# out what `flag` names. From a shell, `robust-rlhf audit choices.csv --clean cleaned.csv` does the same by the audit's
# verdicts.

# %%
cleaned = export(pairs, Path(folder.name, "cleaned.csv"), findings.verdicts.columns(), keep=~flagged)
print("\n".join(cleaned.read_text("utf-8").splitlines()[:3]))
after = load_pairs(cleaned, columns=columns)
print(f"… {after.n_pairs:,} rows")
print_rewards(fits | {"cleaned": fit_reward(after, epsilon=0)})
folder.cleanup()

# %% [markdown]
# The robust fit comes back to the reward of the file without the fault, within about a tenth, where plain maximum
# likelihood undervalues a guilder by a factor of nearly four. Two lessons are for your own file. A cleaned copy is not
# free: rows that honestly contradict the rest are gone with the swapped ones, so that the plain fit to the copy is too
# sure of itself (its numbers are too large). And the advice here is to drop nothing yet: a second, less likely reward
# explains the file too, and new answers to the listed rows decide. `robust` needs no copy: it weighs both.
