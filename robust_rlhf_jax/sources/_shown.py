"""What sources show of themselves: how many pairs, of which features."""

from typing import Any

from robust_rlhf_jax.terminal import counted, some_of


class Shown:
    """The line of a `PairSource`, as that of `Pairs`."""

    n_pairs: int
    n_features: int
    groups: Any

    def __repr__(self) -> str:
        """How many pairs, of which features, and whether groups are known."""
        features = counted(self.n_features, "feature") + some_of(getattr(self, "names", ()))
        beside = "" if self.groups is None else "; with groups"
        return f"{type(self).__name__}({counted(self.n_pairs, 'pair')} of {features}{beside})"
