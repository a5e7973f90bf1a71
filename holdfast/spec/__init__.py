"""What a specification demands: its requirements, timings and contract, and the verdicts that a row can get.

Everything here is data read from `conformance/<key>/requirements.toml` and `proto/<key>/`, or arithmetic on it.
Nothing here knows a target, a check or a run. Imports nothing of Holdfast but this room.
"""
