"""Before the chaos tests: a real toxiproxy-server, where one can be had. Says loudly where it can't."""

# ruff: noqa: T201 - it reports on its standard output

import sys

from holdfast.chaos.engines import find_toxiproxy
from holdfast.cli.install import install_toxiproxy
from holdfast.target.deployment import StartError


def main() -> int:
    try:
        print(f"toxiproxy-server: {find_toxiproxy()}")
    except StartError:
        try:
            print(install_toxiproxy())
        except StartError as problem:
            print(f"!!! NO REAL TOXIPROXY: {problem}. Our relay is not compared with it here.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
