"""Pure maths on arrays: unbatched, jit- and vmap-able, importing nothing else of the package."""
