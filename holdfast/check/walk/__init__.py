"""Walks: commands drawn from a seed over a pure model of a spec, every observable compared after every step.

`vocabulary` has the words, `possible` the algorithm (what a target may be in, given all that was seen), `coverage` and
`draw` choose the next command, `play` performs one walk, `shrink` makes a finding short, `replay` and `story` write it
down, `campaign` runs many walks as one check. A spec brings a model and a world, and nothing else.
"""
