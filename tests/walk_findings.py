"""python -m tests.walk_findings [N] [SPEC]: how short the findings of walks are, and whether they come again.

Listed mutants are drawn from the seed of the run, each is walked for a while, and what was found is replayed from its
file. Exit 1 when half of the findings have more than six steps, or when one of them does not come again.
"""

# ruff: noqa: T201 - it reports on its standard output

import json
import random
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from holdfast.cli.mutants import known_mutants
from holdfast.run.suite import checks_of
from holdfast.spec.catalogue import builtin, builtin_keys
from tests.ci import seed

HOLDFAST = Path(sys.executable).with_name("holdfast")
FINDINGS, MOST_STEPS, WALK_FOR = 20, 6, "40s"


@dataclass(frozen=True)
class Walked:
    mutant: str
    steps: int
    again: bool

    def __str__(self) -> str:
        return f"{self.mutant:<14}  {self.steps:3} steps, {'came again' if self.again else 'DID NOT COME AGAIN'}"


def mutants_of(key: str) -> list[tuple[str, str]]:
    """The mutants that break a row which a walk of the spec states."""
    walks = [spec for spec in checks_of(key, naming="walk_steps").values() if spec.walks]
    rows = {claim.id for spec in walks for claim in spec.claims}
    known = known_mutants(key, builtin(key)) if walks else []
    return [(key, mutant.id) for mutant in known if mutant.requirement in rows and not mutant.excluded]


def walked(key: str, mutant: str, drawn: int) -> Walked | None:
    """Walks over one mutant; None if nothing was found."""
    with tempfile.TemporaryDirectory(prefix="holdfast-walks-") as place:
        words = [key, "--violate", mutant]
        _walk(*words, "--seed", str(drawn), "--for", WALK_FOR, "--results", f"{place}/found")
        files = sorted(Path(place, "found", "walks").glob("*.json"))
        if not files:
            return None
        steps = len(json.loads(files[0].read_text("utf-8"))["steps"])
        code = _walk(*words, "--replay", str(files[0]), "--results", f"{place}/again")
        return Walked(mutant, steps, code == 1)


def _walk(*words: str) -> int:
    return subprocess.run([HOLDFAST, "walk", *words], capture_output=True, check=False).returncode


def main(words: list[str]) -> int:
    wanted = int(words[0]) if words else FINDINGS
    drawn, source = seed()
    print(f"seed {drawn}, from {source}; HOLDFAST_CI_SEED={drawn} repeats what is drawn")
    everyone = [each for key in words[1:] or builtin_keys() for each in mutants_of(key)]
    random.Random(drawn).shuffle(everyone)
    found: list[Walked] = []
    for tried, (key, mutant) in enumerate(everyone, 1):
        one = walked(key, mutant, drawn)
        print(f"  {one or f'{mutant:<14}  nothing was found'}", flush=True)
        found += [one] if one else []
        if len(found) >= wanted or tried >= 2 * wanted:
            break
    if not found:
        print("no walk found anything")
        return 1
    median, lost = statistics.median(each.steps for each in found), [each for each in found if not each.again]
    print(f"{len(found)} findings of {tried} mutants, median {median:g} steps (aim: at most {MOST_STEPS})")
    return 1 if median > MOST_STEPS or lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
