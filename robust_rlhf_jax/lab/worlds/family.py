"""What a file of worlds tells sweeps: its `FAMILIES`, each with a builder for every preset that may run it."""

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import NamedTuple

from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.collected import by_name
from robust_rlhf_jax.mdp import LinearMDP, uniform_policy


class World(NamedTuple):
    """A decision problem and the policy [H, S, A] that both trajectories of a pair follow."""

    mdp: LinearMDP
    behaviour: Float[Array, "H S A"]


class Family(NamedTuple):
    """Worlds under one name.

    `builders`: by preset, key → the world, or its MDP alone where pairs follow uniform play; `usual`: among the
    families that stand for the preset, in tests and studies; the others run where `--families` names them.
    """

    name: str
    builders: dict[str, Callable[[PRNGKeyArray], LinearMDP | World]]
    usual: bool = False

    def build(self, preset: str, key: PRNGKeyArray) -> World:
        """The world of this preset, with the policy that pairs follow."""
        built = self.builders[preset](key)
        return World(built, uniform_policy(built)) if isinstance(built, LinearMDP) else built


def families_of(modules: Iterable[ModuleType]) -> dict[str, Family]:
    """The `FAMILIES` of modules that have some, by name.

    **Raises:** ValueError for two with one name.
    """
    families = [family for module in modules for family in getattr(module, "FAMILIES", ())]
    return by_name((family.name, family) for family in families)
