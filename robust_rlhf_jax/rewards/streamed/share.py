"""What one machine of many computes of a pass: some chunks of the pairs."""

import socket
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.sources import PairSource

from .layout import Layout
from .one_pass import Kind, Part, Pass, parts_of
from .placed_blocks import placed_blocks


class Share(NamedTuple):
    """The chunks from `first` up to `end` of a source's `layout`."""

    layout: Layout
    first: int
    end: int

    @property
    def place(self) -> slice:
        return self.layout.place(self.first, self.end)


def share_of(source: PairSource, a_pass: Pass, share: Share) -> list[Part]:
    """A `Part` for each chunk of a share.

    **Raises:** ValueError where the source cannot be read here, or does not give the pairs that it said.
    """
    try:
        blocks = placed_blocks(source, share.layout, share.place)
        parts = list(parts_of(a_pass, blocks, share.layout))
    except OSError as error:
        raise ValueError(
            f"{socket.gethostname()} cannot read the source ({error}): every machine must see it under the same path."
        ) from None
    ends = [number for number, part in enumerate(parts) if share.layout.ends_chunk(part.place.stop)]
    firsts = [0, *(end + 1 for end in ends)]
    return [_joined(a_pass, parts[first : end + 1]) for first, end in zip(firsts, ends, strict=False)]


def _joined(a_pass: Pass, parts: list[Part]) -> Part:
    """The parts of a chunk as one."""
    place = slice(parts[0].place.start, parts[-1].place.stop)
    found: list[Any] = []
    for number, kind in enumerate(a_pass.gives):
        pieces = [part.found[number] for part in parts]
        if kind is Kind.PAIR:
            found.append(np.concatenate(pieces, axis=-1))
        else:
            found.append(np.concatenate(pieces) if kind is Kind.ROWS else pieces[-1])
    return Part(place, tuple(found))


def what_decides() -> dict[str, Any]:
    """Versions, devices and the width of floats: machines on which they agree give the same numbers."""
    here = environment()
    versions = {name: here["versions"][name] for name in ("robust-rlhf-jax", "jax", "jaxlib")}
    here |= {"devices": len(jax.local_devices()), "floats": str(jnp.result_type(float))}
    return versions | {name: here[name] for name in ("platform", "devices", "floats")}


def check_alike(expected: dict[str, Any]) -> None:
    """**Raises:** ValueError where `what_decides` here is not as `expected`."""
    here = what_decides()
    if here != expected:
        mine, other = (", ".join(f"{k} {v}" for k, v in facts.items()) for facts in (here, expected))
        raise ValueError(
            f"{socket.gethostname()} has {mine}, and the machine that fits has {other}: they must be the same, or the "
            "numbers are others."
        )
