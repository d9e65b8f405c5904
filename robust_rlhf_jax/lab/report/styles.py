"""How each algorithm is drawn: dash and marker, and its colour on dark ground, so that no two share all three.

Colours and labels themselves are registered: ours in `methods.py` and `rewards/registry.py`, rivals' in
`rewards/rivals/`.
"""

import colorsys
from typing import NamedTuple

from robust_rlhf_jax.lab.methods import OURS
from robust_rlhf_jax.lab.sweeps.curves import COLOURS, LABELS
from robust_rlhf_jax.lab.sweeps.programs import REFERENCE

MARKERS = ("circle", "square", "up", "diamond", "down", "plus", "cross", "bar")
# Each dash with every marker in turn: ours are drawn solid as far as the markers reach.
OUR_DASHES, DASHES = ("", "14 2", "10 2 2 2"), ("7 3", "3 3", "8 3 2 3", "9 2 2 2 2 2")
# The least lightness of a colour on dark ground.
ON_DARK = 0.66


class Style(NamedTuple):
    """`css`: the class that carries the colour; `light`, `dark`: colours by ground; `dash`: SVG dash array."""

    name: str
    label: str
    css: str
    light: str
    dark: str
    dash: str
    marker: str
    ours: bool


def styles(algorithms: list[str]) -> dict[str, Style]:
    """A style per algorithm; names that the package does not know get grey and a marker by their place."""
    return {name: _style(name, i) for i, name in enumerate(algorithms)}


def _style(name: str, place: int) -> Style:
    ours, light = name in OURS, COLOURS.get(name, "#7a7a7a")
    alike = [other for other in COLOURS if (other in OURS) == ours]
    index = alike.index(name) if name in alike else len(alike) + place
    dashes = OUR_DASHES if ours else DASHES
    dash = "1 4" if name == REFERENCE else dashes[index // len(MARKERS) % len(dashes)]
    return Style(
        name,
        LABELS.get(name, name),
        f"a{place}",
        light,
        on_dark(light),
        dash,
        MARKERS[index % len(MARKERS)],
        ours,
    )


def on_dark(colour: str) -> str:
    """`colour` (#rrggbb) as light as it must be to stand out from a dark ground; the hue stays."""
    rgb = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    hue, lightness, saturation = colorsys.rgb_to_hls(*rgb)
    lighter = colorsys.hls_to_rgb(hue, max(ON_DARK, lightness), saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in lighter)
