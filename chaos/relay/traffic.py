"""Counters of one direction of a proxy, live: the bytes of open connections count at once."""

from dataclasses import dataclass

from holdfast.chaos.links.flow import Direction


@dataclass
class Traffic(Direction):
    """What was received, passed on, dropped and altered; with UDP a chunk is a datagram."""

    received: int = 0
    dropped_bytes: int = 0
    dropped_chunks: int = 0
    altered_chunks: int = 0

    def drop(self, data: bytes) -> None:
        self.dropped_bytes += len(data)
        self.dropped_chunks += 1

    def alter(self) -> None:
        self.altered_chunks += 1

    def shown(self) -> dict[str, int]:
        return {
            "received_bytes": self.received,
            "bytes": self.bytes,
            "chunks": self.chunks,
            "dropped_bytes": self.dropped_bytes,
            "dropped_chunks": self.dropped_chunks,
            "altered_chunks": self.altered_chunks,
        }
