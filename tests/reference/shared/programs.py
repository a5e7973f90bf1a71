"""A node that is nothing but its main program: components, a mutant, a background task, a signal."""

import asyncio
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.reference.shared.background import Background
from holdfast.reference.shared.jsonlog import JsonLog
from holdfast.reference.shared.program import Program
from holdfast.reference.shared.settings import BadSetting, read_settings, setting, truth


@dataclass(frozen=True, kw_only=True)
class Settings:
    fails: bool = setting(False, truth, env="FAILS", flag="--fails")
    breaks: bool = setting(False, truth, env="BREAKS")


@dataclass
class Components:
    settings: Callable[[Settings], Settings] = lambda given: given


class Node(Background):
    def __init__(self, settings: Settings, components: Components) -> None:
        super().__init__()
        self.settings = components.settings(settings)
        self.events = JsonLog("n1", sys.stdout.buffer)

    async def run(self) -> None:
        if self.settings.breaks:
            raise sqlite3.OperationalError("disk I/O error")
        self.stop_on_signals()
        self.spawn(self.work())
        self.events.emit("listening", fails=self.settings.fails)
        await self.stopping.wait()
        await asyncio.gather(*self.cancel_work(), return_exceptions=True)
        self.events.log("info", "Stopped.")

    async def work(self) -> None:
        if self.settings.fails:
            raise LookupError("a secret")
        await asyncio.Event().wait()


PROGRAM = Program(
    settings=lambda environment, argv: read_settings(Settings, environment, argv),
    components=Components,
    node=Node,
    mutants="tests.reference.shared.mutants",
    refused=(BadSetting,),
    broken=(OSError, sqlite3.Error),
    hint="Look at the disk.",
    complains_with="sorry: ",
    gives_up_with=4,
)


if __name__ == "__main__":
    PROGRAM.main(sys.argv[1:])
