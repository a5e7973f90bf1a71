"""One node of the admission service: an asyncio process with HTTP, WebSocket, janitor and promoter.

Start it with `PORT=… REDIS_URL=… python -m holdfast.reference.admission.node`. Everything that nodes share is in
Redis; a node itself has its open sockets, its debts (recovery.py), the last gauge values and an estimate of the Redis
clock.
"""

import ssl
import sys

import uvloop
from aiohttp import web

from holdfast.reference.admission.components import Components
from holdfast.reference.admission.settings import Settings, settings_from
from holdfast.reference.shared.background import Background
from holdfast.reference.shared.metrics import without_created
from holdfast.reference.shared.program import Program

SETTLE_SECONDS = 2.0
FIRST_REDIS_SECONDS = 1.0


class Node(Background):
    """Wires the components together; each of them finds the others here."""

    def __init__(self, settings: Settings, components: Components) -> None:
        super().__init__()
        self.settings = components.settings(settings)
        self.speech = components.speech
        self.rules = components.rules(self.settings)
        self.identity = components.identity(self.settings.auth_secret, self.settings.admin_token)
        self.events = components.events(self, sys.stdout.buffer)
        self.scripts = components.scripts(self.rules.limits(), components.lua)
        self.recovery = components.recovery(self)
        self.link = components.link(self.settings.redis_url, self.recovery.on_connect)
        self.store = components.store(self)
        self.metrics = components.metrics(self)
        self.kicks = components.kicks(self)
        self.attempts = components.attempts(self)
        self.promoter = components.promoter(self)
        self.janitor = components.janitor(self)
        self.sockets = components.sockets(self)
        self.watches = components.watches(self)
        self.follow_ups = components.follow_ups(self)
        self.admin = components.admin(self)
        self.http = components.http(self)

    async def run(self) -> None:
        """Serves until a signal or a failed background task stops it; comes up also while Redis is away."""
        self.stop_on_signals()
        runner = web.ServerRunner(self.speech.server(self.http.handle), shutdown_timeout=self.settings.attempt_deadline)
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
            await web.TCPSite(
                runner, settings.host, settings.tls_port, ssl_context=self.speech.listener(context)
            ).start()

    async def stop(self, runner: web.ServerRunner) -> None:
        """Stops the node.

        No new connections; sockets closed, so that their sessions go into grace; requests under way answered; debts
        paid; background tasks cancelled. The connection to Redis is closed last, because the steps before need it.
        """
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


PROGRAM = Program(
    settings=settings_from,
    components=Components,
    node=Node,
    mutants="holdfast.reference.admission.mutants",
    stranger="holdfast.reference.admission.stranger",
    loop=without_created(uvloop.run),
    hint="Is the port taken, or a TLS file missing?",
)


def main(argv: list[str]) -> None:
    PROGRAM.main(argv)


if __name__ == "__main__":
    main(sys.argv[1:])
