"""Settings of a node: a frozen dataclass whose fields say where their texts come from and how they are read.

    @dataclass(frozen=True, kw_only=True)
    class Settings:
        grace: float = setting(60.0, positive, env="GRACE_SECONDS")
        listen: str = setting("127.0.0.1:9341", address, env="APP_LISTEN", flag="--listen")

`read_settings(Settings, os.environ, argv)` reads them. A flag wins over the variable; an empty text means the default,
as an unset one does. A text that can't be read raises BadSetting with one sentence that names the flag or the variable,
repeats the text and says what it must be. Readers raise ValueError with a text that begins with "must".
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields
from typing import Any, TypeVar
from urllib.parse import urlsplit

S = TypeVar("S")
Read = Callable[[str], Any]


class BadSetting(Exception):  # noqa: N818  # named for what is wrong
    """A value that no node can run with; its text says what to change."""


def setting(default: Any, read: Read = str, *, env: str = "", flag: str = "") -> Any:
    """Declares a field with its default, its reader, its variable and, where it has one, its flag."""
    return field(default=default, metadata={"env": env, "flag": flag, "read": read})


def read_settings(settings: type[S], environment: Mapping[str, str], argv: Sequence[str] = ()) -> S:
    """Returns the settings that flags and environment give. Raises BadSetting."""
    given = dict(_flags(argv))
    values: dict[str, Any] = {}
    for each in fields(settings):  # type: ignore[arg-type]  # a dataclass
        flag, variable, read = (each.metadata[name] for name in ("flag", "env", "read"))
        if text := given.pop(flag, "") if flag else "":
            values[each.name] = _read(f"{flag} {text!r}", text, read, "where the node is started")
        elif text := environment.get(variable, "") if variable else "":
            values[each.name] = _read(f"{variable}={text!r}", text, read, "in the environment of the node")
    if given:
        known = [each.metadata["flag"] for each in fields(settings) if each.metadata["flag"]]  # type: ignore[arg-type]  # a dataclass
        takes = ", ".join([*known, "--violate ID/n", "--stranger SEED:NODE"])
        raise BadSetting(f"Unknown argument {next(iter(given))!r}; the node takes {takes} and its environment.")
    return settings(**values)


def as_given(settings: S) -> S:
    """What a node makes of its settings; mutants in which only a constant is wrong make something else of them."""
    return settings


def _flags(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields the name and value of each `--name value` and `--name=value`; a flag without a value is `true`."""
    words = list(argv)
    while words:
        name, equals, value = words.pop(0).partition("=")
        if not name.startswith("--"):
            raise BadSetting(f"Unknown argument {name!r}; flags begin with two dashes.")
        if not equals:
            value = words.pop(0) if words and not words[0].startswith("--") else "true"
        yield name, value


def _read(said: str, text: str, read: Read, where: str) -> Any:
    try:
        return read(text)
    except ValueError as error:
        problem = str(error) if str(error).startswith("must") else "must be a number"
        raise BadSetting(f"{said} {problem}; change it {where}.") from None


def positive(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e9:
        raise ValueError("must be a number above 0")
    return value


def any_number(text: str) -> float:
    value = float(text)
    if not -1e9 < value < 1e9:
        raise ValueError("must be a number")
    return value


def count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError("must be a whole number, 0 or more")
    return value


def port(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 65535:
        raise ValueError("must be a port number")
    return value


def truth(text: str) -> bool:
    values = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if text.lower() not in values:
        raise ValueError("must be true or false")
    return values[text.lower()]


def duration(text: str) -> float:
    """Reads a time with its unit, such as 250ms, 15s or 2m; returns seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m)?", text)
    value = float(found[1]) * {"ms": 0.001, "s": 1.0, "m": 60.0}[found[2] or "s"] if found else 0.0
    if not 0 < value < 1e6:
        raise ValueError("must be a time above 0, such as 15s")
    return value


def address(text: str) -> str:
    if not re.fullmatch(r".*:\d{1,5}", text) or int(text.rpartition(":")[2]) > 65535:
        raise ValueError("must look like 127.0.0.1:9341")
    return text


def redis_url(text: str) -> str:
    if not re.match(r"redis://[^/]+", text):
        raise ValueError("must look like redis://host:port")
    _ = urlsplit(text).port  # raises ValueError for a port that is none
    return text
