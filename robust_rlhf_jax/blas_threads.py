"""The threads of BLAS and LAPACK, which go on spinning for a while after each call, small as it may be."""

import contextlib
from collections.abc import Iterator

# Columns up to which matrices are small: products and factors of them take less time than the threads waste.
SMALL = 128


@contextlib.contextmanager
def one_if_small(columns: int) -> Iterator[None]:
    """One thread of BLAS meanwhile, where matrices have few columns; as many as before where they have more.

    JAX and SciPy call the same library thousands of times in a fit to few features.

    **Raises:** ImportError without threadpoolctl, which the extra `cli` brings.
    """
    if columns > SMALL:
        yield
        return
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield
