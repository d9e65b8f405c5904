"""Puts this folder on the path, where the tests in folders below find `wild`."""
