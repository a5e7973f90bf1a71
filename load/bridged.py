"""The asyncio side of the bridge: `python -m holdfast.load.bridged <descriptor of a socket> <module:Class>`.

Reads calls, one JSON object a line, performs each as a task of its own and writes what came of it. It ends with the
socket: when the process at the other end does, however that ended.

A client is a class without arguments whose coroutine methods take and return what JSON can carry. If it is an
asynchronous context manager it is entered before the first call and left after the last one.
"""

import asyncio
import contextlib
import importlib
import json
import socket
import sys
from typing import Any

_LONGEST_LINE = 16 * 1024 * 1024


async def serve(descriptor: int, client: Any) -> None:
    """Performs calls until the other end is gone; what still runs then is cancelled."""
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=descriptor), limit=_LONGEST_LINE)
    tasks: set[asyncio.Task[None]] = set()
    async with contextlib.AsyncExitStack() as stack:
        if hasattr(client, "__aenter__"):
            await stack.enter_async_context(client)
        while line := await reader.readline():
            task = asyncio.create_task(_perform(client, json.loads(line), writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _perform(client: Any, said: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    try:
        returned = await getattr(client, said["call"])(**said["with"])
        answer = {"number": said["number"], "returned": returned}
    except Exception as error:  # noqa: BLE001 - whatever it is, the greenlet that called is told
        answer = {"number": said["number"], "broke": f"{type(error).__name__}: {error}"}
    writer.write((json.dumps(answer) + "\n").encode())
    await writer.drain()


def main(descriptor: str, client: str) -> None:
    module, _, name = client.partition(":")
    made = getattr(importlib.import_module(module), name)()
    with contextlib.suppress(KeyboardInterrupt, ConnectionError):
        asyncio.run(serve(int(descriptor), made))


if __name__ == "__main__":
    main(*sys.argv[1:])
