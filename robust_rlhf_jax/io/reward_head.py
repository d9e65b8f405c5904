"""A linear reward as a safetensors file: θ, the featuriser's arrays, and what they mean.

`RewardModel.save` (`rewards/model.py`) keeps the whole fit instead.
"""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from robust_rlhf_jax.unfinished import whole_path

from .bad_cells import shown
from .featurisers import Featuriser, FormatFeatures, HashedNgrams, LocalModel
from .frames import in_order, usual_names

FORMAT, VERSION = "robust_rlhf_jax.reward_head", 1
# Featurisers that a file can hold, as their settings call them.
KINDS = ("format", "hashed", "model")


@dataclasses.dataclass(frozen=True)
class RewardHead:
    """r(prompt, response) = θᵀφ. `names` [p]; `theta` [p]; `featuriser`: φ of texts, None for numbers.

    **Raises:** ValueError for another number of names.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.io import RewardHead
    >>> RewardHead(("a", "b"), np.array([1.0, -2.0])).reward(np.array([[3.0, 1.0]]))
    array([1.])
    """

    names: tuple[str, ...]
    theta: Float[np.ndarray, " p"]
    featuriser: Featuriser | None = None
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        theta = np.asarray(self.theta)
        object.__setattr__(self, "names", tuple(map(str, self.names)))
        object.__setattr__(self, "theta", theta.astype(np.result_type(theta, np.float32), copy=False))
        if self.theta.shape != (len(self.names),):
            raise ValueError(
                f"theta has shape {theta.shape}: give a number for each of {len(self.names)} names."
            )

    def reward(self, features: Float[np.ndarray, "N p"]) -> Float[np.ndarray, " N"]:
        """θᵀφ of rows of features; the columns of a data frame, or the entries of one row of it, by their names, as
        `RewardModel` takes them.

        **Raises:** ValueError for another number of features, or a data frame that lacks one.
        """
        named = () if tuple(self.names) == usual_names(len(self.names)) else self.names
        values = np.asarray(in_order(features, named, len(self.theta)))
        if values.shape[-1:] != self.theta.shape:
            some = ", ".join(self.names[:12])
            raise ValueError(f"features has shape {values.shape}: give [N, {len(self.theta)}]: {some}.")
        return values @ self.theta

    def reward_texts(self, prompts: list[str], responses: list[str]) -> Float[np.ndarray, " N"]:
        """θᵀφ(prompt, response).

        **Raises:** ValueError for a head of numbers.
        """
        if self.featuriser is None:
            raise ValueError("this reward head is of numbers, not of texts: give features to reward().")
        return self.reward(self.featuriser.transform(prompts, responses))

    def save(self, path: str | os.PathLike) -> None:
        """Write the head as safetensors, whole or not at all; its metadata say what the numbers are.

        **Raises:** ImportError without safetensors.
        """
        with whole_path(Path(path)) as scratch:
            self.write(scratch)

    def write(self, path: Path) -> None:
        """What `save` writes, at a `path` that `whole_path` gave."""
        from safetensors.numpy import save

        arrays = {} if self.featuriser is None else self.featuriser.arrays()
        tensors = {"theta": np.ascontiguousarray(self.theta, np.float32)}
        tensors |= {f"featuriser.{k}": np.ascontiguousarray(v) for k, v in arrays.items()}
        settings = None if self.featuriser is None else self.featuriser.settings()
        metadata = {
            "format": FORMAT, "version": str(VERSION), "names": json.dumps(self.names),
            "featuriser": json.dumps(settings), "facts": json.dumps(self.facts),
        }  # fmt: skip
        # save_file is not used: it puts a file of its own, which only its owner may read and nobody holds, in place of
        # the one that whole_path made, and has errors of its own for a full disk.
        path.write_bytes(save(tensors, metadata))

    @staticmethod
    def load(path: str | os.PathLike) -> "RewardHead":
        """The head that `save` wrote.

        **Raises:** ValueError for a file that `save` did not write, of another version, or of texts whose featuriser is
        not one of ours.
        """
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(path), framework="numpy") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise ValueError(f"{path} is no reward head ({error}): give a file that --head wrote.") from None
        if (metadata.get("format"), metadata.get("version")) != (FORMAT, str(VERSION)):
            raise ValueError(f"{path} is no reward head of version {VERSION}: give a file that --head wrote.")
        try:
            names, settings, facts = (json.loads(metadata[part]) for part in ("names", "featuriser", "facts"))
            made = None if settings is None else _featuriser(path, settings, tensors)
            return RewardHead(tuple(names), tensors["theta"], made, facts)
        except (KeyError, json.JSONDecodeError) as error:
            raise ValueError(f"{path} is damaged ({error}): write the head again.") from None


def loadable(made: Featuriser) -> bool:
    """Whether a head of texts by this featuriser is what `RewardHead.load` gives back."""
    return type(made) in (FormatFeatures, LocalModel, HashedNgrams)


def _featuriser(path: Any, settings: dict[str, Any], tensors: dict[str, np.ndarray]) -> Featuriser:
    kind = settings.get("featuriser")
    if kind not in KINDS:
        raise ValueError(
            f"{path} is of the featuriser {shown(kind)}, which is none of {', '.join(KINDS)}: save the head without "
            "it, and give features to reward()."
        )
    if kind == "format":
        return FormatFeatures()
    if kind == "model":
        return LocalModel(settings["path"])
    made = HashedNgrams(settings["components"], settings["buckets"])
    made.idf, made.directions, made.formats = (
        tensors[f"featuriser.{k}"] for k in ("idf", "directions", "formats")
    )
    return made
