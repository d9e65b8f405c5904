"""Other people's robust reward estimates, one file each, called alike (`rewards/protocol.py`): what a file lists in its
`ENTRIES` is registered (`rewards/registry.py`).
"""
