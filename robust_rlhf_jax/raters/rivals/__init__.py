"""Other people's reward estimates that know who labelled each pair, one file each, called alike (`raters/protocol.py`):
what a file lists in its `ENTRIES` is registered (`raters/registry.py`).
"""
