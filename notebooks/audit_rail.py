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
# # Auditing real preferences
#
# The library bundles 2,929 choices of 235 Dutch travellers between two train journeys that differ in price, time,
# changes and comfort (Ben-Akiva, Bolduc & Bradley 1993; see docs/data.md). This page flips some of their answers on
# purpose and asks two things: does a reward model still predict the honest answers of people it has not seen, and can
# the flipped answers be found?

# %%
import os

import jax
import matplotlib.pyplot as plt
import numpy as np

from robust_rlhf_jax import load_rail_choices
from robust_rlhf_jax.audit import audit
from robust_rlhf_jax.audit.detection import precision_recall_curve
from robust_rlhf_jax.preferences import RAIL_FEATURES, rail_people

SMOKE = bool(os.environ.get("NOTEBOOK_SMOKE"))
FOLDS, REPEATS = (2, 1) if SMOKE else (5, 2)
LEVELS = (0.0, 0.1) if SMOKE else (0.0, 0.05, 0.1, 0.15, 0.2)
PLAIN, ROBUST, CORRUPTED = "#c1432e", "#1f6f8b", "#1d3557"

data, people = load_rail_choices(), rail_people()


def audited(level, injection="flip_confident"):
    """Flip `level` of the labels, audit with ε = `level` (but .1 where nothing is flipped)."""
    return audit(
        jax.random.key(0), data, level or 0.1, folds=FOLDS, repeats=REPEATS, groups=people,
        inject=level, injection=injection,
    )  # fmt: skip


# %% [markdown]
# ## Does the model survive?
# At each level we flip the labels about which a plain model is most certain, the worst case for it. Both models are
# fitted to the corrupted labels of some people and scored on the **clean** labels of the others.

# %%
results = {level: audited(level) for level in LEVELS}
for level, result in results.items():
    plain, robust = result.plain, result.robust
    print(f"{level:4.0%} flipped: held-out accuracy plain {plain.accuracy:.3f}, robust {robust.accuracy:.3f}")

# %% alt="Held-out accuracy against the share of flipped labels: the robust fit stays level where the plain one falls"
figure, axes = plt.subplots(figsize=(7, 4.3), layout="constrained")
for name, style, colour in (("plain", "-o", PLAIN), ("robust", "-s", ROBUST)):
    fits = [getattr(result, name) for result in results.values()]
    centre, error = [fit.accuracy for fit in fits], [fit.accuracy_error for fit in fits]
    axes.errorbar(LEVELS, centre, error, fmt=style, color=colour, capsize=3, label=name)
axes.axhline(0.5, color="black", linestyle=":", linewidth=1, label="coin flips")
axes.set(
    xlabel="fraction of labels flipped, the most confident first",
    ylabel="held-out accuracy on the labels before the flips",
    title="Rail choices: plain against robust reward (± one standard error over people)",
)
axes.grid(alpha=0.3)
axes.legend(frameon=False)
plt.show()

# %% [markdown]
# ## Can the flipped labels be found?
# Every pair has a suspicion: −log P of its label under robust fits to other people. Going down from the most
# suspicious pair, precision is the share of flipped labels among those named so far, recall the share of all flipped
# ones that were named.

# %% alt="Precision against recall of flipped labels, for the most confident labels flipped and for random ones"
found = {"most confident labels flipped": results[0.1], "random labels flipped": audited(0.1, "flip_random")}
figure, axes = plt.subplots(figsize=(7, 4.3), layout="constrained")
for (name, result), colour in zip(found.items(), (ROBUST, "#d98e04"), strict=True):
    precisions, recalls, _ = precision_recall_curve(result.suspicion, result.injected)
    axes.plot(
        recalls, precisions, color=colour, label=f"{name}: average precision {result.average_precision:.2f}"
    )
    axes.plot(result.recall, result.precision, "o", color=colour, markersize=8, markeredgecolor="black")
axes.axhline(0.1, color="black", linestyle=":", linewidth=1, label="naming pairs at random")
axes.set(
    xlabel="recall of flipped labels",
    ylabel="precision",
    title="A tenth of the labels flipped (dot: the tenth that the audit flags)",
    ylim=(0, 1.04),
)
axes.grid(alpha=0.3)
axes.legend(frameon=False, fontsize=9)
plt.show()

# %% [markdown]
# ## Which pairs look wrong?
# Each dot is a choice, placed by how much more expensive and slower the journey is that the label prefers.
# Bottom left: cheaper and faster, as one would choose. Top right: more expensive and slower.

# %% alt="Two scatters of choices by price and time: how suspicious each is, and which were flipped and flagged"
result = results[0.1]
preferred = result.labels[:, None] * result.differences
price, time = preferred[:, RAIL_FEATURES.index("price")], preferred[:, RAIL_FEATURES.index("time")]
order = np.argsort(result.suspicion, kind="stable")
rng = np.random.default_rng(0)
spread = rng.normal(scale=0.03, size=(2, len(order)))  # many pairs share one place
figure, panels = plt.subplots(1, 2, figsize=(11.5, 4.8), sharex=True, sharey=True, layout="constrained")
top = float(np.quantile(result.suspicion, 0.995))
image = panels[0].scatter(
    (price + spread[0])[order],
    (time + spread[1])[order],
    c=result.suspicion[order],
    s=10,
    cmap="magma_r",
    vmax=top,
)
figure.colorbar(image, ax=panels[0], label="suspicion: −log P(label)", extend="max")
panels[0].set(title="how suspicious", ylabel="time, preferred − other (standard deviations)")
groups = {
    "left alone": (~result.injected, "#c4ccd4"),
    "flipped and flagged": (result.injected & result.flagged, CORRUPTED),
    "flipped and missed": (result.injected & ~result.flagged, "#d98e04"),
    "honest and flagged": (~result.injected & result.flagged, PLAIN),
}
for name, (chosen, colour) in groups.items():
    panels[1].scatter(
        (price + spread[0])[chosen],
        (time + spread[1])[chosen],
        s=10,
        color=colour,
        label=f"{name} ({chosen.sum():,})",
    )
panels[1].set(title="what was flipped and what was flagged")
panels[1].legend(fontsize=9, markerscale=2)
for axes in panels:
    axes.axhline(0, color="black", linewidth=0.6)
    axes.axvline(0, color="black", linewidth=0.6)
    axes.set_xlabel("price, preferred − other (standard deviations)")
plt.show()

# %%
header = "".join(f"{name:>9}" for name in RAIL_FEATURES)
print(
    f"{'row':>5}{'suspicion':>11}{header}   flipped by us?   (preferred − other; + is costlier, slower, more, worse)"
)
for i in order[::-1][:10]:
    cells = "".join(f"{value:+9.2f}" for value in preferred[i] + 0.0)
    print(f"{i + 1:>5}{result.suspicion[i]:>11.2f}{cells}   {'yes' if result.injected[i] else 'no'}")

# %% [markdown]
# The robust fit predicts the labels before the flips as well as ever up to 20 % of confident flips, where the plain one
# does worse than a coin from 10 % on. Flips that hurt can be found: they contradict what the model is sure of.
# Random ones mostly cannot. And an honest answer may look as odd as a lie: a flag is a reason to look, not a verdict.
