"""The memory that a compiled program needs, from the compiler's own account."""


def peak_memory_bytes(program, *arguments) -> int | None:
    """Arguments, outputs and temporaries of a jitted program, shared buffers counted once; None if it is not jitted.

    After a call with the same arguments this does not compile again.
    """
    if not hasattr(program, "lower"):
        return None
    compiled = program.lower(*arguments).compile()
    # Equinox wraps what JAX compiled.
    found = getattr(compiled, "compiled", compiled).memory_analysis()
    if found is None:
        return None
    held = found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes
    return held - found.alias_size_in_bytes
