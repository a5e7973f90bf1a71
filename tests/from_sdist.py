"""Runs the unit tests from an unpacked sdist: `python -m tests.from_sdist [arguments of pytest]` (tox -e sdist)."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.product.trees import unpacked_sdist


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        tree = unpacked_sdist(Path(folder))
        command = [sys.executable, "-m", "pytest", *sys.argv[1:]]
        return subprocess.run(command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
