"""A false member: it announces itself, answers by script and keeps what nodes send to it."""

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web
from cryptography import x509

from holdfast.conformance.lockd import bundles
from tests.reference.lockd.world import TTL, Caller, World
from tests.reference.world import free_port

Script = dict[str, tuple[int, Any]]
FRIENDLY: Script = {
    "/v1/tc/cluster/announce": (200, {"endpoints": []}),
    "/v1/tc/cluster/leave": (200, {"endpoints": []}),
    "/v1/tc/leader": (200, {}),
    "/v1/tc/lease/acquire": (200, {"granted": True}),
    "/v1/tc/lease/renew": (200, {"renewed": True}),
    "/v1/tc/lease/release": (200, {"released": True}),
    "/v1/tc/rm/register": (200, {}),
    "/v1/tc/rm/unregister": (200, {}),
    "/v1/txn/decide": (200, {"txn_id": "of the spy", "state": "commit"}),
    "/v1/txn/commit": (200, {}),
}
REFUSAL = (409, {"error": "tc_lease_active"})


@dataclass
class Heard:
    at: float
    path: str
    body: dict[str, Any]
    headers: Mapping[str, str]
    uris: list[str]
    names: list[str]  # of the headers, as they were sent


@dataclass
class Spy:
    world: World
    node_id: str
    bundle: bytes
    port: int
    script: Script = field(default_factory=lambda: dict(FRIENDLY))
    heard: list[Heard] = field(default_factory=list)
    delay: float = 0.0

    @property
    def endpoint(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def caller(self) -> Caller:
        return Caller(self.world, self.bundle, self.node_id)

    def refuse_votes(self) -> None:
        self.script |= {"/v1/tc/lease/acquire": REFUSAL, "/v1/tc/lease/renew": REFUSAL}

    def grant_votes(self) -> None:
        self.script |= {path: FRIENDLY[path] for path in ("/v1/tc/lease/acquire", "/v1/tc/lease/renew")}

    def calls(self, path: str) -> list[Heard]:
        return [each for each in self.heard if each.path == f"/v1/{path}"]

    async def handle(self, request: web.BaseRequest) -> web.Response:
        transport = request.transport
        assert transport is not None
        der = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        names = x509.load_der_x509_certificate(der).extensions.get_extension_for_class(x509.SubjectAlternativeName)
        raw = await request.read()
        self.heard.append(
            Heard(
                time.monotonic(),
                request.path,
                json.loads(raw) if raw else {},
                request.headers,
                names.value.get_values_for_type(x509.UniformResourceIdentifier),
                [name.decode() for name, _ in request.raw_headers],
            )
        )
        await asyncio.sleep(self.delay)
        status, body = self.script[request.path]
        return web.json_response(body, status=status)

    async def keep_announcing(self) -> None:
        while True:
            with suppress(aiohttp.ClientError, OSError):
                await self.caller.announce(0, self.endpoint)
            await asyncio.sleep(TTL)

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=self.world.authority.pem)
        file = self.world.folder / f"{self.port}.pem"
        file.write_bytes(self.bundle[self.bundle.index(b"-----END CERTIFICATE-----\n") + 26 :])
        context.load_cert_chain(file)
        return context


@asynccontextmanager
async def spy(w: World, *, member: bool = True, hosts: tuple[str, ...] = ()) -> AsyncIterator[Spy]:
    node_id = bundles.new_node_id()
    made = Spy(w, node_id, w.authority.client_bundle(bundles.server(node_id, hosts)), free_port())
    runner = web.ServerRunner(web.Server(made.handle, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", made.port, ssl_context=made.context()).start()
    task = asyncio.create_task(made.keep_announcing()) if member else None
    try:
        yield made
    finally:
        if task:
            task.cancel()
        await runner.cleanup()
