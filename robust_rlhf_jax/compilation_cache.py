"""Compiled programs kept between runs of the command; importing the library never touches them."""

import os
import stat
from pathlib import Path

import jax

VARIABLE = "ROBUST_RLHF_CACHE"


def keep_compiled_programs() -> None:
    """Turn on JAX's persistent cache in the user's cache folder, or in $ROBUST_RLHF_CACHE; "off" there leaves it off.

    All programs are kept: building the worlds is hundreds of small ones. A cache folder that was set up for JAX
    itself (JAX_COMPILATION_CACHE_DIR) stays in use. A new folder is for its owner alone.

    **Raises:** ValueError for a folder that others can write to: its programs would run as this user.
    """
    folder = os.environ.get(VARIABLE) or None
    if folder == "off":
        return
    if folder is None and getattr(jax.config, "jax_compilation_cache_dir", None):
        return
    folder = folder or _users_folder()
    _claim(Path(folder))
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def keeps_compiled_programs() -> bool:
    """Whether a process that calls `keep_compiled_programs` finds what another one has compiled."""
    return os.environ.get(VARIABLE) != "off" or bool(getattr(jax.config, "jax_compilation_cache_dir", None))


def _claim(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise ValueError(
            f"{VARIABLE}: {folder} cannot be a cache of compiled programs ({error.strerror}): set another, or off."
        ) from None
    if not hasattr(os, "getuid"):  # Windows, which has other permissions
        return
    others = stat.S_IMODE(found.st_mode) & (stat.S_IWGRP | stat.S_IWOTH)
    if others or found.st_uid not in (os.getuid(), 0):
        raise ValueError(
            f"{VARIABLE}: others can write to {folder}, and programs from there would run in your name: "
            f"chmod 700 it, or set {VARIABLE} to a folder of your own or to off."
        )


def _users_folder() -> str:
    import platformdirs

    return platformdirs.user_cache_dir("robust-rlhf-jax")
