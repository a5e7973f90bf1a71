"""How a call ended that brought no answer, in plain words: not the names and numbers that only a library knows."""

import asyncio
import ssl
from typing import Any

import aiohttp

from holdfast.check.plain import in_words

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
    (aiohttp.ClientResponseError, "what came is no answer in HTTP:"),
    (asyncio.LimitOverrunError, "the answer had no end"),
)


def how_it_ended(error: BaseException) -> str:
    """Returns how a call ended that brought no answer."""
    for kind, sentence in _SENTENCES:
        if isinstance(error, kind):
            return f"{sentence} {in_words(error)}" if sentence.endswith(":") else sentence
    return in_words(error)
