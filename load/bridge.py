"""The gevent side of the asyncio bridge, for what gevent can't carry: WebSockets of aiohttp, WebTransport, grpc.aio.

Locust replaces sockets, selectors and threads of its process, and asyncio does not live with that. So asyncio has a
process of its own (`bridged`), at the other end of a pair of sockets. A call goes there as a line of JSON, and the
greenlet that made it waits for the line that answers it; others go on. Moments are taken over there, next to the wire,
on the clock that all processes of a machine share, so waiting in the bridge is no latency of the target.
"""

import json
import socket
import subprocess
import sys
from typing import Any, Self

import gevent
from gevent.event import AsyncResult

_ENDS_WITHIN = 5.0


class BridgeError(RuntimeError):
    """Raised in the greenlet that made a call, when the client broke or the other process is gone."""


class Bridge:
    """An asyncio client in its own process; `client` names its class as `module:Class`."""

    def __init__(self, client: str) -> None:
        ours, theirs = socket.socketpair()
        words = [sys.executable, "-P", "-m", "holdfast.load.bridged", str(theirs.fileno()), client]
        self._process = subprocess.Popen(words, pass_fds=[theirs.fileno()])
        theirs.close()
        self._socket = ours
        self._waiting: dict[int, AsyncResult] = {}
        self._made = 0
        self._reader = gevent.spawn(self._read)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_how: object) -> None:
        self.close()

    def call(self, what: str, **arguments: Any) -> Any:
        """Calls a method of the client and returns what it returned; only this greenlet waits. Raises BridgeError."""
        self._made += 1
        number, result = self._made, AsyncResult()
        self._waiting[number] = result
        line = json.dumps({"number": number, "call": what, "with": arguments}) + "\n"
        try:
            self._socket.sendall(line.encode())
        except OSError as error:
            self._waiting.pop(number, None)
            raise BridgeError(f"the process with the asyncio client is gone: {error}") from error
        return result.get()

    def close(self) -> None:
        """Ends the other process and whoever still waits for an answer of it."""
        self._socket.close()
        try:
            self._process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.kill()
        self._nobody_answers()

    def _read(self) -> None:
        with self._socket.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                said = json.loads(line)
                result = self._waiting.pop(said["number"])
                if "broke" in said:
                    result.set_exception(BridgeError(said["broke"]))
                else:
                    result.set(said["returned"])
        self._nobody_answers()

    def _nobody_answers(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for result in waiting.values():
            result.set_exception(BridgeError("the process with the asyncio client is gone"))
