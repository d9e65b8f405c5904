"""The laboratory, which reproduces and explores: worlds, attacks, rivals, diagnostics, sweeps, reproductions, reports.

It imports the library; the library never imports it.
"""
