"""One thin file per algorithm of the paper, and the baselines."""

from .adaptive_epsilon import unknown_epsilon
from .condition_number import ConditionNumberConfig, condition_number
from .descent import (
    FirstOrderParameters,
    SubgradientDescent,
    TheoryParameters,
    descend,
    first_order_parameters,
    theory_parameters,
)
from .first_order import FirstOrderConfig, first_order
from .front_door import robust_policy
from .objectives import Smoothing
from .pessimism import DescentConfig
from .pessimistic_mle import PessimisticMLEConfig, pessimistic_mle
from .rivals import (
    RivalConfig,
    cdpo,
    confident_learning,
    fit_then_plan,
    r3m,
    rdpo,
    redescending,
    sever,
)
from .solution import Solution
from .standard import StandardConfig, standard
from .uniform_coverage import UniformCoverageConfig, uniform_coverage

__all__ = [
    "ConditionNumberConfig",
    "DescentConfig",
    "FirstOrderConfig",
    "FirstOrderParameters",
    "PessimisticMLEConfig",
    "RivalConfig",
    "Smoothing",
    "Solution",
    "StandardConfig",
    "SubgradientDescent",
    "TheoryParameters",
    "UniformCoverageConfig",
    "cdpo",
    "condition_number",
    "confident_learning",
    "descend",
    "first_order",
    "first_order_parameters",
    "fit_then_plan",
    "pessimistic_mle",
    "r3m",
    "rdpo",
    "redescending",
    "robust_policy",
    "sever",
    "standard",
    "theory_parameters",
    "uniform_coverage",
    "unknown_epsilon",
]
