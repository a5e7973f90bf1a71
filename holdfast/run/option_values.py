"""Values of options that make no sense: refused with one sentence, before anything is started."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from holdfast.run.options import Option, RunOptions, options
from holdfast.spec.capability import PROFILES
from holdfast.spec.catalogue import CatalogueError, seconds
from holdfast.spec.own import nearest

_DURATION = "TIME"
_REDIS = ("redis", "rediss", "unix")


class OptionError(ValueError):
    """Raised for the value of an option that can't be used; the text names the option and says what it takes."""


def refuse_values(given: RunOptions) -> None:
    """Raises OptionError for the first option whose value makes no sense, whatever the target is."""
    for option in options().values():
        value = getattr(given, option.name)
        if value is None or value == option.default:
            continue
        if _says_nothing(value):
            # A script's variable that nobody set. Taken as left out, it would run the built-in target in silence.
            raise OptionError(f"{option.spelling}: empty; give it a value, or leave it out")
        for problem in _problems(option, value):
            raise OptionError(f"{option.spelling} {value}: {problem}")


def _says_nothing(value: Any) -> bool:
    texts = value if isinstance(value, tuple) else (value,)
    return all(isinstance(text, str) and not text.strip(" ,") for text in texts)


def _problems(option: Option, value: Any) -> Iterator[str]:
    if option.flag.metavar == _DURATION:
        yield from _duration_problems(value)
    elif option.flag.least is not None and value < option.flag.least:
        yield f"must be at least {option.flag.least}"
    elif option.name == "time_scale" and not 0 < value <= 1:
        yield "must be above 0 and at most 1, which is the spec's own time"
    elif option.name == "profile" and value not in PROFILES:
        yield f"no such profile{nearest(value, PROFILES)}"
    elif option.name == "redis_url" and not _is_redis(value):
        yield "no URL of a Redis; write it like redis://127.0.0.1:6379"


def _is_redis(value: str) -> bool:
    try:
        return urlsplit(value).scheme in _REDIS and urlsplit(value).port != 0
    except ValueError:  # a port that is no number, or out of range
        return False


def _duration_problems(value: str) -> Iterator[str]:
    try:
        if seconds(value) <= 0:
            yield "nothing fits into that"
    except CatalogueError:
        yield "no duration; write it like 500ms, 2s, 5m or 1h"
