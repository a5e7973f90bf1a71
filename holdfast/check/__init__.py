"""What a check sees and uses: its marks, its context, time, findings, transcripts, histories and invariants.

The checks of every suite are written with this room and `target` alone; nothing here names a field, a path or a word of
one spec.
Imports `spec` and `target`.
"""
