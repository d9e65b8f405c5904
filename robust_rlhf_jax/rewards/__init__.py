"""Rewards from labelled differences: what everyone without a special wish should use."""
