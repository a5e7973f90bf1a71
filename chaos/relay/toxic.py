"""Toxics: their types, their attributes, and how they are read, changed and shown."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.chaos.relay.gojson import BodyError, Fields, write, write_single

UPSTREAM, DOWNSTREAM = "upstream", "downstream"
STREAMS = (UPSTREAM, DOWNSTREAM)

Attributes = Mapping[str, type]

# Milliseconds, KB/s and bytes, as Toxiproxy has them; only the slicer's delay is in microseconds.
TCP: Mapping[str, Attributes] = {
    "latency": {"latency": int, "jitter": int},
    "bandwidth": {"rate": int},
    "slow_close": {"delay": int},
    "timeout": {"timeout": int},
    "reset_peer": {"timeout": int},
    "limit_data": {"bytes": int},
    "slicer": {"average_size": int, "size_variation": int, "delay": int},
    "noop": {},
    "blackhole": {},
    "refuse": {},
}
UDP: Mapping[str, Attributes] = {
    "latency": {"latency": int, "jitter": int, "ordered": bool},
    "bandwidth": {"rate": int, "queue": int},
    "timeout": {"timeout": int},
    "limit_data": {"bytes": int},
    "noop": {},
    "blackhole": {},
    "packet_loss": {"loss_rate": float, "correlation": float},
    "duplicate": {"rate": float},
    "reorder": {"rate": float, "delay": int},
    "corrupt": {"rate": float},
    "rebind": {"interval": int},
}
TYPES = {"tcp": TCP, "udp": UDP}


class ApiError(Exception):
    """A refusal of the API, with its status and the text that clients look for."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def bad_body(error: BodyError) -> ApiError:
    return ApiError(400, f"bad request body: {error}")


@dataclass
class Toxic:
    name: str
    type: str
    stream: str
    toxicity: float
    attributes: dict[str, Any]

    @property
    def direction(self) -> str:
        return self.stream.lower()

    def __getitem__(self, attribute: str) -> Any:
        return self.attributes[attribute]

    def change(self, fields: Fields, protocol: str) -> None:
        """Change the given attributes and the toxicity: all of them or, when one is refused, none."""
        attributes = _read_attributes(fields, TYPES[protocol][self.type], self.attributes)
        toxicity = fields.single("toxicity", self.toxicity)
        _refuse_impossible(self.type, attributes)
        self.attributes, self.toxicity = attributes, toxicity

    def json(self) -> str:
        return (
            f'{{"attributes":{write(self.attributes)},"name":{write(self.name)},"type":{write(self.type)},'
            f'"stream":{write(self.stream)},"toxicity":{write_single(self.toxicity)}}}'
        )


def read_toxic(fields: Fields, protocol: str, taken: set[str]) -> Toxic:
    """Read a new toxic. The order of the checks is part of the API."""
    stream, type_ = fields.text("stream", DOWNSTREAM), fields.text("type")
    name, toxicity = fields.text("name"), fields.single("toxicity", 1.0)
    fields.fields("attributes")  # raises if it is no object
    if stream.lower() not in STREAMS:
        raise ApiError(400, "stream was invalid, can be either upstream or downstream")
    if type_ not in TYPES[protocol]:
        raise ApiError(400, "invalid toxic type")
    name = name or f"{type_}_{stream}"
    if name in taken:
        raise ApiError(409, "toxic already exists")
    wanted = TYPES[protocol][type_]
    attributes = _read_attributes(fields, wanted, {key: kind() for key, kind in wanted.items()})
    _refuse_impossible(type_, attributes)
    return Toxic(name, type_, stream, toxicity, attributes)


def _read_attributes(fields: Fields, wanted: Attributes, now: dict[str, Any]) -> dict[str, Any]:
    given = fields.fields("attributes")
    readers = {int: given.whole, float: given.number, bool: _flag_of(given)}
    return {key: readers[kind](key, now[key]) for key, kind in wanted.items()}


def _flag_of(given: Fields) -> Any:
    return lambda key, now: given.flag(key, default=now)


def _refuse_impossible(type_: str, attributes: dict[str, Any]) -> None:
    """Refuse values that would crash a Toxiproxy 2.12, as 2.13 refuses them."""
    if type_ != "slicer":
        return
    average, variation = attributes["average_size"], attributes["size_variation"]
    if average <= 0:
        raise BodyError("average_size must be greater than 0")
    if not 0 <= variation <= average:
        raise BodyError("size_variation must be at least 0 and at most average_size")
