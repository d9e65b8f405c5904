"""What an attack declares: `@listed()` puts it into `ATTACKS`, and the tests hold it to its `Conduct`."""

import functools
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, TypeVar, cast

from robust_rlhf_jax.checks import check_key
from robust_rlhf_jax.collected import by_name, in_order
from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import PreferenceData

from .base import Attack

Function = TypeVar("Function", bound=Callable)
# The fields that an attack on labels alone leaves as they are.
ALL_BUT_LABELS = ("states", "actions", "features")


class Conduct(NamedTuple):
    """What an attack promises beside its budget.

    `untouched`: fields of the data that stay as they were; `at_most`: whether fewer than ⌊εN⌋ pairs may change;
    `draws_pairs`: whether the key decides which; `off_table`: whether it plants features that no table has.
    """

    untouched: tuple[str, ...] = ()
    at_most: bool = False
    draws_pairs: bool = True
    off_table: bool = False


def listed(
    *,
    untouched: tuple[str, ...] = (),
    at_most: bool = False,
    draws_pairs: bool = True,
    off_table: bool = False,
) -> Callable[[Function], Function]:
    """Puts the function below it into `ATTACKS`, with its `Conduct`; what it is called with is checked first."""

    def mark(attack: Function) -> Function:
        @functools.wraps(attack)
        def checked(key: Any, data: Any, epsilon: Any, mdp: Any, *others: Any, **options: Any):
            check_attacked(key, data, mdp)
            return attack(key, data, epsilon, mdp, *others, **options)

        checked.__dict__["conduct"] = Conduct(untouched, at_most, draws_pairs, off_table)
        return cast(Function, checked)

    return mark


def check_attacked(key: Any, data: Any, mdp: Any, or_none: bool = False) -> None:
    """`or_none`: whether `mdp` may be None, as for attacks that do not look at it.

    **Raises:** ValueError for what is not one key, no `PreferenceData`, no `LinearMDP`, or data of another world.
    """
    check_key(key)
    if not isinstance(data, PreferenceData):
        raise ValueError(
            f"data is of the type {type(data).__name__}: attacks change PreferenceData, such as "
            "sample_preferences(key, mdp, 1000) gives."
        )
    if or_none and mdp is None:
        return
    if not isinstance(mdp, LinearMDP):
        raise ValueError(
            f"mdp is of the type {type(mdp).__name__}: give the LinearMDP that the data are from, such as "
            "worlds.chain_mdp()."
        )
    if data.state_features.shape != mdp.features.shape:
        raise ValueError(
            f"the data have features of shape {data.state_features.shape} [S, A, d], the MDP of {mdp.features.shape}: "
            "give the MDP that the data are from."
        )


def conduct_of(attack: Attack) -> Conduct:
    """What an attack in `ATTACKS` promises."""
    return vars(attack)["conduct"]


def attacks_in(modules: Iterable[ModuleType], first: Iterable[str]) -> dict[str, Attack]:
    """Every `listed` function by its name: those in `first` in that order, the others by name.

    **Raises:** ValueError for two with one name.
    """
    functions = [
        value for module in modules for value in vars(module).values() if isinstance(value, FunctionType)
    ]
    return in_order(by_name((f.__name__, f) for f in functions if "conduct" in vars(f)), first)
