"""How a call ended that brought no answer, in plain words: not the names and numbers that only a library knows."""

import asyncio
import ssl
from typing import Any

import aiohttp

# What is said of a server whose certificate we do not trust.
UNTRUSTED = "its certificate was not accepted"

# The first that fits; the innermost words of the error follow where the sentence ends in a colon.
_SENTENCES: tuple[tuple[Any, str], ...] = (
    ((aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError), f"{UNTRUSTED}:"),
    ((aiohttp.ClientConnectorSSLError, ssl.SSLError), "the TLS handshake failed:"),
    ((aiohttp.ServerDisconnectedError, asyncio.IncompleteReadError), "the connection was closed before a whole answer"),
    (aiohttp.ClientPayloadError, "the answer broke off before its end"),
    (TimeoutError, "it took too long"),
    ((aiohttp.ClientConnectorError, ConnectionRefusedError), "no connection:"),
    ((ConnectionResetError, BrokenPipeError), "the connection was cut"),
    (aiohttp.ClientOSError, "the connection was cut while the request was being sent"),
    (asyncio.LimitOverrunError, "the answer had no end"),
)


def how_it_ended(error: BaseException) -> str:
    """Returns how a call ended that brought no answer."""
    for kind, sentence in _SENTENCES:
        if isinstance(error, kind):
            return f"{sentence} {_words(error)}" if sentence.endswith(":") else sentence
    return _words(error)


def _words(error: BaseException) -> str:
    inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if isinstance(inner, ssl.SSLCertVerificationError) and inner.verify_message:
        return str(inner.verify_message)
    if isinstance(inner, ssl.SSLError) and inner.reason:
        return str(inner.reason).replace("_", " ").lower()
    if isinstance(inner, OSError) and inner.strerror:
        return str(inner.strerror)
    said = str(inner)
    return said if said and " object at 0x" not in said else _spaced(type(inner).__name__)


def _spaced(name: str) -> str:
    """Returns `bad status line` of BadStatusLine."""
    return "".join(f" {char.lower()}" if char.isupper() else char for char in name).strip()
