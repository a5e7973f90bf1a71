"""Counters of one direction of a proxy, live."""

from dataclasses import dataclass

from holdfast.chaos.linkflow import Way


@dataclass
class Traffic(Way):
    """What came in, what went on, what was lost; a chunk of UDP is a datagram."""

    received: int = 0
    dropped_bytes: int = 0
    dropped_chunks: int = 0

    def drop(self, data: bytes) -> None:
        self.dropped_bytes += len(data)
        self.dropped_chunks += 1

    def shown(self) -> dict[str, int]:
        return {
            "received_bytes": self.received,
            "bytes": self.bytes,
            "chunks": self.chunks,
            "dropped_bytes": self.dropped_bytes,
            "dropped_chunks": self.dropped_chunks,
        }
