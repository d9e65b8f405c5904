"""Programs of a thread share a context for a while; what JAX lowers in it is what it lowers in one of its own."""

import threading

import jax
import numpy as np
from jax._src.interpreters import mlir
from mlir_contexts import SharedContexts


def test_a_context_serves_some_programs_of_one_thread():
    made = iter(range(10))
    contexts = SharedContexts(lambda: next(made), programs=2)
    assert [contexts() for _ in range(5)] == [0, 0, 1, 1, 2]
    others = []
    thread = threading.Thread(target=lambda: others.extend(contexts() for _ in range(2)))
    thread.start()
    thread.join()
    assert others == [3, 3]
    assert contexts() == 2


def test_programs_are_those_of_a_context_of_their_own(monkeypatch):
    def lowered():
        function = jax.jit(lambda x: jax.numpy.cumsum(x * 2 + np.arange(3)))
        return function.lower(np.ones(3, np.float32)).compiler_ir("stablehlo")

    make = mlir.make_ir_context.make
    monkeypatch.setattr(mlir, "make_ir_context", SharedContexts(make))
    shared, again = lowered(), lowered()
    assert shared.context is again.context
    monkeypatch.setattr(mlir, "make_ir_context", make)
    alone = lowered()
    assert alone.context is not shared.context
    assert str(alone) == str(shared) == str(again)
