"""What a conclusion needs of a source that memory does not hold, stage by stage, each of some passes."""

import dataclasses
import hashlib
from collections.abc import Callable
from importlib import metadata
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.memory import check_room, give_back
from robust_rlhf_jax.sources import PairSource

from ..comparisons import Comparisons
from ..conclusion import Evidence
from ..config import RobustFit, among_informative
from ..contamination import Cells, cells_of_lengths
from ..coordinates import UnitFreePairs, count_of, informative_rows
from ..decision import Judged
from ..fit import doubted
from ..lack_of_fit import alike_labels
from ..prior_strength import at_bound
from .checkpoint import Checkpoint
from .comparisons import numbers_of_keys
from .config import COPIES, Streaming
from .coordinates import (
    Columns,
    StreamedCoordinates,
    coordinates_of,
    lengths_and_margins,
    level_basis,
    not_all_alike,
    second_moment,
    typical_columns,
)
from .curvature import sample_curvature
from .judging import Measured, dispersed_by_all, judged_by_all, measure, sketch_of
from .passes import Passes
from .same_margins import differ, sampled_differ
from .sample import Found, explanations_of, read_sample, sampled_places
from .settling import Lanes, Sample, Settling

# Float32 numbers per pair that a fit by passes holds at its peak: some ten for each of up to ten explanations.
PER_PAIR = 100
# Matrices of float64 that its coordinates take at their peak, and pairs without which no sample says anything.
MOMENTS, LEAST_SAMPLE = 6, 1024
# The last pass is for the leverages.
LAST = 1
# The first state that a change of any pair would change.
LENGTHS = "lengths"


