"""What several studies share: the folder of their data, the shares ε of corrupted pairs, how a number is printed."""

from pathlib import Path

# The sets that are not bundled lie beside the checkout, here by default.
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
LEVELS = (0.05, 0.1, 0.2)


def short(x: float) -> str:
    """Three decimals without the leading zero."""
    return f"{x:.3f}".replace("0.", ".", 1)


# The attacks of `robust_rlhf_jax.lab.pair_attacks` that `catch_harm.py` runs, and those of `beside_rivals.py`.
PLANTED = (
    "near",
    "near_varied",
    "far",
    "on_table",
    "leverage",
    "scale",
    "mimicry",
    "confident",
    "goal_haters",
)
RELABELLED = (
    "random_flips", "confident_flips", "influence", "other_taste", "other_reward", "corner", "planted_real",
    "planted_far", "always_first",
)  # fmt: skip
