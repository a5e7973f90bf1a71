"""An implementation under test: its TOML descriptor, and the protocols by which it is reached.

`descriptor` and `schema` read and explain the file, `preflight` looks whether the target is there, `deployment` and
`fault` define what the rooms `fixtures` and `chaos` implement. Imports `spec`.
"""
