"""The chaos scenarios on a real Toxiproxy, where there is one."""

# ruff: noqa: T201 - it reports on its standard output

import subprocess
import sys
from pathlib import Path

from holdfast.chaos.engines import find_toxiproxy
from holdfast.deployment import StartError

RESULTS = "holdfast-results-chaos/toxiproxy"


def main() -> int:
    try:
        find_toxiproxy()
    except StartError as problem:
        print(f"!!! SCENARIOS NOT RUN ON A REAL TOXIPROXY: {problem}", file=sys.stderr)
        return 0
    holdfast = Path(sys.executable).with_name("holdfast")
    words = [
        "chaos",
        "admission",
        "--engine",
        "toxiproxy",
        "--results",
        "holdfast-results-chaos/toxiproxy",
        *sys.argv[1:],
    ]
    return subprocess.run([holdfast, *words], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
