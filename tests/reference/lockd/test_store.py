"""Both backends: memory and SQLite."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.reference.lockd.sqlite import SqliteBackend, main, objects_in
from holdfast.reference.lockd.store import Backend, Island, MemoryBackend, StoreUnavailable

Make = Callable[[Path], Backend]


@pytest.mark.parametrize("make", [lambda _: MemoryBackend(), lambda path: SqliteBackend(path / "deep" / "store.db")])
async def test_objects_are_kept_by_namespace_and_key(tmp_path: Path, make: Make) -> None:
    store = make(tmp_path)
    await store.open()
    for namespace, key in ((".lockd", "a/1"), (".lockd", "a/2"), (".lockd", "b"), ("other", "a/3")):
        await store.change(namespace, key, lambda _, key=key: {"key": key})  # type: ignore[misc]  # bound at once
    assert await store.scan(".lockd", "a/") == [{"key": "a/1"}, {"key": "a/2"}]
    assert await store.read(".lockd", "b") == {"key": "b"}
    assert await store.change(".lockd", "b", lambda _: None) is None
    assert await store.read(".lockd", "b") is None
    await store.close()


@pytest.mark.parametrize("make", [lambda _: MemoryBackend(), lambda path: SqliteBackend(path / "store.db")])
async def test_a_change_that_fails_changes_nothing(tmp_path: Path, make: Make) -> None:
    store = make(tmp_path)
    await store.open()
    await store.change("n", "k", lambda _: 1)

    def fails(_: object) -> object:
        raise KeyError("no")

    with pytest.raises(KeyError):
        await store.change("n", "k", fails)
    assert await store.read("n", "k") == 1
    await store.change("n", "k", lambda known: (known or 0) + 1)
    assert await store.read("n", "k") == 2
    await store.close()


async def test_two_nodes_of_an_island_lose_no_change(tmp_path: Path) -> None:
    stores = [SqliteBackend(tmp_path / "store.db") for _ in range(2)]
    for store in stores:
        await store.open()
    await asyncio.gather(*(store.change("n", "k", lambda n: (n or 0) + 1) for store in stores for _ in range(40)))
    assert await stores[0].read("n", "k") == 80
    islands = [Island(store, "") for store in stores]
    for island in islands:
        await island.open()
    assert islands[0].hash == islands[1].hash != ""
    for store in stores:
        await store.close()


async def test_every_memory_backend_is_an_island_of_its_own() -> None:
    islands = [Island(MemoryBackend(), "") for _ in range(2)]
    for island in islands:
        await island.open()
    assert islands[0].hash != islands[1].hash


async def test_the_fault_file_makes_lists_unreadable(tmp_path: Path) -> None:
    island = Island(MemoryBackend(), str(tmp_path / "fault"))
    await island.open()
    assert await island.scan("n", "") == []
    (tmp_path / "fault").touch()
    with pytest.raises(StoreUnavailable):
        await island.scan("n", "")
    (tmp_path / "fault").unlink()
    assert await island.scan("n", "") == []


async def test_a_dump_shows_every_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = SqliteBackend(tmp_path / "store.db")
    await store.open()
    await store.change(".lockd", "k", lambda _: {"a": 1})
    assert objects_in(tmp_path / "store.db") == [{"namespace": ".lockd", "key": "k", "value": {"a": 1}}]
    await store.close()
    assert main([str(tmp_path / "store.db")]) == 0
    assert capsys.readouterr().out == '{"namespace": ".lockd", "key": "k", "value": {"a": 1}}\n'
    assert main([str(tmp_path / "absent.db")]) == 1
