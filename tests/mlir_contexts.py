"""Contexts of MLIR that programs share: making one takes two thirds of what a small program takes from the cache."""

import threading

from jax._src.interpreters import mlir

# A context keeps the constants of every program that was lowered in it.
PROGRAMS_OF_A_CONTEXT = 200


class SharedContexts(threading.local):
    """Gives each thread one context for `programs` calls, then a new one. Nothing says that threads may share one."""

    def __init__(self, make, programs=PROGRAMS_OF_A_CONTEXT):
        self.make, self.programs = make, programs
        self.calls, self.context = 0, None

    def __call__(self):
        if self.calls % self.programs == 0:
            self.context = self.make()
        self.calls += 1
        return self.context


def share_contexts() -> None:
    """Let JAX lower its programs in such contexts, if this version makes them by the function that is replaced."""
    make = getattr(mlir, "make_ir_context", None)
    if make is not None:
        mlir.make_ir_context = SharedContexts(make)
