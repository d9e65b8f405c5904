"""A fitted reward: its values, the pairs that it believes, what it cannot know, and its file.

For trainers elsewhere, `io/reward_head.py` writes θ as safetensors.
"""

import json
import os
import tokenize
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.checks import is_traced
from robust_rlhf_jax.io.frames import in_order, is_frame
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.module import Module
from robust_rlhf_jax.row_order import check_rows
from robust_rlhf_jax.unfinished import whole_path

from .config import RobustFit
from .contamination import NoiseByMargin
from .explanations import Explanations

FORMAT = "robust_rlhf_jax.RewardModel"
VERSION = 5
CERTAINTY = RobustFit().certainty
# Under `jax.vmap` a model is a batch of fits, whereas its methods are about one fit.
_ONE = "take one by jax.tree.map(lambda leaf: leaf[i], model)"


class RewardModel(Module):
    """r(φ) = θᵀφ fitted by `fit_reward`, and how sure one can be of it. Arrays, and static `names`, so that it vmaps.

    Features go in as arrays [..., k], or as a data frame, whose columns are taken by the `names` of the features. A
    prefix or suffix that all columns share is ignored; else further columns are. Models of different `names` are
    different pytrees.

    | field | shape | meaning |
    |---|---|---|
    | `theta` | [k] | θ̂, per unit of each feature; where pairs are left out, of the length that comes nearest to \
`probability`: shorter than maximum likelihood on the kept pairs, since as many may be corrupt unseen |
    | `weights` | [N] | what each pair counted in the fit, the chance that it is honest: below ½ where it is left out; \
where two rewards contend, a mean over both, and perhaps nowhere below ½ |
    | `suspicion` | [N] | in [0, 1]: how likely each pair is to be corrupt |
    | `epsilon` | | share of the pairs that the data give reason to leave out, the mean of 1 − `weights` of the \
decided ones; 0: maximum likelihood, plain or with slips (`label_noise`) |
    | `interval` | [2] | what is certain to be corrupt, and what could be, up to the ceiling (`estimate_epsilon`) |
    | `rank` | | dimension of the span of the differences: what the data speak about |
    | `doubted` | [m, k] | unit directions of θ that only left-out pairs cover; rows of 0 where traced |
    | `undisputed` | [N] | 1 for pairs that every plausible explanation of the data keeps |
    | `label_noise` | | what `probability` takes for noise everywhere: the share found corrupt, at most ε/2; without \
corruption 0, or the share of labels that are the toss of a coin |
    | `explanations` | | `Explanations`: every reward that might explain the pairs, and how far it is believed |
    | `tie` | | Davidson's ν: P(tie) is ν/(2 + ν) between equally good options; 0 where no pair is a tie |
    | `n_decided` | | pairs of the N that are no tie and have weight: those that θ is fitted to |
    | `status` | | a `Status` code: converged, separable (a reward explains every label, or they ask for a longer θ \
than the prior allows), max_steps, nonfinite |
    | `names` | | of the k features, as `Pairs` have them; () where nobody named them: columns count by their place |

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
    label_noise: Float[Array, ""]
    explanations: Explanations
    tie: Float[Array, ""]
    n_decided: Int[Array, ""]
    status: Int[Array, ""]
    names: tuple[str, ...] = eqx.field(static=True, default=())

    def reward(self, features: Float[Array, "*b k"]) -> Float[Array, "*b"]:
        """θᵀφ of features [..., k]: of an option, or of a trajectory laid out as the differences were.

        Only differences of rewards mean anything, and where features share a large offset, as timestamps do, the
        precision of θ rounds them away: compare by `probability` or `algorithms.best_of_n`, which subtract first.

        **Raises:** ValueError for what is no array of numbers, another number of features, a data frame that lacks one,
        or a model of several fits (under `jax.vmap` it is of one), here and in the probabilities; there for two data
        frames whose rows have the same index in another order, and for other numbers of options, too.
        """
        return matmul(self._features(features), self.theta)

    def probability(self, first: Float[Array, "*b k"], second: Float[Array, "*b k"]) -> Float[Array, "*b"]:
        """P(first is preferred to second).

        Without evidence of corruption σ(θᵀ(φ_first − φ_second)) (paper: Assumption 2.1), or, if honest labels are
        slips in a share λ (`label_noise`), (1 − λ)σ + λ/2. With evidence
        Σ_e p_e [(1 − ν_e)σ(θ_eᵀ(φ_first − φ_second)) + ν_e/2]: as far as each explanation is believed. ν_e, the chance
        that a label means nothing, comes of the `label_noise` and, independently, of the share that the explanation
        calls corrupt among pairs of such a margin. θ is the mean of the explanations, or of those that hardly differ
        from one of them, whichever comes nearest to this at its best length.

        **Example:**

        >>> from robust_rlhf_jax import fit_reward, load_rail_choices
        >>> data = load_rail_choices()
        >>> model = fit_reward(data)
        >>> first, second = data.features[0, 0, 0], data.features[0, 1, 0]
        >>> bool(abs(model.probability(first, second) + model.probability(second, first) - 1) < 1e-6)
        True
        """
        difference = self._difference(first, second)
        return self.explanations.mean_probability(self.label_noise, difference)

    def outcome_probabilities(
        self, first: Float[Array, "*b k"], second: Float[Array, "*b k"]
    ) -> Float[Array, "*b 3"]:
        """P(first is preferred), P(tie), P(second is preferred).

        Of decided pairs `probability` says what is preferred; a tie has Σ_e p_e ν/(e^{m_e/2} + e^{−m_e/2} + ν), m_e the
        margin under explanation e.

        **Source:** Davidson 1970 (`likelihood/davidson.py`).

        **Example:**

        >>> import numpy as np
        >>> from robust_rlhf_jax import Pairs, fit_reward
        >>> chosen = np.repeat([[1.0], [0.0], [0.0]], [6, 2, 3], axis=0)
        >>> pairs = Pairs(chosen, 1.0 - chosen, strength=np.repeat([1.0, 1.0, 0.0], [6, 2, 3]))  # three ties
        >>> model = fit_reward(pairs)
        >>> [round(float(p), 2) for p in model.outcome_probabilities(np.ones(1), np.zeros(1))]
        [0.48, 0.27, 0.25]
        """
        difference = self._difference(first, second)
        return self.explanations.outcome_probabilities(self.label_noise, self.tie, difference)

    def _features(self, given: Float[Array, "*b k"]) -> Float[Array, "*b k"]:
        ordered = self._in_order(given)
        if np.iscomplexobj(ordered):  # of which the real part would count
            raise self._no_numbers(ordered)
        try:
            _check_no_texts(ordered)
            features = jnp.asarray(ordered, self.theta.dtype)
        except (TypeError, ValueError):
            raise self._no_numbers(given) from None
        self._check(features.shape)
        return features

    def _in_order(self, given: Any) -> Any:
        if hasattr(given, "toarray"):
            raise ValueError("the features are a sparse matrix: give its toarray().")
        return in_order(given, self.names, self.theta.shape[-1])

    def _check(self, shape: tuple[int, ...]) -> None:
        k = self.theta.shape[-1]
        if self.theta.ndim != 1:
            raise ValueError(
                f"the model holds fits of the shape {self.theta.shape[:-1]}: {_ONE}, or call this under jax.vmap."
            )
        if shape[-1:] != (k,):
            raise ValueError(f"the features have the shape {shape}: give [..., {k}], as in the fit.")

    def _difference(self, first: Float[Array, "*b k"], second: Float[Array, "*b k"]) -> Float[Array, "*b k"]:
        """φ_first − φ_second, subtracted in the features' own precision as in the fit."""
        if is_frame(first) and is_frame(second):  # the index of a single row names features
            check_rows(first=first, second=second)
        if isinstance(first, jax.Array) or isinstance(second, jax.Array):
            first, second = self._features(first), self._features(second)
            _check_together(first, second)
            return first - second
        first, second = (np.asarray(self._in_order(side)) for side in (first, second))
        for side in (first, second):
            self._check(side.shape)
        _check_together(first, second)
        try:
            _check_no_texts(first)
            _check_no_texts(second)
            difference = np.subtract(first, second, dtype=np.result_type(first, second, np.float32))
        except TypeError:
            raise self._no_numbers(first if first.dtype.kind in "USO" else second) from None
        return self._features(difference)

    def _no_numbers(self, given: Any) -> ValueError:
        """The error for features that are texts, complex, `Pairs`, a file, or nothing."""
        what = getattr(given, "dtype", type(given).__name__)
        return ValueError(
            f"the features are of the type {what}: give an array of numbers, [..., {self.theta.shape[-1]}]; of texts "
            "or Pairs, what their features are, such as pairs.chosen."
        )

    def __repr__(self) -> str:
        """What the fit found, outside of jit and vmap; else the shapes."""
        if is_traced(self.theta) or self.theta.ndim != 1 or is_traced(self.status):
            return super().__repr__()
        theta = np.array2string(np.asarray(self.theta), precision=3, threshold=10, edgeitems=3)
        return f"RewardModel(theta={theta})\n{self.message}"

    @property
    def message(self) -> str:
        """One or two sentences on what the fit found. Not under jit."""
        return self.described()

    def described(self, names: Sequence[str] | None = None, *, hints: bool = True) -> str:
        """`message`, features by their `names` [k] instead of their numbers. Not under jit.

        `hints`: whether it says what to do next with the arguments and methods of Python.
        """
        if is_traced(self.status):
            raise ValueError("message needs the fit's values: read it outside of jit and vmap.")
        if self.theta.ndim != 1:
            raise ValueError(f"message is of one fit: {_ONE}.")
        others = (self._contention(hints), self._beyond(hints))
        parts = (self._verdict(hints), self._ties(), *others, self._doubts(names), self._warning())
        return " ".join(part for part in parts if part)

    def _verdict(self, hints: bool) -> str:
        n = int(self.n_decided)
        pairs = "pairs" if n == self.weights.shape[-1] else "decided pairs"
        every = f"all {n:,} {pairs}" if n > 1 else f"one {pairs.removesuffix('s')}"
        low, high = (100 * float(v) for v in self.interval)
        if float(self.epsilon) > 0:
            out = round(n * float(self.epsilon))
            share = f"{out:,} of {n:,} {pairs} ({100 * float(self.epsilon):.1f} %)"
            said = f"{share} {'is' if out == 1 else 'are'} contradicted by the rest and left out"
            if low >= high:  # the evidence exceeds what was left out, and that exceeds ε
                return f"{said}; more look corrupt than ε allows.{' Give a larger ε.' if hints else ''}"
            return f"{said}; between {low:.1f} and {high:.1f} % may be corrupt."
        if low > 0:
            return (
                f"At least {low:.1f} % of the pairs contradict every reward, more than ε allows: {every} count, and "
                f"corrupt ones may decide.{' Give a larger ε.' if hints else ''}"
            )
        if high == 0 and int(self.status) != Status.SEPARABLE:
            return f"ε = 0 allows no corruption: maximum likelihood on {every}, none of them doubted."
        if float(self.label_noise) > 0:
            slips = 50 * float(self.label_noise)
            return f"No evidence of corruption: {every} count, and about {slips:.1f} % of the labels look like slips."
        few = f" {n:,} {pairs} are too few to doubt any of them." if 1 < n < self._enough() else ""
        return f"No evidence of corruption: maximum likelihood on {every}.{few}"

    def _ties(self) -> str:
        nu = float(self.tie)
        return (
            f"Two equally good options tie in {100 * nu / (2 + nu):.0f} % of comparisons." if nu > 0 else ""
        )

    def _enough(self) -> float:
        """Pairs from which a share of .05 that contradicts the rest for certain could be seen: each tells at most about
        log 1/.05 = 3 nats, of which a fit of `rank` numbers hides one each.
        """
        return 20.0 * (CERTAINTY + float(self.rank)) / 3.0

    def _contention(self, hints: bool) -> str:
        other = self.contending()
        if other is None:
            return ""
        believed = 100 * float(self.explanations.belief[other])
        out = 100 * float(self.explanations.needed[other])
        return (
            f"Another reward explains the pairs, too ({believed:.0f} % likely): it needs {out:.1f} % of them to be "
            f"corrupt.{' Ask raters again about the pairs that `deciding()` lists.' if hints else ''}"
        )

    def _beyond(self, hints: bool) -> str:
        other, each = self.explanations.beyond(), self.explanations
        # The verdict itself says so if too many pairs contradict every reward.
        if other is None or (float(self.epsilon) == 0 and float(self.interval[0]) > 0):
            return ""
        return (
            f"Another reward explains the pairs better, by {each.ahead()[other]:.0f} nats, but needs "
            f"{100 * float(each.needed[other]):.1f} % of them to be corrupt, more than ε allows."
            f"{' Compare with a larger ε.' if hints else ''}"
        )

    def contending(self) -> int | None:
        """The row of `explanations` that contends with the likeliest one (`Explanations.contending`), or None."""
        return self.explanations.contending()

    def deciding(self, most: int = 20) -> Int[np.ndarray, " M"]:
        """The pairs that tell the likeliest and the contending reward apart (`Explanations.deciding`)."""
        return self.explanations.deciding(most)

    def _doubts(self, names: Sequence[str] | None) -> str:
        rows = np.asarray(self.doubted)
        rows = rows[np.abs(rows).max(axis=1, initial=0.0) > 0]
        # If no pair is left out, there is no such pair.
        if not len(rows) or float(self.epsilon) == 0:
            return ""
        places = sorted({int(np.argmax(np.abs(row))) for row in rows})
        listed = ", ".join(str(place if names is None else names[place]) for place in places)
        return f"Only pairs that were left out tell what feature {listed} is worth: doubt θ there."

    def _warning(self) -> str:
        status = Status(int(self.status))
        return {
            Status.SEPARABLE: (
                "The labels ask for a longer θ than the prior allows, as they do where a reward explains them all: the "
                "length of θ comes from the prior."
            ),
            Status.MAX_STEPS: "The fit stopped at its step limit.",
            Status.NONFINITE: "The fit met a number that is not finite.",
        }.get(status, "")

    def save(self, path: str | os.PathLike) -> None:
        """Write the model as .npz: plain arrays and a line of JSON, no pickle. Whole or not at all.

        **Raises:** OSError if the file cannot be written.
        """
        arrays = {name: np.asarray(getattr(self, name)) for name in _FIELDS}
        arrays |= {_EACH + name: np.asarray(part) for name, part in _flat(self.explanations).items()}
        arrays["names"] = np.asarray(json.dumps(self.names))
        header = json.dumps({"format": FORMAT, "version": VERSION})
        with whole_path(Path(path)) as scratch, open(scratch, "wb") as file:
            np.savez(file, allow_pickle=False, header=np.asarray(header), **arrays)

    @staticmethod
    def load(path: str | os.PathLike) -> "RewardModel":
        """The model that `save` wrote.

        **Raises:** ValueError for a file that `save` did not write; OSError if it cannot be read.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                header = json.loads(str(file["header"]))
                if header != {"format": FORMAT, "version": VERSION}:
                    raise _OtherVersion(header)
                arrays = {name: jnp.asarray(file[name]) for name in _FIELDS}
                each = {name: jnp.asarray(file[_EACH + name]) for name in _PARTS}
                # Files from before there were names have none.
                names = tuple(map(str, json.loads(str(file["names"])))) if "names" in file else ()
        except _OtherVersion as error:
            raise ValueError(
                f"{path} was written by another version ({error}): fit the reward again."
            ) from None
        except (zipfile.BadZipFile, TypeError):
            # `np.load` gives an array, which no `with` takes, for a file of one array.
            raise ValueError(
                f"{path} is no reward model (not an .npz file): give a file that save wrote."
            ) from None
        except (ValueError, KeyError, EOFError, SyntaxError, tokenize.TokenError) as error:
            # NumPy takes a text for a pickle, and says how to load it all the same.
            said = "not an .npz file" if "unsafely" in str(error) else error
            raise ValueError(f"{path} is no reward model ({said}): give a file that save wrote.") from None
        noise = NoiseByMargin(each.pop("noise_margins"), each.pop("noise_rates"))
        return RewardModel(explanations=Explanations(**each, noise=noise), **arrays, names=names)


def _check_no_texts(features: Any) -> None:
    """**Raises:** TypeError for texts, of which NumPy would read the numbers, as `Pairs` refuse them."""
    if any(isinstance(part, jax.Array) for part in jax.tree.leaves(features)):  # which hold none
        return
    values = np.asarray(features)
    if values.dtype.kind in "USO" and any(isinstance(cell, str | bytes) for cell in values.flat):
        raise TypeError


def _check_together(first: Any, second: Any) -> None:
    """**Raises:** ValueError for other numbers of options on the two sides, unless one side has one."""
    try:
        np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        raise ValueError(
            f"first has shape {first.shape} and second {second.shape}: give as many options in both, or one."
        ) from None


def kept(model: RewardModel) -> Bool[np.ndarray, " N"]:
    """The pairs that the fit did not leave out: those that are likelier honest than not."""
    return np.asarray(model.weights) >= 0.5


class _OtherVersion(Exception):
    """A file whose header is of another version."""


def _flat(explanations: Explanations) -> dict[str, Array]:
    parts = explanations._asdict()
    noise = parts.pop("noise")
    return parts | {"noise_margins": noise.margins, "noise_rates": noise.rates}


_EACH = "explanations_"
_PARTS = (*(name for name in Explanations._fields if name != "noise"), "noise_margins", "noise_rates")
_FIELDS = (
    "theta", "weights", "suspicion", "epsilon", "interval", "rank", "doubted", "undisputed", "label_noise", "tie",
    "n_decided", "status",
)  # fmt: skip
