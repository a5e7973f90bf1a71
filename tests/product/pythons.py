"""The Pythons of this machine: the oldest that we support, and the newest that there is."""

import os
import re
import shutil
import subprocess
from pathlib import Path

OLDEST = (3, 11)
_NAME = re.compile(r"python3\.(\d+)")
_TRY = "import sys, venv, ensurepip; print(*sys.version_info[:2])"


def _version(program: Path) -> tuple[int, int] | None:
    """The version of an interpreter that runs and can make an environment; a shim of pyenv may name one that can't."""
    try:
        done = subprocess.run([program, "-c", _TRY], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    major, minor = map(int, done.stdout.split())
    return major, minor


def pythons() -> dict[tuple[int, int], Path]:
    """Every Python that we support, by version, on PATH or among those of pyenv."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders = [*sorted(root.glob("versions/3.*/bin")), *map(Path, os.environ["PATH"].split(os.pathsep))]
    names = {each.name for folder in folders for each in folder.glob("python3.*") if _NAME.fullmatch(each.name)}
    everywhere = os.pathsep.join(map(str, folders))
    found = [Path(place) for name in names if (place := shutil.which(name, path=everywhere))]
    return {version: program for program in found if (version := _version(program)) and version >= OLDEST}
