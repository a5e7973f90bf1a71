"""One mutant, and one violation that has none."""

from tests.reference.shared.mutants.table import exclude, violation

violation("XX-ONE-01", 1, "A task fails.", lambda _settings: {"fails": True}, also=("XX-TWO-01",))
exclude("XX-ONE-01", 2, "Nobody can see it.")
