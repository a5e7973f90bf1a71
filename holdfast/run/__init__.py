"""One run: what is planned, in which order it runs, what is judged, and the events that tell of it.

`session` leads a run from the plan to the last event, `harness` owns the processes and the loop on which checks run.
Imports `spec`, `target` and `check`; `harness` is the one module of the kernel that puts the rooms together and may
import them.
"""
