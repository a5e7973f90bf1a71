"""Whether what listens at a URL speaks what the URL says: plain HTTP behind https, or TLS behind http, is a slip.

Either way every call fails in words of its own, and none of them says that the port is the other one. So the first
bytes are looked at: of a TLS handshake, or of the answer to one request that changes nothing.
"""

import contextlib
import socket
import ssl
from urllib.parse import urlsplit

_TIMEOUT = 2.0
_ALERT, _HANDSHAKE = b"\x15", b"\x16"
_OF_TLS = (_ALERT, _HANDSHAKE)
_REQUEST = b"HEAD / HTTP/1.1\r\nHost: holdfast\r\nConnection: close\r\n\r\n"
# What servers of the field answer in clear text on their TLS port.
_MEANT_TLS = (b"HTTP request to an HTTPS server", b"plain HTTP request was sent to HTTPS port")
_PORTS = {"http": 80, "https": 443}


def speaks_otherwise(url: str) -> str:
    """Returns what is wrong with the scheme of a URL at which something listens; empty if nothing is, or who knows."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        return ""
    place = (parts.hostname, parts.port or _PORTS[parts.scheme])
    try:
        if parts.scheme == "https" and not _takes_tls(place):
            return f"{url} speaks no TLS; write http://, or name the port that does"
        if parts.scheme == "http" and _wants_tls(place):
            return f"{url} speaks TLS; write https://, or name the port of plain HTTP"
    except OSError:
        pass
    return ""


def _takes_tls(place: tuple[str, int]) -> bool:
    """False only if the answer to a TLS handshake is certainly none of TLS."""
    first = _asked(place, _hello(), 1)
    return not first or first in _OF_TLS


def _hello() -> bytes:
    """The first message of a TLS handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    hello = context.wrap_bio(incoming, outgoing, server_hostname=None)
    with contextlib.suppress(ssl.SSLWantReadError):
        hello.do_handshake()
    return outgoing.read()


def _wants_tls(place: tuple[str, int]) -> bool:
    """Some say so, others only hang up; of these a handshake tells."""
    if answer := _asked(place, _REQUEST, 512):
        return answer[:1] == _ALERT or any(words in answer for words in _MEANT_TLS)
    return _asked(place, _hello(), 1) == _HANDSHAKE


def _asked(place: tuple[str, int], question: bytes, longest: int) -> bytes:
    """Returns the beginning of an answer; nothing if there is none in time."""
    with socket.create_connection(place, timeout=_TIMEOUT) as connection:
        connection.sendall(question)
        try:
            return connection.recv(longest)
        except OSError:
            return b""
