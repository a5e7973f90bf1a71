"""Values as the protocol compares them.

A number is whole if its value is (1 and 1.0), a UUID may have letters of either case, a time since 1970 may come in
seconds, milliseconds or microseconds, or as ISO 8601 text.
"""

import re
from datetime import datetime
from typing import Any

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)
# Seconds since 1970 are smaller than the first, milliseconds smaller than the second, microseconds larger.
_MILLISECONDS_FROM, _MICROSECONDS_FROM = 1e11, 1e14


def whole(value: Any) -> Any:
    """Returns a JSON number without a fraction as int, however it was written; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def same_id(one: object, other: object) -> bool:
    """Whether two UUIDs are the same; hex digits of either case are."""
    return str(one).lower() == str(other).lower()


def unit(stamp: float) -> float:
    """Returns in what unit a time since 1970 is given, as the number of them in a second; its size shows which."""
    if stamp > _MICROSECONDS_FROM:
        return 1e6
    return 1e3 if stamp > _MILLISECONDS_FROM else 1.0


def epoch_ms(value: object) -> float | None:
    """Returns a time in milliseconds since 1970: a number in any usual unit, or ISO 8601 text; None if it is none."""
    try:
        stamp = float(str(value))
        return 1000 * stamp / unit(stamp)
    except ValueError:
        pass
    try:
        return 1000 * datetime.fromisoformat(str(value).upper()).timestamp()
    except ValueError:
        return None
