"""One node of the admission service: an asyncio process with HTTP, WebSocket, janitor and promoter.

Start it with `PORT=… REDIS_URL=… python -m holdfast.reference.admission.node`. Everything that nodes share is in
Redis; a node itself has its open sockets, the last gauge values and an estimate of the Redis clock.
"""

import gc
import os
import ssl
import sys
from typing import NoReturn

import prometheus_client
import uvloop
from aiohttp import web

from holdfast.reference.admission.parts import Parts
from holdfast.reference.admission.settings import BadSetting, Settings, settings_from
from holdfast.reference.background import Background, with_library_logs

SETTLE_SECONDS = 2.0
FIRST_REDIS_SECONDS = 1.0


class Node(Background):
    """Wires the parts together; each of them finds the others here."""

    def __init__(self, settings: Settings, parts: Parts) -> None:
        super().__init__()
        self.settings = parts.settings(settings)
        self.rules = parts.rules(self.settings)
        self.identity = parts.identity(self.settings.auth_secret, self.settings.admin_token)
        self.events = parts.events(self, sys.stdout.buffer)
        self.scripts = parts.scripts(self.rules.limits(), parts.lua)
        self.recovery = parts.recovery(self)
        self.link = parts.link(self.settings.redis_url, self.recovery.on_connect)
        self.store = parts.store(self)
        self.metrics = parts.metrics(self)
        self.kicks = parts.kicks(self)
        self.attempts = parts.attempts(self)
        self.promoter = parts.promoter(self)
        self.janitor = parts.janitor(self)
        self.sockets = parts.sockets(self)
        self.watches = parts.watches(self)
        self.calls = parts.calls(self)
        self.admin = parts.admin(self)
        self.http = parts.http(self)

    async def run(self) -> None:
        """Serves until told to stop; comes up also while Redis is away."""
        self.stop_on_signals()
        runner = web.ServerRunner(
            web.Server(self.http.handle, access_log=None), shutdown_timeout=self.settings.attempt_deadline
        )
        await runner.setup()
        self.start()
        await self.link.first(FIRST_REDIS_SECONDS)
        await self.listen(runner)
        self.events.log("info", f"Listening on {self.settings.host}:{self.settings.port}.")
        await self.stopping.wait()
        await self.stop(runner)

    def start(self) -> None:
        self.link.start()
        self.kicks.subscription.start()
        self.spawn(self.janitor.run())
        self.spawn(self.promoter.run())
        if self.events.audit is not None:
            self.spawn(self.events.audit.run())

    async def listen(self, runner: web.ServerRunner) -> None:
        settings = self.settings
        await web.TCPSite(runner, settings.host, settings.port, backlog=1024).start()
        if settings.tls:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(settings.tls_cert_file, settings.tls_key_file)
            await web.TCPSite(runner, settings.host, settings.tls_port, ssl_context=context).start()

    async def stop(self, runner: web.ServerRunner) -> None:
        """Sockets are told to go elsewhere, requests under way get their answer, sessions go into grace."""
        for site in list(runner.sites):
            await site.stop()
        await self.sockets.close_all()
        await self.watches.close_all()
        await runner.cleanup()
        await self.recovery.settle(SETTLE_SECONDS)
        self.cancel_work()
        await self.link.close()
        await self.kicks.subscription.close()
        self.events.log("info", "Stopped.")


async def _serve(settings: Settings, parts: Parts) -> bool:
    node = Node(settings, parts)
    await with_library_logs(node.run(), node.events.log)
    return node.failed


def _parts(argv: list[str]) -> Parts:
    """The parts as the spec wants them, or with the one violation that was asked for."""
    names = [name for name in os.environ.get("VIOLATE", "").replace(",", " ").split() if name]
    rest = iter(argv)
    for word in rest:
        if word != "--violate":
            raise BadSetting(f"Unknown argument {word!r}; the node takes --violate ID/n and its environment.")
        names.append(next(rest, ""))
    parts = Parts()
    if names:
        from holdfast.reference.admission.mutants.registry import apply

        for name in names:
            apply(name, parts)
    return parts


def _give_up(sentence: str) -> NoReturn:
    sys.stderr.write(f"{sentence}\n")
    raise SystemExit(2)


def main(argv: list[str]) -> None:
    try:
        settings = settings_from(os.environ)
        parts = _parts(argv)
    except BadSetting as error:
        _give_up(str(error))
    gc.freeze()  # imports stay: a full collection would make every attempt wait
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # the package has no annotation
    try:
        failed = uvloop.run(_serve(settings, parts))
    except OSError as error:
        _give_up(f"The node could not start: {error}. Is the port taken, or a TLS file missing?")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
