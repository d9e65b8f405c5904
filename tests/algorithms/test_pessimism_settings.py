"""Settings of pessimism: the bad ones are named, the least ones allowed."""

import numpy as np
import pytest

from robust_rlhf_jax.algorithms import ConditionNumberConfig, DescentConfig, FirstOrderConfig, Smoothing

BAD_SETTINGS = {
    "negative radius": (lambda: ConditionNumberConfig(radius=-1.0), r"radius=-1\.0 must be positive\."),
    "radius of nothing": (lambda: FirstOrderConfig(radius=0.0), r"radius=0\.0 must be positive\."),
    "radius that is no number": (lambda: FirstOrderConfig(radius=np.nan), "radius=nan must be positive"),
    "radius without end": (lambda: ConditionNumberConfig(radius=np.inf), "radius=inf must be finite"),
    "no directions": (lambda: Smoothing(n_directions=0), "n_directions=0"),
    "odd pairs": (lambda: Smoothing(n_directions=3, antithetic=True), "even number if antithetic"),
    "no width": (lambda: Smoothing(std=0.0), "smoothing μ must be positive"),
    "negative width": (lambda: Smoothing(std=-1.0), "smoothing μ must be positive"),
    "no pairs": (lambda: Smoothing(n_directions=0, antithetic=True), "even number if antithetic"),
    "unknown directions": (lambda: Smoothing(directions="cubic"), "directions='cubic' is unknown"),
    "no chunk": (lambda: Smoothing(chunk=0), "chunk=0"),
    "no steps": (lambda: DescentConfig(steps=0), "steps=0"),
    "unknown gradient": (lambda: DescentConfig(gradient="magic"), "gradient='magic' is unknown"),
    "constant of no size": (lambda: DescentConfig(adaptive=False), "needs its size"),
    "no step": (lambda: DescentConfig(step_size=0.0), "step_size=0.0"),
    "negative step": (lambda: DescentConfig(step_size=-0.5), "step_size=-0.5"),
    "warm smoothing": (lambda: DescentConfig(warm_start=True), "not 'zero_order'"),
    "warm derivative": (lambda: DescentConfig(gradient="autodiff", warm_start=True), "not 'autodiff'"),
    "negative averaging": (lambda: DescentConfig(averaging=-1.0), "averaging=-1.0"),
    "no warm steps": (lambda: FirstOrderConfig(warm_steps=0), "warm_steps=0"),
    "fewer than no polish": (lambda: FirstOrderConfig(polish_steps=-1), "polish_steps=-1"),
    "negative zeta": (lambda: ConditionNumberConfig(zeta=-0.1), "zeta=-0.1 must not be negative"),
    "unknown zeta": (lambda: ConditionNumberConfig(zeta="wide"), "zeta='wide' is unknown"),
}


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_bad_settings_are_named_in_one_sentence(case):
    make, message = BAD_SETTINGS[case]
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Smoothing(n_directions=1, chunk=1),
        lambda: Smoothing(n_directions=2, antithetic=True),
        lambda: DescentConfig(steps=1, averaging=0.0, step_size=0.01),
        lambda: DescentConfig(gradient="oracle", warm_start=True),
        lambda: FirstOrderConfig(warm_steps=1, polish_steps=0, polish_warm_steps=1),
        lambda: ConditionNumberConfig(zeta=0.0),
    ],
)
def test_the_least_settings_are_allowed(make):
    make()
