"""`holdfast doctor --install`: builds tools that are not written in Python into the user's cache."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from holdfast.chaos.engines import CACHE
from holdfast.target.deployment import StartError

TOXIPROXY = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0"
TIMEOUT = 600.0


def install_toxiproxy() -> str:
    """The pinned release, by `go install`; what is there already is left alone."""
    place = CACHE.expanduser()
    if place.is_file():
        return f"toxiproxy-server is there: {place}"
    go = shutil.which("go")
    if go is None:
        raise StartError("toxiproxy-server is built with Go, and there is no go on PATH; --engine relay needs neither")
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        built = _build(go, Path(folder))
        shutil.copy2(built, place.with_suffix(".new"))
        place.with_suffix(".new").rename(place)  # never half a program under the name
    return f"toxiproxy-server is built: {place}"


def _build(go: str, folder: Path) -> Path:
    environment = {**os.environ, "GOBIN": str(folder)}
    done = subprocess.run(
        [go, "install", TOXIPROXY], env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    if done.returncode:
        raise StartError(f"go install {TOXIPROXY} failed: {done.stderr.strip()[-400:]}")
    return folder / "server"
