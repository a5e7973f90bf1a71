"""One connection to a Redis, without a pool and without retries: what fails is seen, and when an answer came is known.

Clients retry by default, which hides a fault from whoever wants to see it and makes a moment of sending meaningless.
"""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Self

from redis.asyncio import Connection, ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError


class RedisWire:
    """Sends commands and reads answers, each when it is told to; `url` is a redis:// or rediss:// URL."""

    def __init__(self, url: str, connection: Connection) -> None:
        self.url = url
        self._connection = connection

    @classmethod
    async def open(cls, url: str, *, deadline: float, maps: bool = False) -> Self:
        """Connects. With `maps` the server answers tables as tables (RESP3), which no subscriber should ask for."""
        pool = ConnectionPool.from_url(
            url,
            protocol=3 if maps else 2,
            decode_responses=True,
            encoding_errors="replace",
            retry=Retry(NoBackoff(), 0),
            socket_connect_timeout=deadline,
        )
        connection: Connection = pool.make_connection()  # type: ignore[no-untyped-call]  # redis-py has no hints here
        await connection.connect()  # type: ignore[no-untyped-call]  # the same
        return cls(url, connection)

    async def send(self, *words: str | int) -> None:
        await self._connection.send_command(*words)

    async def receive(self) -> Any:
        """Returns the next answer or message. Raises ResponseError for an error of the server."""
        return await self._connection.read_response()

    async def ask(self, *words: str | int) -> Any:
        await self.send(*words)
        return await self.receive()

    async def transaction(self, commands: list[list[str]]) -> list[Any]:
        """Does all commands as one step; returns their answers. Raises ResponseError for the first that fails."""
        await self.ask("MULTI")
        for words in commands:
            await self.ask(*words)
        answers: list[Any] = await self.ask("EXEC")
        for answer in answers:
            if isinstance(answer, ResponseError):
                raise answer
        return answers

    async def close(self) -> None:
        with contextlib.suppress(OSError):
            await self._connection.disconnect(nowait=True)


@contextlib.asynccontextmanager
async def connected(url: str, *, deadline: float, maps: bool = False) -> AsyncIterator[RedisWire]:
    """Gives a connection for the block, and closes it after."""
    wire = await RedisWire.open(url, deadline=deadline, maps=maps)
    try:
        yield wire
    finally:
        await wire.close()
