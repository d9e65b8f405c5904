"""A random key by name: what is drawn for a name is the same whatever other names there are."""

import zlib

import jax


def named_key(key: jax.Array, name: str) -> jax.Array:
    """A key of its own for `name`."""
    return jax.random.fold_in(key, zlib.crc32(name.encode()))
