"""One node: an asyncio process that is coordinator, voter and resource manager at once.

Start it with `python -m holdfast.reference.lockd.node --listen … --self … --join … --bundle …`, or with the same
settings in the environment (`LOCKD_SELF` and so on). SIGTERM is a graceful stop: leave, release, exit.
"""

import asyncio
import sqlite3
import sys
from pathlib import Path
from typing import Any

from aiohttp import web

from holdfast.reference.lockd.certificates import load_bundle, trusted_in
from holdfast.reference.lockd.components import MUTANTS, Components
from holdfast.reference.lockd.settings import Settings, settings_from
from holdfast.reference.lockd.store import StoreUnavailable, open_backend
from holdfast.reference.shared.background import Background
from holdfast.reference.shared.program import Program
from holdfast.reference.shared.settings import BadSetting

LAST_ANSWERS_SECONDS = 2.0


class Node(Background):
    """Builds the components and connects them: each finds the others as attributes of the node."""

    def __init__(self, settings: Settings, components: Components) -> None:
        super().__init__()
        self.settings = components.settings(settings)
        self.speech = components.speech
        self._loops: list[asyncio.Task[Any]] = []
        self.clock = components.clock()
        self.events = components.events(self.settings.self_endpoint)
        self.trusted = trusted_in(self.settings.tc_trust_dir)
        self.identity = components.identity(self.settings, self._bundle(), self.trusted)
        self.leader_id = self.identity.own()
        self.island = components.island(open_backend(self.settings.store), self.settings.fault_file)
        self.peers = components.peers(self)
        self.members = components.members(self)
        self.slot = components.slot(self.clock)
        self.election = components.election(self)
        self.leave = components.leave(self)
        self.loop = components.loop(self)
        self.registry = components.registry(self)
        self.rmloop = components.rmloop(self)
        self.txns = components.txns(self)
        self.boot = components.boot(self)
        self.http = components.http(self)

    def _bundle(self) -> Any:
        if self.settings.disable_mtls:
            return None
        if not self.settings.bundle:
            raise BadSetting("--bundle is missing: mTLS needs a server bundle; --disable-mtls is for a lone node.")
        return load_bundle(Path(self.settings.bundle))

    def forgives(self, error: BaseException) -> bool:
        """Logs a store that is away; the task that met it is tried again at its next turn."""
        if isinstance(error, StoreUnavailable):
            self.events.emit("store.failed", error=str(error))
            return True
        return False

    async def run(self) -> None:
        self.stop_on_signals()
        self.boot.check_startup()
        await self.island.open()
        try:
            await self.serve()
        finally:
            await self.peers.close()
            await self.island.backend.close()

    async def serve(self) -> None:
        """Serves until the stop. `boot.py` says why these steps come in this order."""
        await self.boot.look_around()
        await self.boot.join()
        await self.loop.announce_here()
        await self.election.refresh()
        runner = web.ServerRunner(self.speech.server(self.http.handle), shutdown_timeout=LAST_ANSWERS_SECONDS)
        await runner.setup()
        try:
            await self.listen(runner)
            self.events.emit("listening", address=self.settings.listen, identity=self.leader_id)
            self.start_loops()
            await self.stopping.wait()
            await self.stop()
        finally:
            await runner.cleanup()

    async def listen(self, runner: web.ServerRunner) -> None:
        context = self.speech.listener(self.identity.listener(self.trusted))
        await web.TCPSite(runner, *self.settings.address, ssl_context=context, backlog=1024).start()

    def start_loops(self) -> None:
        self._loops = [self.spawn(each.run()) for each in (self.loop, self.election, self.rmloop)]

    async def stop(self) -> None:
        self.events.emit("stopping")
        for task in self._loops:
            task.cancel()
        await self.leave.graceful_stop()
        await asyncio.gather(*self.cancel_work(), return_exceptions=True)
        self.events.emit("stopped")


PROGRAM = Program(
    settings=settings_from,
    components=Components,
    node=Node,
    mutants=MUTANTS,
    stranger="holdfast.reference.lockd.stranger",
    # Not on uvloop (0.23): it closes the descriptor of a reset TLS call twice, and the second time it may belong to
    # another connection.
    loop=asyncio.run,
    refused=(BadSetting, StoreUnavailable),
    broken=(OSError, ValueError, sqlite3.Error),
    hint="Is the port taken, or a bundle damaged?",
    complains_with="command failed: ",
    gives_up_with=1,
)


def main(argv: list[str]) -> None:
    PROGRAM.main(argv)


if __name__ == "__main__":
    main(sys.argv[1:])
