"""The API process (3.1): stateless but for its secrets. Start it with `python -m holdfast.reference.intents api`."""

import sys

import uvloop
from aiohttp import web

from holdfast.reference.intents.components import Components
from holdfast.reference.intents.metrics import listen
from holdfast.reference.intents.scripts import limits
from holdfast.reference.intents.settings import Settings, settings_from
from holdfast.reference.shared.background import Background
from holdfast.reference.shared.metrics import without_created
from holdfast.reference.shared.program import Program

FIRST_REDIS_SECONDS = 1.0
STOP_SECONDS = 5.0


class Api(Background):
    """Wires the components of an API process together; each of them finds the others here."""

    def __init__(self, settings: Settings, components: Components) -> None:
        super().__init__()
        self.settings = components.settings(settings)
        self.speech = components.speech
        self.events = components.events(self.settings.node, sys.stdout.buffer)
        self.scripts = components.scripts(limits(self.settings), components.lua)
        self.metrics = components.metrics(self.settings)
        self.guard = components.guard(self.settings)
        self.principals = components.principals(self.settings)
        self.payloads = components.payloads(self.settings)
        self.keys = components.keys(self.settings, self.events)
        self.store = components.store(self)
        self.link = components.link(self.settings.redis_url, self.store.prepare)
        self.leases = components.api_leases(self)
        self.acceptance = components.acceptance(self)
        self.polls = components.polls(self)
        self.http = components.http(self)

    async def run(self) -> None:
        """Serves until a signal stops it; comes up also while Redis is away."""
        self.stop_on_signals()
        runner = web.ServerRunner(self.speech.server(self.http.handle), shutdown_timeout=STOP_SECONDS)
        metrics = web.ServerRunner(web.Server(self.metrics.serve, access_log=None))
        await runner.setup()
        await metrics.setup()
        self.link.start()
        await self.link.first(FIRST_REDIS_SECONDS)
        await self.listen(runner, metrics)
        await self.stopping.wait()
        await runner.cleanup()
        await metrics.cleanup()
        self.cancel_work()
        await self.link.close()
        self.events.log("info", "Stopped.")

    async def listen(self, runner: web.ServerRunner, metrics: web.ServerRunner) -> None:
        if self.settings.metrics_listen:
            await listen(self.settings.metrics_listen, metrics)
        await listen(self.settings.listen, runner)
        self.events.log("info", f"Listening on {self.settings.listen}.")

    def ready(self) -> bool:
        return self.link.up


PROGRAM = Program(
    settings=settings_from,
    components=Components,
    node=Api,
    mutants="holdfast.reference.intents.mutants",
    stranger="holdfast.reference.intents.stranger",
    loop=without_created(uvloop.run),
)


def main(argv: list[str]) -> None:
    PROGRAM.main(argv)
