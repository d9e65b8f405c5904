"""Puts this folder on the path, where the tests in `issues/` find their helpers."""
