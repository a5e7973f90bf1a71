"""Calls to other nodes: JSON over mTLS, each with a time limit and with the certificate that its purpose needs.

A call has two outcomes: a `Reply`, whatever its status, or `PeerFailed`. Everything that can go wrong underneath (no
connection, a failed handshake, no answer in time, a body without end) is `PeerFailed`, because no caller can do more
about one of them than about another, and because none of them may end a loop. `PeerFailed` says nothing about what
the peer did: it may have carried out the call and lost the answer. A caller for whom that matters has to undo it
there (`registry.py`).

Membership and registry calls present the server certificate, which their receivers demand. Election and transaction
calls present the TC client certificate where one is configured. Chain and usage of the peer's certificate are
verified, its host name never: identity is the SPIFFE URI (spec: Server identity).

There is one session for each certificate, opened at its first call and kept, because a handshake with two
certificates costs more than ten calls. Redirects are not followed: they would carry a lease or a leave to a node that
is no member.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import aiohttp

from holdfast.reference.lockd.certificates import client_context, load_bundle

if TYPE_CHECKING:
    from holdfast.reference.lockd.node import Node

Purpose = Literal["membership", "election", "registry", "transaction"]
LARGEST_REPLY = 1 << 20
# Less than servers keep an idle connection for, so that none is closed while a call uses it.
KEPT_SECONDS = 20.0


class PeerFailed(Exception):  # noqa: N818  # a state of the peer
    """There was no answer that could be read."""


@dataclass(frozen=True)
class Reply:
    status: int
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status == 200


class Peers:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self._sessions: dict[str, aiohttp.ClientSession] = {}

    def certificate_for(self, purpose: Purpose) -> str:
        asks_as_client = purpose in {"election", "transaction"} and self.node.settings.tc_client_bundle
        return "client" if asks_as_client else "server"

    async def call(
        self,
        purpose: Purpose,
        method: str,
        url: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        limit: float | None = None,
    ) -> Reply:
        session = self._session(self.certificate_for(purpose))
        data = None if body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        try:
            async with asyncio.timeout(limit or self.node.settings.peer_call_timeout):
                async with session.request(method, url, data=data, headers=sent, allow_redirects=False) as reply:
                    return Reply(reply.status, _object(await _whole(reply)))
        except TimeoutError:
            raise PeerFailed("no answer in time") from None
        except (
            aiohttp.ClientError,
            OSError,
            ValueError,
            RuntimeError,
        ) as error:  # the last: a closed session
            raise PeerFailed(f"{type(error).__name__}: {error}") from None

    async def accepts(
        self,
        purpose: Purpose,
        url: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
        limit: float | None = None,
    ) -> str:
        """Returns an empty text when the peer answered 200, otherwise what it did instead."""
        try:
            reply = await self.call(purpose, "POST", url, body, headers, limit)
        except PeerFailed as failed:
            return str(failed)
        return "" if reply.ok else f"{reply.status} {reply.body.get('error', '')}".strip()

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()

    def _session(self, certificate: str) -> aiohttp.ClientSession:
        if certificate not in self._sessions:
            self._sessions[certificate] = self.open_session(certificate)
        return self._sessions[certificate]

    def open_session(self, certificate: str) -> aiohttp.ClientSession:
        settings, bundle, speech = self.node.settings, self.node.identity.bundle, self.node.speech
        if bundle is None:
            return aiohttp.ClientSession(connector=speech.connector(keepalive_timeout=KEPT_SECONDS, limit=0))
        if certificate == "client":
            bundle = load_bundle(Path(settings.tc_client_bundle))
        context = client_context(bundle, (*self.node.trusted, *self.node.identity.bundle.authorities))  # type: ignore[union-attr]  # seen above
        connector = speech.connector(ssl=context, keepalive_timeout=KEPT_SECONDS, limit=0)
        return aiohttp.ClientSession(connector=connector, trust_env=True)


async def _whole(reply: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in reply.content.iter_any():
        body += piece
        if len(body) > LARGEST_REPLY:
            raise ValueError(f"more than {LARGEST_REPLY} bytes")
    return bytes(body)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw) if raw.strip() else {}
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}
