"""A published contract of messages (`proto/<key>/asyncapi.yaml`, AsyncAPI 3) as something to hold a message against.

A message is known by the channel that it was seen on. The channel's address may have parameters
(`job.{id}.status`); where several addresses fit, the one with the fewest parameters and
the most fixed text counts. A channel may
carry several kinds of message: one of them has to fit, and where none does, the one with the fewest mistakes is named.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import yaml
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from holdfast import rooms
from holdfast.spec.contract import escaped

_URI = "urn:holdfast:messages"
_PARAMETER = re.compile(r"\{(\w+)\}")


def document(key: str) -> dict[str, Any]:
    text = (rooms.folder("proto") / key / "asyncapi.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


class MessageContract:
    """Says what is wrong with a message, in one sentence, or nothing."""

    def __init__(self, contract: Mapping[str, Any]) -> None:
        self._document = dict(contract)
        resource = DRAFT202012.create_resource(self._document)
        self._registry: Registry[Any] = Registry().with_resource(_URI, resource)

    @classmethod
    def of(cls, key: str) -> "MessageContract":
        return cls(document(key))

    def problem(self, address: str, payload: Any) -> str | None:
        channel = self.channel(address)
        if channel is None:
            return f"the contract has no channel {address}"
        found = {name: self._errors(channel, name, payload) for name in self._messages(channel)}
        if not found:
            return f"the contract has no message on {channel}"
        name, errors = min(found.items(), key=lambda each: len(each[1]))
        return f"{name} on {address}: {'; '.join(errors)}"[:500] if errors else None

    def undocumented(self, seen: Iterable[tuple[str, Any]]) -> set[str]:
        return {problem for address, payload in seen if (problem := self.problem(address, payload))}

    def channel(self, address: str) -> str | None:
        """The name of the channel that this address belongs to."""
        fitting = [(rank, name) for name, pattern, rank in self._channels if pattern.fullmatch(address)]
        return min(fitting)[1] if fitting else None

    @cached_property
    def _channels(self) -> list[tuple[str, re.Pattern[str], tuple[int, int]]]:
        """Each channel with its address as a pattern, and its rank: few parameters first, then much fixed text."""
        found = []
        for name, channel in self._document["channels"].items():
            pieces = _PARAMETER.split(channel["address"])
            pattern = "".join(re.escape(piece) if at % 2 == 0 else r"[^\s]+?" for at, piece in enumerate(pieces))
            rank = (len(pieces) // 2, -sum(map(len, pieces[::2])))
            found.append((name, re.compile(pattern), rank))
        return found

    def _messages(self, channel: str) -> Mapping[str, Any]:
        messages: Mapping[str, Any] = self._document["channels"][channel].get("messages", {})
        return messages

    def _errors(self, channel: str, name: str, payload: Any) -> list[str]:
        pointer, message = f"/channels/{escaped(channel)}/messages/{escaped(name)}", self._messages(channel)[name]
        while "$ref" in message:
            pointer = message["$ref"].removeprefix("#")
            message = self._at(pointer)
        schema = {"$ref": f"{_URI}#{pointer}/payload"}
        validator = Draft202012Validator(schema, registry=self._registry, format_checker=FormatChecker())
        errors = sorted(validator.iter_errors(payload), key=lambda error: error.json_path)
        return [f"{error.json_path}: {error.message}" for error in errors]

    def _at(self, pointer: str) -> Any:
        place: Any = self._document
        for part in pointer.strip("/").split("/"):
            place = place[part.replace("~1", "/").replace("~0", "~")]
        return place
