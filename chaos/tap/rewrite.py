"""Puts the addresses of links in place of real ones in what a Sentinel says.

A node that asks Sentinels where the primary is would connect past our links. So on a link to a Sentinel every reply and
every push is read whole, and each address that has a link is replaced by the link's: as a pair of texts (the reply of
`get-master-addr-by-name`), as the fields `ip` and `port` (`master`, `replicas`, `sentinels`), inside a text as
`host:port` (the field `name`) or as `host port` (`+switch-master` and its kin). What has no link stays as it is, and
values without any address pass byte for byte.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.chaos.tap.resp import Parser, ProtocolError, Push, encode

Addresses = Mapping[str, str]
_ADDRESS = re.compile(rb"(?<![\w.])([\w.-]+|\[[0-9a-fA-F:]+\])([: ])(\d{1,5})(?![\w.])")


class Rewriter:
    """The direction from one Sentinel to one client; `addresses` maps `host:port` to `host:port` and may change."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._parser = Parser()
        self._blind = False
        self._began = False

    def rest(self) -> bytes:
        """What was kept back of an incomplete value."""
        return self._parser.rest()

    def __call__(self, data: bytes) -> bytes:
        """The bytes to pass on now; an incomplete value waits for its rest."""
        if self._blind or not (self._addresses or self._began):
            return data
        self._began = True  # from here on values are read whole, so a change of addresses finds no half of one
        passed = b""
        try:
            for value, raw in self._parser.feed(data):
                changed = rewritten(value, self._addresses)
                passed += raw if changed == value else encode(changed)
        except (ProtocolError, ValueError):
            self._blind = True  # not a Sentinel: nothing in it is ours to change
            return passed + self._parser.rest()
        return passed


def rewritten(value: Any, addresses: Addresses) -> Any:
    match value:
        case bytes():
            return _ADDRESS.sub(lambda found: _replaced(found, addresses), value)
        case Push(words):
            return Push(tuple(_words(words, addresses)))
        case list():
            return type(value)(_words(value, addresses))
    return value


def _words(words: Sequence[Any], addresses: Addresses) -> list[Any]:
    changed = [rewritten(word, addresses) for word in words]
    for at in range(len(words) - 1):
        host, port = words[at], at + 1
        if host == b"ip" and at + 3 < len(words) and words[at + 2] == b"port":
            _put(changed, words, at + 1, at + 3, addresses)
        elif isinstance(host, bytes) and isinstance(words[port], bytes) and words[port].isdigit():
            _put(changed, words, at, port, addresses)
    return changed


def _put(changed: list[Any], words: Sequence[Any], host: int, port: int, addresses: Addresses) -> None:
    known = addresses.get(f"{_text(words[host])}:{_text(words[port])}")
    if known is not None:
        new_host, _, new_port = known.rpartition(":")
        changed[host], changed[port] = new_host.encode(), new_port.encode()


def _replaced(found: re.Match[bytes], addresses: Addresses) -> bytes:
    known = addresses.get(f"{_text(found[1])}:{_text(found[3])}")
    if known is None:
        return found[0]
    host, _, port = known.rpartition(":")
    return host.encode() + found[2] + port.encode()


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
