"""The durable backend: one SQLite file, shared by the nodes of an island, used from one thread that does nothing else.

`python -m holdfast.reference.lockd.sqlite PATH` prints its objects, one JSON line each, and changes nothing.
"""

import asyncio
import json
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from holdfast.reference.lockd.store import Edit, Object, StoreUnavailable

BUSY_SECONDS = 5.0
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS objects "
    "(namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (namespace, key)) WITHOUT ROWID"
)
Value = TypeVar("Value")


class SqliteBackend:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lockd-store")
        self._database: sqlite3.Connection | None = None

    async def open(self) -> None:
        await self._run(self._open)

    async def close(self) -> None:
        if self._database is not None:
            await self._run(self._database.close)
        self._thread.shutdown()

    async def scan(self, namespace: str, prefix: str) -> list[Object]:
        sql = "SELECT value FROM objects WHERE namespace = ? AND substr(key, 1, ?) = ? ORDER BY key"
        rows = await self._run(lambda: self._open_database().execute(sql, (namespace, len(prefix), prefix)).fetchall())
        return [json.loads(row[0]) for row in rows]

    async def read(self, namespace: str, key: str) -> Object | None:
        return await self._run(lambda: self._value(namespace, key))

    async def change(self, namespace: str, key: str, edit: Edit) -> Object | None:
        return await self._run(lambda: self._change(namespace, key, edit))

    async def _run(self, work: Callable[[], Value]) -> Value:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as error:
            raise StoreUnavailable(str(error)) from error

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")
        self._database.execute(_SCHEMA)

    def _open_database(self) -> sqlite3.Connection:
        if self._database is None:
            raise StoreUnavailable("the store is not open")
        return self._database

    def _value(self, namespace: str, key: str) -> Object | None:
        sql = "SELECT value FROM objects WHERE namespace = ? AND key = ?"
        row = self._open_database().execute(sql, (namespace, key)).fetchone()
        return None if row is None else json.loads(row[0])

    def _change(self, namespace: str, key: str, edit: Edit) -> Object | None:
        """Takes the write lock before the read, so that another node cannot write in between."""
        database = self._open_database()
        database.execute("BEGIN IMMEDIATE")
        try:
            made = edit(self._value(namespace, key))
            self._put(namespace, key, made)
        except BaseException:
            database.execute("ROLLBACK")
            raise
        database.execute("COMMIT")
        return made

    def _put(self, namespace: str, key: str, value: Object | None) -> None:
        database = self._open_database()
        if value is None:
            database.execute("DELETE FROM objects WHERE namespace = ? AND key = ?", (namespace, key))
        else:
            database.execute("REPLACE INTO objects VALUES (?, ?, ?)", (namespace, key, json.dumps(value)))


def objects_in(path: Path) -> list[dict[str, Any]]:
    database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
    try:
        rows = database.execute("SELECT namespace, key, value FROM objects ORDER BY namespace, key").fetchall()
    finally:
        database.close()
    return [{"namespace": namespace, "key": key, "value": json.loads(value)} for namespace, key, value in rows]


def main(argv: list[str]) -> int:
    if len(argv) != 1:
        sys.stderr.write("Say which store to print: python -m holdfast.reference.lockd.sqlite PATH\n")
        return 2
    try:
        lines = [json.dumps(each) + "\n" for each in objects_in(Path(argv[0].removeprefix("sqlite://")))]
    except sqlite3.Error as error:
        sys.stderr.write(f"{argv[0]} can't be read: {error}\n")
        return 1
    sys.stdout.writelines(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
