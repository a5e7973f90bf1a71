"""Makes sure that there is a Chromium for the report's test: installs Debian's where none is found and we may."""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome")


def main() -> int:
    if any(shutil.which(name) for name in NAMES):
        return 0
    if not shutil.which("apt-get"):
        print("no Chromium on PATH, and no apt-get to install one with: the report's browser test will fail")
        return 0
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-q"], ["install", "-y", "-q", "--no-install-recommends", "chromium"]):
        done = subprocess.run([*root, "apt-get", *command], env=environment, check=False, stdout=subprocess.DEVNULL)
        if done.returncode:
            print(f"apt-get {command[0]} ended with {done.returncode}: the report's browser test will fail")
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
