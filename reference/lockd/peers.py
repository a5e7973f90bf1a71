"""Calls to other nodes: JSON over mTLS, each with a limit, each with the certificate that it is due."""

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
# Below what servers keep an idle connection for, so that none is closed under a call.
KEPT_SECONDS = 20.0


class PeerFailed(Exception):  # noqa: N818  # a state of the peer
    """No answer that can be read."""


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
        """Membership and registry calls are the server's own; the rest is signed as a TC client where there is one."""
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
        except (aiohttp.ClientError, OSError, ValueError, RuntimeError) as error:  # the last: a session that was closed
            raise PeerFailed(f"{type(error).__name__}: {error}") from None

    async def accepts(
        self,
        purpose: Purpose,
        url: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
        limit: float | None = None,
    ) -> str:
        """Empty when the peer answered 200, otherwise why it did not count."""
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
        """Connections are kept between calls: a handshake of both sides costs more than ten calls do."""
        settings, bundle = self.node.settings, self.node.identity.bundle
        if bundle is None:
            return aiohttp.ClientSession(connector=aiohttp.TCPConnector(keepalive_timeout=KEPT_SECONDS, limit=0))
        if certificate == "client":
            bundle = load_bundle(Path(settings.tc_client_bundle))
        context = client_context(bundle, (*self.node.trusted, *self.node.identity.bundle.authorities))  # type: ignore[union-attr]  # seen above
        connector = aiohttp.TCPConnector(ssl=context, keepalive_timeout=KEPT_SECONDS, limit=0)
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
