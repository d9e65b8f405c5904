"""Compiled programs kept between runs of the command; importing the library never touches them."""

import os

import jax

VARIABLE = "ROBUST_RLHF_CACHE"


def keep_compiled_programs() -> None:
    """Turn on JAX's persistent cache in the user's cache folder, or in $ROBUST_RLHF_CACHE; "off" there leaves it off.

    All programs are kept: building the worlds is hundreds of small ones. A cache folder that was set up for JAX
    itself (JAX_COMPILATION_CACHE_DIR) stays in use.
    """
    folder = os.environ.get(VARIABLE) or None
    if folder == "off":
        return
    if folder is None and getattr(jax.config, "jax_compilation_cache_dir", None):
        return
    jax.config.update("jax_compilation_cache_dir", folder or _users_folder())
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _users_folder() -> str:
    import platformdirs

    return platformdirs.user_cache_dir("robust-rlhf-jax")
