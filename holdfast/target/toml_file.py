"""Reads the TOML file of a descriptor, and says of one that can't be read what is wrong with it."""

import tomllib
from pathlib import Path
from typing import Any


def read_toml(path: Path) -> dict[str, Any]:
    """Returns what the file says; raises ValueError with the rest of a sentence that begins with the file's name."""
    if path.is_dir():
        raise ValueError("a folder; name the descriptor in it")
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise ValueError("no such descriptor; `holdfast init SPEC` writes one") from error
    except OSError as error:
        raise ValueError(f"can't be read ({error.strerror or type(error).__name__})") from error
    if not raw.strip():
        raise ValueError("empty; `holdfast init SPEC` writes a descriptor to fill in")
    try:
        return tomllib.loads(raw.decode("utf-8-sig"))  # some editors begin a file with a mark
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line} is no UTF-8 text; save the file as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"not valid TOML: {error}") from error
