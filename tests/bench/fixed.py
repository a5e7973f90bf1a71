"""An HTTP server that gives one answer to everything, with as little work as possible; prints its port."""

import asyncio
import sys

_BODY = b'{"outcome": "success", "sessionId": "6f1c0d1e-9f0a-4c3e-9b58-3b0f7c2a9d10"}'
_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + str(len(_BODY)).encode() + b"\r\n\r\n"
) + _BODY


class Fixed(asyncio.Protocol):
    """Counts the ends of requests by their bodies, which all have the same form."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._held = b""

    def data_received(self, data: bytes) -> None:
        self._held += data
        while (end := self._held.find(b"\r\n\r\n")) >= 0:
            length = _length(self._held[:end])
            if len(self._held) < end + 4 + length:
                return
            self._held = self._held[end + 4 + length :]
            self._transport.write(_ANSWER)


def _length(head: bytes) -> int:
    at = head.lower().find(b"content-length:")
    return int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Fixed, "127.0.0.1", 0, backlog=512)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
