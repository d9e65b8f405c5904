"""Four reward estimators of different kinds, for tests of functions that treat all estimators alike.

`rewards/test_registry.py` tests what each estimator itself promises.
"""

# In order: a decision between explanations, a filter, a loss, and a fit that judges pairs which it has not seen.
REPRESENTATIVES = ("fit_reward", "filtered", "cdpo", "confident_learning")
