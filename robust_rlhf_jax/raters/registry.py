"""The table of other people's reward estimators that know who labelled each pair: the `ENTRIES` of the modules in
`rivals/`.
"""

from robust_rlhf_jax.collected import by_name, modules_with
from robust_rlhf_jax.raters import rivals

from .protocol import RaterEntry

RATER_ESTIMATORS: dict[str, RaterEntry] = by_name(
    (entry.estimate.__name__, entry) for module in modules_with(rivals, "ENTRIES") for entry in module.ENTRIES
)
