"""One node: an asyncio process that is coordinator, voter and resource manager at once.

Start it with `python -m holdfast.reference.lockd.node --listen … --self … --join … --bundle …`, or with the same words
in the environment (`LOCKD_SELF` and so on). SIGTERM is a graceful stop: leave, release, exit.
"""

import asyncio
import gc
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any, NoReturn

from aiohttp import web

from holdfast.reference.background import Background, with_library_logs
from holdfast.reference.lockd.certificates import load_bundle, trusted_in
from holdfast.reference.lockd.parts import Parts, parts_for
from holdfast.reference.lockd.settings import BadSetting, Settings, settings_from
from holdfast.reference.lockd.store import StoreUnavailable, open_backend

LAST_ANSWERS_SECONDS = 2.0


class Node(Background):
    """Wires the parts together; each of them finds the others here."""

    def __init__(self, settings: Settings, parts: Parts) -> None:
        super().__init__()
        self.settings = parts.settings(settings)
        self._loops: list[asyncio.Task[Any]] = []
        self.clock = parts.clock()
        self.events = parts.events(self.settings.self_endpoint)
        self.trusted = trusted_in(self.settings.tc_trust_dir)
        self.identity = parts.identity(self.settings, self._bundle(), self.trusted)
        self.leader_id = self.identity.own()
        self.island = parts.island(open_backend(self.settings.store), self.settings.fault_file)
        self.peers = parts.peers(self)
        self.members = parts.members(self)
        self.slot = parts.slot(self.clock)
        self.election = parts.election(self)
        self.leave = parts.leave(self)
        self.loop = parts.loop(self)
        self.registry = parts.registry(self)
        self.rmloop = parts.rmloop(self)
        self.txns = parts.txns(self)
        self.boot = parts.boot(self)
        self.http = parts.http(self)

    def _bundle(self) -> Any:
        if self.settings.disable_mtls:
            return None
        if not self.settings.bundle:
            raise BadSetting("--bundle is missing: mTLS needs a server bundle; --disable-mtls is for a lone node.")
        return load_bundle(Path(self.settings.bundle))

    def forgives(self, error: BaseException) -> bool:
        """A store that is away is told, and tried again at the next turn."""
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
        """Nobody is served before the node has looked around, was accepted where it joins, and lists itself."""
        await self.boot.look_around()
        await self.boot.join()
        await self.loop.announce_here()
        await self.election.refresh()
        server = web.Server(self.http.handle, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=LAST_ANSWERS_SECONDS)
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
        context = self.identity.listener(self.trusted)
        await web.TCPSite(runner, *self.settings.address, ssl_context=context, backlog=1024).start()

    def start_loops(self) -> None:
        self._loops = [self.spawn(part.run()) for part in (self.loop, self.election, self.rmloop)]

    async def stop(self) -> None:
        self.events.emit("stopping")
        for task in self._loops:
            task.cancel()
        await self.leave.graceful_stop()
        await asyncio.gather(*self.cancel_work(), return_exceptions=True)
        self.events.emit("stopped")


async def _serve(settings: Settings, parts: Parts) -> bool:
    node = Node(settings, parts)
    await with_library_logs(node.run(), node.events.log)
    return node.failed


def _give_up(sentence: str) -> NoReturn:
    sys.stderr.write(f"command failed: {sentence}\n")
    raise SystemExit(1)


def main(argv: list[str]) -> None:
    try:
        settings = settings_from(os.environ, argv)
        parts = parts_for(settings.violate or os.environ.get("VIOLATE", ""))
        gc.freeze()
        # Not on uvloop (0.23): it closes the descriptor of a reset TLS call twice, the second time somebody else's.
        failed = asyncio.run(_serve(settings, parts))
    except (BadSetting, StoreUnavailable) as error:
        _give_up(str(error))
    except (OSError, ValueError, sqlite3.Error) as error:
        _give_up(f"The node could not start: {error}. Is the port taken, or a bundle damaged?")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
