"""Other people's robust reward estimates, one file each, called alike (`rewards/protocol.py`) and registered in
`rewards/registry.py`.
"""
