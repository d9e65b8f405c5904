"""One thin file per algorithm of the paper, and the baselines."""

from .solution import Solution
from .standard import StandardConfig, standard
from .uniform_coverage import UniformCoverageConfig, uniform_coverage

__all__ = ["Solution", "StandardConfig", "UniformCoverageConfig", "standard", "uniform_coverage"]
