"""Arrays and names for the rivals: NumPy and PyTorch on the same numbers, with the threads that they use."""

import importlib.util
import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_info


def blas_threads():
    return max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)


def in_numpy(arrays):
    return [np.asarray(array) for array in arrays]


def in_torch(arrays):
    """Tensors on JAX's own memory where PyTorch knows the device, else copies on the host."""
    import torch

    if next(iter(arrays[0].devices())).platform == "cpu" or torch.cuda.is_available():
        with warnings.catch_warnings():  # a JAX array is read-only, and nothing here writes
            warnings.simplefilter("ignore", UserWarning)
            return [torch.from_dlpack(array) for array in arrays]
    return [torch.from_numpy(np.array(array)) for array in arrays]


def _torch_run(function, tensors):
    """(name, run); a run on a GPU is waited for, as JAX's are."""
    import torch

    if tensors[0].device.type == "cpu":
        return f"PyTorch, {torch.get_num_threads()} threads", lambda: function(*tensors)

    def run():
        out = function(*tensors)
        torch.cuda.synchronize()
        return out

    return "PyTorch, same GPU", run


def rival_run(rival, functions, arrays):
    """(name, run) of `functions[rival]` on the arrays, by "NumPy", "SciPy" or "PyTorch"; skips what is not installed.

    The name tells the threads: those of NumPy and SciPy are BLAS's, the rest of both runs on one.
    """
    if rival == "PyTorch":
        if importlib.util.find_spec("torch") is None:
            pytest.skip("PyTorch is not installed")
        return _torch_run(functions[rival], in_torch(arrays))
    host = in_numpy(arrays)
    return f"{rival}, BLAS on {blas_threads()} threads", lambda: functions[rival](*host)


def assert_same(found, other, **tolerances):
    """Our result and the rival's agree, leaf by leaf."""
    for mine, theirs in zip(found, other, strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(theirs), **tolerances)


def score_above_by_sort(scores, weights, mass):
    """The score above which `mass` of the weights lies, by a sort, in NumPy."""
    order = np.argsort(-scores)
    return scores[order[np.searchsorted(np.cumsum(weights[order], dtype=np.float64), mass)]]
