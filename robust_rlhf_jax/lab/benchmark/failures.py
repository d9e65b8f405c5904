"""What is said of an error in somebody's own code: one line, where JAX writes a page."""

from jax.errors import JAXTypeError

# A callback's whole traceback is in the message of JAX's error: its last frame comes before what was raised.
TRACEBACK, FRAME = "Traceback (most recent call last):", '  File "'


def reason_of(error: Exception) -> str:
    """Its type and first paragraph in one line; of a callback's error those of what the callback raised.

    **Example:**

    >>> from robust_rlhf_jax.lab.benchmark.failures import reason_of
    >>> reason_of(ValueError("no pairs:\\n  give some\\n\\nSee also …"))
    'ValueError: no pairs: give some'
    """
    name, message = type(error).__name__, str(error)
    if isinstance(error, JAXTypeError):
        return f"{name}: write it in jax.numpy, which jax.jit can compile, or call NumPy through jax.pure_callback"
    if TRACEBACK in message:
        # The line of the last frame, then what was raised.
        return " ".join(message.rpartition(FRAME)[2].partition("\n")[2].split())
    return f"{name}: {' '.join(message.partition(chr(10) * 2)[0].split())}".rstrip(": ")
