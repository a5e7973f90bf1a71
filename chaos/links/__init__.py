"""Links: TCP connections that lead through us, served in a process of their own, so that a stalled harness does not
stall the target. `link` and `flow` are the mechanism, `process` serves them, `client` is the runner's side.
"""
