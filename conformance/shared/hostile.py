"""Bodies and headers that trouble any server which reads JSON over HTTP."""

NESTED = 5_000
# Above Python's own limit for turning digits into a number, at which servers tend to fail.
DIGITS = "9" * 5_000
OVERSIZED = 10_000_000
DEEP = "[" * NESTED + "]" * NESTED

TYPES = [
    "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=x",
    "application/octet-stream", "application/json; " + "a" * 1_000, "/", ";",
]  # fmt: skip


def no_objects(field: str) -> list[bytes]:
    """Returns bodies that are no JSON objects, however they are read; some look as if they had this field."""
    name = field.encode()
    return [
        b"", b" ", b"{", b"}", b"null", b"true", b"42", b'"text"', b"[]", b"[{}]", b"{'a': 1}", b"NaN", b"<x/>",
        b"\x00", b"\xff\xfe{}", name + b"=1", b'{"' + name + b'"}', b'{"' + name + b'": "' + b"a" * 100,
        DIGITS.encode(), b"[" * NESTED, DEEP.encode(),
    ]  # fmt: skip
