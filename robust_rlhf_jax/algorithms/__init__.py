"""One thin file per algorithm of the paper, and `robust_policy`."""

from ._best_of_n import Choice, Reranker, best_of_n, fit_reranker
from ._condition_number import ConditionNumberConfig, condition_number
from ._first_order import FirstOrderConfig, first_order
from ._pessimistic_mle import PessimisticMLEConfig, pessimistic_mle
from ._robust_policy import robust_policy
from ._standard import StandardConfig, standard
from ._uniform_coverage import UniformCoverageConfig, uniform_coverage
from ._unknown_epsilon import unknown_epsilon
from .descent import (
    FirstOrderParameters,
    SubgradientDescent,
    TheoryParameters,
    descend,
    first_order_parameters,
    theory_parameters,
)
from .pessimism import DescentConfig
from .pessimism_objective import Smoothing
from .solution import Solution

__all__ = [
    "Choice",
    "ConditionNumberConfig",
    "DescentConfig",
    "FirstOrderConfig",
    "FirstOrderParameters",
    "PessimisticMLEConfig",
    "Reranker",
    "Smoothing",
    "Solution",
    "StandardConfig",
    "SubgradientDescent",
    "TheoryParameters",
    "UniformCoverageConfig",
    "best_of_n",
    "condition_number",
    "descend",
    "first_order",
    "first_order_parameters",
    "fit_reranker",
    "pessimistic_mle",
    "robust_policy",
    "standard",
    "theory_parameters",
    "uniform_coverage",
    "unknown_epsilon",
]
