"""A fitted reward: what it pays, whom it believed, what it could not know, and its file.

For trainers elsewhere, `io/reward_head.py` writes θ as safetensors.
"""

import json
import os
import tokenize
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.checks import is_traced
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.module import Module

FORMAT = "robust_rlhf_jax.RewardModel"
VERSION = 1


class RewardModel(Module):
    """r(φ) = θᵀφ fitted by `fit_reward`. Arrays only, so that it vmaps.

    | field | shape | meaning |
    |---|---|---|
    | `theta` | [k] | θ̂, per unit of each feature |
    | `weights` | [N] | what each pair counted in the fit: 0 where it was left out |
    | `suspicion` | [N] | in [0, 1]: how likely each pair is to be corrupt |
    | `epsilon` | | share of the pairs that the data give reason to leave out; 0: plain maximum likelihood |
    | `interval` | [2] | what is certain to be corrupt, and what could be, up to the ceiling (`estimate_epsilon`) |
    | `rank` | | dimension of the span of the differences: what the data speak about |
    | `doubted` | [m, k] | unit directions of θ that only left-out pairs cover; rows of 0 where traced |
    | `undisputed` | [N] | 1 for pairs that every plausible explanation of the data keeps |
    | `status` | | a `Status` code: converged, separable (‖θ‖ stopped at its bound), max_steps, nonfinite |

    **Example:**

    >>> from robust_rlhf_jax import fit_reward, load_rail_choices
    >>> model = fit_reward(load_rail_choices())
    >>> float(model.epsilon)
    0.0
    """

    theta: Float[Array, " k"]
    weights: Float[Array, " N"]
    suspicion: Float[Array, " N"]
    epsilon: Float[Array, ""]
    interval: Float[Array, "2"]
    rank: Int[Array, ""]
    doubted: Float[Array, "m k"]
    undisputed: Float[Array, " N"]
    status: Int[Array, ""]

    def reward(self, features: Float[Array, "*b k"]) -> Float[Array, "*b"]:
        """θᵀφ of features [..., k]: of an option, or of a trajectory laid out as the differences were."""
        return matmul(jnp.asarray(features, self.theta.dtype), self.theta)

    def probability(self, first: Float[Array, "*b k"], second: Float[Array, "*b k"]) -> Float[Array, "*b"]:
        """P(first is preferred to second) = σ(θᵀ(φ_first − φ_second)) (paper: Assumption 2.1)."""
        return jax.nn.sigmoid(self.reward(jnp.asarray(first) - jnp.asarray(second)))

    @property
    def message(self) -> str:
        """One or two sentences on what the fit found. Not under jit."""
        if is_traced(self.status):
            raise ValueError("message needs the fit's values: read it outside of jit and vmap.")
        return " ".join(part for part in (self._verdict(), self._doubts(), self._warning()) if part)

    def _verdict(self) -> str:
        n = self.weights.shape[-1]
        if not float(self.epsilon) > 0:
            return self._plain_verdict(n)
        low, high = (100 * float(v) for v in self.interval)
        out = round(n - float(jnp.sum(self.weights)))
        return (
            f"{out:,} of {n:,} pairs ({100 * float(self.epsilon):.1f} %) are contradicted by the rest and left out; "
            f"between {low:.1f} and {high:.1f} % may be corrupt."
        )

    def _plain_verdict(self, n: int) -> str:
        low = 100 * float(self.interval[0])
        if low > 0:
            return (
                f"At least {low:.1f} % of the pairs contradict every reward, but no explanation of it stands out: "
                f"maximum likelihood on all {n:,} pairs, which corrupt pairs may decide."
            )
        return f"No evidence of corruption: maximum likelihood on all {n:,} pairs."

    def _doubts(self) -> str:
        rows = np.asarray(self.doubted)
        rows = rows[np.abs(rows).max(axis=1, initial=0.0) > 0]
        if not len(rows):
            return ""
        names = sorted({int(np.argmax(np.abs(row))) for row in rows})
        listed = ", ".join(str(name) for name in names)
        return f"Only pairs that were left out tell what feature {listed} is worth: doubt θ there."

    def _warning(self) -> str:
        status = Status(int(self.status))
        return {
            Status.SEPARABLE: "A reward explains every label (they are separable): θ has a direction, but no length.",
            Status.MAX_STEPS: "The fit stopped at its step limit.",
            Status.NONFINITE: "The fit met a number that is not finite.",
        }.get(status, "")

    def save(self, path: str | os.PathLike) -> None:
        """Write the model as .npz: plain arrays and a line of JSON, no pickle. Whole or not at all.

        **Raises:** OSError if the file cannot be written.
        """
        arrays = {name: np.asarray(getattr(self, name)) for name in _FIELDS}
        header = json.dumps({"format": FORMAT, "version": VERSION})
        scratch = f"{os.fspath(path)}.{os.urandom(6).hex()}.part"
        try:
            with open(scratch, "wb") as file:
                np.savez(file, allow_pickle=False, header=np.asarray(header), **arrays)
            os.replace(scratch, path)
        finally:
            if os.path.exists(scratch):
                os.remove(scratch)

    @staticmethod
    def load(path: str | os.PathLike) -> "RewardModel":
        """The model that `save` wrote.

        **Raises:** ValueError for a file that is none; OSError if it cannot be read.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                header = json.loads(str(file["header"]))
                arrays = {name: file[name] for name in _FIELDS}
        except (zipfile.BadZipFile, TypeError):
            # `np.load` gives an array, which no `with` takes, for a file of one array.
            raise ValueError(
                f"{path} is no reward model (not an .npz file): give a file that save wrote."
            ) from None
        except (ValueError, KeyError, EOFError, SyntaxError, tokenize.TokenError) as error:
            raise ValueError(f"{path} is no reward model ({error}): give a file that save wrote.") from None
        if header != {"format": FORMAT, "version": VERSION}:
            raise ValueError(f"{path} was written by another version ({header}): fit the reward again.")
        return RewardModel(**{name: jnp.asarray(array) for name, array in arrays.items()})


_FIELDS = (
    "theta", "weights", "suspicion", "epsilon", "interval", "rank", "doubted", "undisputed", "status"
)  # fmt: skip
