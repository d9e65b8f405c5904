"""Reward estimators that stand for all where a function treats them alike, whatever the registry names.

What an estimator promises itself is tested of every one, in `rewards/test_registry.py`.
"""

# A decision between explanations, a filter, a loss, and fits to other pairs than those judged.
REPRESENTATIVES = ("fit_reward", "filtered", "cdpo", "confident_learning")
