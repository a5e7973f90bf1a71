"""Drawn mutants: the reference server with one mechanical change that nobody chose.

A listed mutant breaks what the catalogue foresaw, so it tells whether a check does its own work. A drawn mutant breaks
whatever the seed points at, so the share of them that the suite kills tells how much it sees beside its catalogue.

From a seed to a broken node:

1. `scope.py` reads `<key>/drawn.toml`: the modules and the folders of Lua functions that mutants are drawn from, and
   what is left out and why. Each of them is one stratum of the draw.
2. `python_edits.py` and `lua_edits.py` list every change of one place (`edit.py`) that their operators can make in a
   function. They work on the text, so that a mutant can be shown as a diff of the file that a reader knows.
3. `draw.py` takes the strata in turn, in each the functions in turn, in each function the operators in turn, all in the
   order of the seed. `drawn:<seed>:<number>` is therefore enough to make the same mutant again, in any process, and a
   node reads one stratum only to find its own.
4. The node that is started with `--violate drawn:<seed>:<number>` puts the changed function in place of the original
   (`DrawnMutant.install`) before it makes its components. The source of the reference knows nothing of it.
5. `equivalent.py` reads `<key>/equivalent.toml`: mutants that no client could tell from the original, with the
   argument. They are found again by function and changed lines, because numbers move with every change of the source.
"""
