"""Storage backends ("islands"): objects by namespace and key. The memory backend; the durable one is in `sqlite.py`.

Everything that is read, changed and written back goes through `change`, which no other writer can interrupt.
"""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from holdfast.reference.lockd.ids import uuid7

Object = Any
Edit = Callable[[Object | None], Object | None]

NAMESPACE = ".lockd"
BACKEND_ID = "backend-id"


class StoreUnavailable(Exception):  # noqa: N818  # a state of the backend
    """The backend can't be read or written at the moment."""


class Backend(Protocol):
    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def scan(self, namespace: str, prefix: str) -> list[Object]: ...

    async def read(self, namespace: str, key: str) -> Object | None: ...

    async def change(self, namespace: str, key: str, edit: Edit) -> Object | None:
        """Replaces the object by what `edit` returns, in one step, and returns that; None means no object."""


class MemoryBackend:
    """Keeps objects in the process: each process is an island of its own, with a new backend hash at each start."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], Object] = {}

    async def open(self) -> None:
        """There is nothing to open."""

    async def close(self) -> None:
        """There is nothing to close."""

    async def scan(self, namespace: str, prefix: str) -> list[Object]:
        found = [(key, value) for (where, key), value in self._objects.items() if where == namespace]
        return [copy.deepcopy(value) for key, value in sorted(found) if key.startswith(prefix)]

    async def read(self, namespace: str, key: str) -> Object | None:
        return copy.deepcopy(self._objects.get((namespace, key)))

    async def change(self, namespace: str, key: str, edit: Edit) -> Object | None:
        made = edit(copy.deepcopy(self._objects.get((namespace, key))))
        if made is None:
            self._objects.pop((namespace, key), None)
        else:
            self._objects[namespace, key] = copy.deepcopy(made)
        return made


def open_backend(url: str) -> Backend:
    if url.startswith("sqlite://"):
        from holdfast.reference.lockd.sqlite import SqliteBackend

        return SqliteBackend(Path(url.removeprefix("sqlite://")))
    return MemoryBackend()


class Island:
    """The backend of a node, with its hash, and with the one fault that a test can switch on."""

    def __init__(self, backend: Backend, fault_file: str) -> None:
        self.backend = backend
        self.hash = ""
        self._fault = Path(fault_file) if fault_file else None

    async def open(self) -> None:
        await self.backend.open()
        self.hash = await self.draw_hash()

    async def draw_hash(self) -> str:
        return str(await self.backend.change(NAMESPACE, BACKEND_ID, lambda known: known or uuid7()))

    async def scan(self, namespace: str, prefix: str) -> list[Object]:
        """Lists the objects; fails while the fault file exists, as a broken store would."""
        if self._fault is not None and self._fault.exists():
            raise StoreUnavailable("the fault file is there")
        return await self.backend.scan(namespace, prefix)

    async def read(self, namespace: str, key: str) -> Object | None:
        return await self.backend.read(namespace, key)

    async def change(self, namespace: str, key: str, edit: Edit) -> Object | None:
        return await self.backend.change(namespace, key, edit)
