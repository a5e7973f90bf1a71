"""How a runner asks for places on the machine, alone or beside other runners.

A runner that is alone keeps the books itself (`OwnTokens`). Of several runners none does: the books are in the process
that started them (`Broker`), and each runner asks over a socket (`SharedTokens`), one JSON list a line:

    runner -> ["ask", number, lane, places, urgency]        broker -> number, once the places are the runner's
    runner -> ["give", number]                              no answer

The socket is what makes the tokens safe against crashes. A place belongs to the connection over which it was asked for;
the kernel closes the connection of a runner that ends, however it ends, and the broker takes the places back when it
reads that end. Nothing is written to a file, so nothing can be left behind. If the broker ends first, its runners are
killed with it; until then whoever waits is let go, because nobody is left to share with.

A question whose asker is cancelled is withdrawn by the same message that gives places back, so it does not matter which
of the two was first on its way.
"""

import asyncio
import contextlib
import itertools
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import Protocol

from holdfast.run.places import Asked, Lane, Places

_CHUNK = 1 << 16
# How urgent it is whatever the current task asks for: the seconds that its check plans to take. It follows a check into
# everything that is started for it, so that the deployment of a long check does not queue behind those of short ones.
URGENCY: ContextVar[float] = ContextVar("urgency", default=0.0)
MOST_URGENT = 1e9


class Tokens(Protocol):
    def place(self, lane: Lane, places: int = 1) -> AbstractAsyncContextManager[None]:
        """Have that many places of the lane inside the block; entering waits for them."""


class _Asking:
    """Common to both ways: a future for each question, resolved by its answer. Used on one loop only."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[None]] = {}

    @contextlib.asynccontextmanager
    async def place(self, lane: Lane, places: int = 1) -> AsyncIterator[None]:
        number = next(self._numbers)
        granted = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._ask(number, lane, places)
            await granted
            yield
        finally:
            self._waiting.pop(number, None)
            self._give_back(number)

    def _granted(self, number: int) -> None:
        granted = self._waiting.get(number)
        if granted and not granted.done():
            granted.set_result(None)

    def _ask(self, number: int, lane: Lane, places: int) -> None:
        raise NotImplementedError

    def _give_back(self, number: int) -> None:
        raise NotImplementedError


class OwnTokens(_Asking):
    """The tokens of a runner that has the machine for itself."""

    def __init__(self, places: Places | None = None) -> None:
        super().__init__()
        self._places = places or Places()

    def _ask(self, number: int, lane: Lane, places: int) -> None:
        self._answer(self._places.ask(Asked(0, number), lane, places, URGENCY.get()))

    def _give_back(self, number: int) -> None:
        self._answer(self._places.give_back(Asked(0, number)))

    def _answer(self, answered: list[Asked]) -> None:
        for asked in answered:
            self._granted(asked.number)


class SharedTokens(_Asking):
    """The tokens of one of several runners; `attach` binds it to the loop that will ask."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self._unread = b""
        self._alone = False

    def attach(self) -> None:
        self._connection.setblocking(False)
        asyncio.get_running_loop().add_reader(self._connection, self._read)

    def _read(self) -> None:
        try:
            data = self._connection.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._nobody_there()
            return
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._granted(int(line))

    def _ask(self, number: int, lane: Lane, places: int) -> None:
        self._send(["ask", number, lane, places, URGENCY.get()])
        if self._alone:
            self._granted(number)

    def _give_back(self, number: int) -> None:
        self._send(["give", number])

    def _send(self, message: list[object]) -> None:
        """Messages are short and the broker reads all the time, so the socket's buffer has room for each."""
        if self._alone:
            return
        try:
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            self._nobody_there()

    def _nobody_there(self) -> None:
        self._alone = True
        asyncio.get_running_loop().remove_reader(self._connection)
        for number in list(self._waiting):
            self._granted(number)


class Broker:
    """The other end: keeps the books of all runners. Whoever selects on the sockets calls `read` and `leave`."""

    def __init__(self, places: Places | None = None) -> None:
        self.places = places or Places()
        self._connections: dict[int, socket.socket] = {}
        self._unread: dict[int, bytes] = {}

    def join(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connections[connection.fileno()] = connection
        self._unread[connection.fileno()] = b""

    def read(self, owner: int) -> bool:
        """Answer what this connection asks; False at its end, when its places are free again."""
        try:
            data = self._connections[owner].recv(_CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        if not data:
            self.leave(owner)
            return False
        *lines, self._unread[owner] = (self._unread[owner] + data).split(b"\n")
        for line in lines:
            self._obey(owner, json.loads(line))
        return True

    def leave(self, owner: int) -> None:
        if connection := self._connections.pop(owner, None):
            connection.close()
            del self._unread[owner]
            self._answer(self.places.forget(owner))

    def close(self) -> None:
        for owner in list(self._connections):
            self.leave(owner)

    def _obey(self, owner: int, message: list[object]) -> None:
        match message:
            case ["ask", int(number), "start" | "work" as lane, int(places), int() | float() as urgency]:
                self._answer(self.places.ask(Asked(owner, number), lane, places, urgency))
            case ["give", int(number)]:
                self._answer(self.places.give_back(Asked(owner, number)))
            case _:
                raise ValueError(f"no message of a runner: {message!r}")

    def _answer(self, answered: list[Asked]) -> None:
        for asked in answered:
            with contextlib.suppress(OSError):  # it has just ended, and the end of its connection will be read
                self._connections[asked.owner].sendall(b"%d\n" % asked.number)
