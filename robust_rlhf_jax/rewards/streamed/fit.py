"""The robust reward of a source of pairs: in memory where they fit, else by passes."""

import dataclasses
import functools
import hashlib
from collections.abc import Callable
from importlib import metadata
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.io.nobody import each_named
from robust_rlhf_jax.io.pairs import Pairs, clusters_of
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.memory import check_room, give_back
from robust_rlhf_jax.preferences import as_labelled, group_numbers
from robust_rlhf_jax.preferences.validation import check_source
from robust_rlhf_jax.sources import PairSource
from robust_rlhf_jax.sources.protocol import checked_blocks

from ..alternative import Alternative
from ..conclusion import Evidence, conclude
from ..config import RobustFit, among_informative
from ..contamination import Cells, cells_of_lengths
from ..coordinates import UnitFreePairs, count_of, informative_rows
from ..decision import Judged
from ..fit import doubted, fit_differences
from ..lack_of_fit import Comparisons, alike_labels
from ..prior_strength import at_bound
from ..reward_fit import RewardFit
from .checkpoint import Checkpoint
from .comparisons import numbers_of_keys
from .config import Streaming
from .coordinates import (
    Columns,
    StreamedCoordinates,
    check_rows_finite,
    coordinates_of,
    lengths_and_margins,
    level_basis,
    not_all_alike,
    second_moment,
    typical_columns,
)
from .curvature import sample_curvature
from .engine import T
from .judging import Measured, dispersed_by_all, judged_by_all, measure, sketch_of
from .passes import Passes
from .same_margins import differ, sampled_differ
from .sample import Found, explanations_of, read_sample, sampled_places
from .settling import Lanes, Sample, Settling

# Copies of the differences in float32 that a fit in memory takes at its peak, programs included.
COPIES = 20
# Float32 numbers per pair that a fit by passes holds at its peak: some ten for each of up to ten explanations.
PER_PAIR = 100
# Matrices of float64 that its coordinates take at their peak, and pairs without which no sample says anything.
MOMENTS, LEAST_SAMPLE = 6, 1024
# The last pass is for the leverages.
LAST = 1
# The first state that a change of any pair would change.
LENGTHS = "lengths"


def fit_source(
    source: PairSource,
    epsilon: float | Float[Array, ""],
    groups: Int[np.ndarray, " N"] | None = None,
    config: RobustFit | None = None,
    streaming: Streaming | None = None,
) -> RewardFit:
    """`fit_differences` of a `PairSource`, of which no more is in memory than `streaming` allows. Not under jit.

    Where the pairs fit into memory it is the same fit. Else the explanations are found in a sample, and settled on all
    pairs by a pass for each step of Newton's method; all pairs decide which of them is believed. What holds one number
    per pair (margins, weights) stays in memory.

    1. a sample; 2. second moments of all pairs; 3. their lengths; 4. … gradients; last: leverages.

    **Raises:** ValueError for features that are not finite, a source that gives other pairs than it said, groups of
    another length, or too little memory.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import preferences, rewards
    >>> from robust_rlhf_jax.sources import ArraySource
    >>> source = ArraySource.of_pairs(preferences.rail_pairs())
    >>> fit = rewards.fit_source(source, 0.1)
    >>> [round(float(weight), 1) for weight in fit.theta], float(fit.epsilon)
    ([-1.9, -0.8, -0.2, -0.6], 0.0)
    """
    task = _Task(source, epsilon, groups, config or RobustFit(), streaming or Streaming())
    return task.led(task.fitted)


def fit_by_passes(
    source: PairSource,
    epsilon: float | Float[Array, ""],
    groups: Int[np.ndarray, " N"] | None,
    config: RobustFit,
    streaming: Streaming,
    compare: bool = False,
) -> tuple[RewardFit, Alternative | None]:
    """`fit_source` by passes, even if the pairs fit into memory; with the alternative if asked to `compare`.

    **Raises:** as `fit_source`.
    """
    task = _Task(source, epsilon, groups, config, streaming)
    return task.led(functools.partial(task.by_passes, compare))


class _Task(NamedTuple):
    """What `fit_source` is given."""

    source: PairSource
    epsilon: float | Float[Array, ""]
    groups: Int[np.ndarray, " N"] | None
    config: RobustFit
    streaming: Streaming

    def led(self, fit: Callable[[], T]) -> T:
        """What `fit` gives, by the engine."""
        engine = self.streaming.engine
        return fit() if engine is None else engine.led(self.source, fit)

    def fitted(self) -> RewardFit:
        if not fits_in_memory(self.source, self.streaming):
            return self.by_passes(compare=False)[0]
        x = all_of(self.source)
        check_rows_finite(np.asarray(np.isfinite(x).all(axis=1)))
        seen = as_labelled(Pairs.of_differences(x, np.ones(self.source.n_pairs)))
        numbers = _groups_of(self.source, self.groups)
        return fit_differences(seen.x, seen.labels, self._level(), numbers, self.config, seen.comparisons)

    def by_passes(self, compare: bool) -> tuple[RewardFit, Alternative | None]:
        numbers, level = _groups_of(self.source, self.groups), self._level()
        evidence = _Streamed(self.source, numbers, float(level), self.config, self.streaming).evidence()
        give_back()
        return _conclude(evidence, level, self.config, compare)

    def _level(self) -> Float[Array, ""]:
        return jnp.asarray(self.epsilon, jnp.float32)


def _groups_of(source: PairSource, groups: Int[np.ndarray, " N"] | None) -> Int[Array, " N"] | None:
    """Numbers of the groups that the user names, else of the source's `Pairs.clusters`."""
    if groups is None:
        known = [getattr(source, name, None) for name in ("groups", "raters")]
        groups = clusters_of(*(None if names is None else each_named(names) for names in known))
        if groups is None:
            return None
    return group_numbers(groups, source.n_pairs)


def fits_in_memory(source: PairSource, streaming: Streaming) -> bool:
    """Whether the fit in memory takes no more than it may.

    **Raises:** TypeError for what is no source of pairs.
    """
    check_source(source)
    return 4 * COPIES * source.n_pairs * source.n_features <= streaming.memory_bytes


def all_of(source: PairSource) -> Float[np.ndarray, "N k"]:
    """All differences in float32.

    **Raises:** ValueError where the source does not give the pairs that it said.
    """
    blocks = [block.astype(np.float32) for block in checked_blocks(source, 1 << 14)]
    return np.concatenate(blocks)


def _sample_size(source: PairSource, streaming: Streaming) -> int:
    """As many pairs as the fit of a sample may take, at most.

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


class _Streamed:
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
        judged = judged_by_all(measured, lanes, cells)
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


_doubted = eqx.filter_jit(doubted)
_alike_labels = eqx.filter_jit(alike_labels)


@eqx.filter_jit
def _conclude(evidence: Evidence, epsilon: Float[Array, ""], config: RobustFit, compare: bool):
    return conclude(evidence, epsilon, config, compare)
