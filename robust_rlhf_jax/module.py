"""The base class of public modules with methods: `jax.jit` takes those as they are."""

from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax


class Module(eqx.Module):
    """An `eqx.Module` whose bound methods are hashed by identity, whatever arrays the module holds.

    `jax.jit` hashes the function that it is given, and Equinox hashes a bound method by the module's leaves, of which
    arrays have no hash. Here `module.method` is a `jax.tree_util.Partial`: still a pytree, whose arrays
    `eqx.filter_jit` traces; under plain `jax.jit` they are constants of the program, as in any closure.
    """

    if not TYPE_CHECKING:

        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            bound = isinstance(found, eqx.Module) and getattr(found, "__self__", None) is self
            return jax.tree_util.Partial(found.__func__, self) if bound else found
