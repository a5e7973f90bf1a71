"""Generated protobuf messages as a contract: whether bytes from a stranger are the message that they should be.

What proto3 leaves open is legal: absent fields, unknown fields (a newer peer may know more), any order. Wrong are bytes
that do not parse, texts that are no UTF-8, and values of an enum that the contract does not have.
"""

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet


class ProtobufContract:
    """The messages of one or more generated modules, by their full names or the last part of those."""

    def __init__(self, modules: Iterable[ModuleType]) -> None:
        self._messages: dict[str, type[Message]] = {}
        for module in modules:
            for name, descriptor in module.DESCRIPTOR.message_types_by_name.items():
                kind: type[Message] = getattr(module, name)
                self._messages[descriptor.full_name] = self._messages[name] = kind

    def problem(self, name: str, raw: bytes) -> str | None:
        """What is wrong with these bytes as a message of this name, in one sentence, or nothing."""
        if name not in self._messages:
            return f"the contract has no message {name}"
        message = self._messages[name]()
        try:
            message.ParseFromString(raw)
        except (DecodeError, UnicodeDecodeError) as error:
            return f"{len(raw)} bytes are no {name}: {error}"
        return next(_unknown_enums(message, name), None)

    def unknown_fields(self, name: str, raw: bytes) -> list[int]:
        """The numbers of fields that the contract does not have; no mistake, but worth a line in a transcript."""
        message = self._messages[name]()
        message.ParseFromString(raw)
        fields = UnknownFieldSet(message)
        return sorted({fields[at].field_number for at in range(len(fields))})


def _unknown_enums(message: Message, path: str) -> Iterator[str]:
    for field, value in message.ListFields():
        for item in _items(value):
            if field.type == FieldDescriptor.TYPE_MESSAGE and isinstance(item, Message):
                yield from _unknown_enums(item, f"{path}.{field.name}")
            elif field.enum_type is not None and item not in field.enum_type.values_by_number:
                yield f"{path}.{field.name}: {item} is no {field.enum_type.name}"


def _items(value: Any) -> list[Any]:
    """The single values of a field, which may be one, a list or a map."""
    if isinstance(value, Message | str | bytes | int | float):
        return [value]
    return list(value.values() if hasattr(value, "values") else value)
