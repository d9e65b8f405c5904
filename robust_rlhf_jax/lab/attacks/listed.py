"""What an attack declares: `@listed()` puts it into `ATTACKS`, and the tests hold it to its `Conduct`."""

from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import NamedTuple, TypeVar

from robust_rlhf_jax.collected import by_name, in_order

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
    """Puts the function below it into `ATTACKS`, with its `Conduct`."""

    def mark(attack: Function) -> Function:
        attack.__dict__["conduct"] = Conduct(untouched, at_most, draws_pairs, off_table)
        return attack

    return mark


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