class Streamed:
    """A fit by passes: each stage is read from the checkpoint, or made and kept there."""

    def __init__(
        self,
        source: PairSource,
        groups: Int[Array, " N"] | None,
        epsilon: float,
        config: RobustFit,
        streaming: Streaming,
    ):
        self.passes = Passes(source, streaming.tell, streaming.engine)
        self.config, self.streaming, self.epsilon = config, streaming, epsilon
        self.groups = None if groups is None else np.asarray(groups)
        self.places = sampled_places(source.n_pairs, _sample_size(source, streaming))
        facts = {
            "source": source.fingerprint(),
            "pairs": [source.n_pairs, source.n_features, len(self.places)],
            "rows": self.passes.rows,
            "version": metadata.version("robust-rlhf-jax"),
            "groups": None if self.groups is None else hashlib.sha256(self.groups.tobytes()).hexdigest(),
            "epsilon": epsilon,
            "config": dataclasses.asdict(config),
            "passes": streaming.passes,
        }
        self.checkpoint = Checkpoint(streaming.folder, facts)
        self.resumed = False

    def evidence(self) -> Evidence:
        """All that a conclusion needs.

        **Raises:** ValueError for a checkpoint of other pairs.
        """
        # States before the lengths hold nothing that could be compared with the pairs as they are now.
        self.resumed = self.checkpoint.load(LENGTHS) is not None
        sample = self._sample()
        coordinates = self._coordinates(sample)
        found = self._found(sample)
        pairs = coordinates.of_rows(sample)
        lengths, margins, comparisons = self._lengths(sample, coordinates, found)
        if self.resumed:
            self._check_same(coordinates, found, margins)
        informative = informative_rows(lengths)
        cells = cells_of_lengths(lengths, informative)
        ceiling = among_informative(self.epsilon, self.passes.n, count_of(informative))
        settling = Settling(
            self.passes,
            coordinates,
            Sample(sample_curvature(pairs), self.places),
            cells,
            self.config.allowance * float(ceiling),
            self.config,
        )
        lanes = self._settled(settling, found, margins)
        measured = self._measured(sample, settling, lanes)
        same = None if comparisons is None else Comparisons(comparisons, informative)
        judged = self._judged(measured, lanes, cells, same)
        return Evidence(
            judged,
            jnp.asarray(lanes.last()[0]),
            lengths,
            self._doubted(pairs, found.unsuspected[lanes.number[1:] - 1], judged),
            jnp.asarray(measured.overdispersion, jnp.float32),
            at_bound(coordinates, jnp.asarray(lanes.strength[0]), self.config),
            coordinates.to_theta,
            coordinates.rank,
            self.passes.n,
        )

    def _judged(self, measured: Measured, lanes: Lanes, cells: Cells, same: Comparisons | None) -> Judged:
        """The explanations by all pairs, which groups and equal comparisons make less certain."""
        judged = judged_by_all(measured, lanes, cells, same)
        if same is not None:
            margins = jnp.asarray(measured.margins[:, : self.passes.n])
            judged = judged._replace(alike=_alike_labels(judged, margins, same, self.config.ceiling))
        if self.groups is not None:
            judged = dispersed_by_all(judged, measured, cells)
        return judged

    def _sample(self) -> Float[Array, "m k"]:
        state = self._state("sample", lambda: {"rows": read_sample(self.passes, self.places)})
        return jnp.asarray(state["rows"])

    def _coordinates(self, sample: Float[Array, "m k"]) -> StreamedCoordinates:
        columns = typical_columns(sample)

        def summed():
            return {"moment": second_moment(self.passes, columns, level_basis(sample, columns))}

        moment = self._state("moment", summed)["moment"]
        not_all_alike(moment)
        return coordinates_of(moment, columns)

    def _found(self, sample: Float[Array, "m k"]) -> Found:
        self._say("explanations of the sample")
        state = self._state("explanations", lambda: explanations_of(sample, self.config)._asdict())
        return Found(**{name: jnp.asarray(array) for name, array in state.items()})

    def _lengths(
        self, sample: Float[Array, "m k"], coordinates: StreamedCoordinates, found: Found
    ) -> tuple[Float[Array, " N"], Float[np.ndarray, "E padded"], Int[Array, " N"] | None]:
        """(Lengths, margins, comparisons), the last None where hardly any pair recurs."""

        def measured():
            lengths, margins, keys = lengths_and_margins(self.passes, coordinates, found.theta)
            self._check_sampled(sample, coordinates.columns, found.theta.T, margins)
            lengths = lengths[: self.passes.n]
            numbers = numbers_of_keys(keys[: self.passes.n], lengths)
            none = np.zeros(0, np.int32)
            return {
                "lengths": lengths,
                "margins": margins,
                "comparisons": none if numbers is None else numbers,
            }

        state = self._state(LENGTHS, measured)
        numbers = state["comparisons"]
        return jnp.asarray(state["lengths"]), state["margins"], jnp.asarray(numbers) if len(numbers) else None

    def _check_same(self, coordinates: StreamedCoordinates, found: Found, margins: np.ndarray) -> None:
        """One pass more after an interruption: whether the pairs have the margins that the checkpoint has.

        The source's fingerprint sees some of them alone, and results of others must not be taken for theirs.
        """
        made = self.passes.made
        _, now, _ = lengths_and_margins(self.passes, coordinates, found.theta)
        self.passes.made = made
        n = self.passes.n
        if differ(margins[:, :n], now[:, :n]).any():
            raise ValueError(
                f"The checkpoint {self.checkpoint.folder} is of pairs that were changed since: remove it, or give "
                "another folder."
            )

    def _check_sampled(
        self,
        sample: Float[Array, "m k"],
        columns: Columns,
        theta: Float[Array, "k E"],
        later: Float[np.ndarray, "E padded"],
    ) -> None:
        """Whether the sampled pairs have the same margins in a later pass as in the first, which costs no pass more.

        Before the state of that pass is kept: a fit that goes on from one of other pairs would be refused each time.

        **Raises:** ValueError for a source that gives other pairs in each pass, such as random ones without a seed.
        """
        others = np.flatnonzero(sampled_differ(sample, columns, theta, later[:, self.places]))
        if len(others):
            place = self.places[others[0]]
            raise ValueError(
                f"the source gave another pair {place:,} (from 0) in pass {self.passes.made} than in the first: it "
                "must give the same every time."
            )

    def _settled(self, settling: Settling, found: Found, margins: Float[np.ndarray, "E padded"]) -> Lanes:
        state = self._kept("settling")
        lanes = settling.begin(found.theta, found.strength, margins) if state is None else Lanes(**state)
        while not lanes.done.all() and self.passes.made < self.streaming.passes - LAST:
            lanes = settling.step(lanes)
            give_back()
            self._keep("settling", lanes._asdict())
        return lanes

    def _measured(self, sample: Float[Array, "m k"], settling: Settling, lanes: Lanes) -> Measured:
        coordinates = settling.coordinates

        def made():
            found = measure(self.passes, coordinates, sketch_of(settling, lanes), self.groups)
            last = matmul(coordinates.to_theta, jnp.asarray(lanes.last()).T)
            self._check_sampled(sample, coordinates.columns, last, found.margins)
            return {name: np.asarray(part) for name, part in found._asdict().items()}

        state = self._state("leverages", made)
        return Measured(state["margins"], state["leverage"], float(state["overdispersion"]))

    def _doubted(
        self, pairs: UnitFreePairs, unsuspected: Float[Array, "E-1 m"], judged: Judged
    ) -> Float[Array, "d r"]:
        """Directions that only suspects cover, as far as the sample shows them."""
        none = jnp.asarray(self.epsilon == 0) | judged.predicted
        if not len(unsuspected):
            return jnp.zeros((1, len(pairs.penalty)), judged.t.dtype)
        weights = 1.0 - judged.lies[1:, self.places]
        return _doubted(pairs, unsuspected, weights, judged.t[1:], self.config.covered, none)

    def _say(self, doing: str) -> None:
        if self.streaming.tell is not None:
            self.streaming.tell(doing, 0, 0)

    def _state(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, np.ndarray]:
        """The state `name` from the checkpoint, else as `make` makes it."""
        state = self._kept(name)
        if state is None:
            state = {key: np.asarray(array) for key, array in make().items()}
            give_back()
            self._keep(name, state)
        return state

    def _kept(self, name: str) -> dict[str, np.ndarray] | None:
        state = self.checkpoint.load(name) if self.resumed else None
        if state is not None:
            self.passes.made = int(state.pop("passes"))
        return state

    def _keep(self, name: str, state: dict[str, np.ndarray]) -> None:
        self.checkpoint.save(name, **state, passes=np.asarray(self.passes.made))


def _sample_size(source: PairSource, streaming: Streaming) -> int:
    """The number of pairs of the sample, at most as many as its fit may take.

    **Raises:** ValueError where what there is per pair and per two features takes more memory than there may be.
    """
    k, memory = source.n_features, streaming.memory_bytes
    fixed = 4 * PER_PAIR * source.n_pairs + 8 * MOMENTS * k**2
    least = 4 * COPIES * k * LEAST_SAMPLE
    check_room(
        f"a fit of {source.n_pairs:,} pairs of {k:,} features by passes",
        max(fixed, least),
        "give more memory, fewer features, or a sample of the pairs",
        memory,
    )
    return min(streaming.sample_of(k), memory // (4 * COPIES * k))


_doubted = eqx.filter_jit(doubted)
_alike_labels = eqx.filter_jit(alike_labels)
