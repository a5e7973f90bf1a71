"""Identifiers: node ids and backend hashes are UUIDs of version 7, transaction ids are xids."""

import os
import re
import time

_XID = re.compile(r"[0-9a-v]{19}[0g]")


def uuid7() -> str:
    """Makes an id of milliseconds and random bits, so that later ones sort after earlier ones."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def is_xid(text: str) -> bool:
    """Returns whether a text is twelve bytes in lower-case base32hex; the last character carries one bit only."""
    return _XID.fullmatch(text) is not None
