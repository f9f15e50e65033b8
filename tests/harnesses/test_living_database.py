"""Databases of programs that are writing: what was not committed is not seen, and what cannot be read now is an OSError."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bench.faults.process import Holder
from obsmem import harnesses
from obsmem.harnesses import cursor
from obsmem.harnesses.base import Source
from tests.harnesses.test_cursor_database import editor_database, read_composer, store_database
from tests.harnesses.test_opencode_rows import SESSION, Database

UNSAID = json.dumps({"type": "text", "text": "never said", "role": "user", "content": "never said"})


@pytest.fixture(autouse=True)
def nobody_is_left() -> Iterator[None]:
    yield
    Holder.end_all()


def unsaid(table: str, column: str) -> str:
    """A transaction that is larger than its cache, so that its pages stand in the file before it is committed."""
    return f"PRAGMA cache_size=1; BEGIN EXCLUSIVE; UPDATE {table} SET {column}='{UNSAID}'"


def made(kind: str, folder: Path) -> tuple[str, Source, str]:
    """(harness, source, the transaction that changes all its words)."""
    if kind == "messages":
        database = Database(folder / "opencode.db")
        database.talk()
        for number in range(40):
            database.part(f"prt_9{number}", "msg_3", 9100, {"type": "text", "text": f"{number} " * 300})
        database.connection.close()
        return "opencode", Source(str(database.path), SESSION), unsaid("part", "data")
    path = editor_database(folder / "state.vscdb") if kind == "bubbles" else store_database(folder / "c" / "store.db")
    table, session, key = ("cursorDiskKV", "c1", "bubbleId:c1:z") if kind == "bubbles" else ("blobs", "agent-7", "z")
    with closing(sqlite3.connect(path)) as connection, connection:
        more = [(f"{key}{number}", json.dumps({"type": 1, "text": f"{number} " * 300})) for number in range(40)]
        connection.executemany(f"INSERT INTO {table} VALUES(?, ?)", more)
    return "cursor", Source(str(path), session), unsaid(table, "value" if kind == "bubbles" else "data")


@pytest.mark.parametrize("killed", [False, True], ids=["writes", "was killed"])
@pytest.mark.parametrize("kind", ["messages", "bubbles", "blobs"])
def test_what_a_program_has_not_committed_is_not_read(kind: str, killed: bool, tmp_path: Path) -> None:
    name, source, transaction = made(kind, tmp_path)
    module = harnesses.load(name)
    before = list(module.records(source, 0, 0))
    holder = Holder(source.path, transaction)
    if killed:
        holder.kill()
        assert Path(f"{source.path}-journal").stat().st_size
    with pytest.raises(OSError, match="cannot be read as a database"):
        list(module.records(source, 0, 0))
    assert module.sources(source.path) == []
    if not killed:
        holder.end()
    with closing(sqlite3.connect(source.path)) as program:
        program.execute("SELECT count(*) FROM sqlite_master").fetchone()  # it starts again, and rolls back
    assert list(module.records(source, 0, 0)) == before


def test_a_lock_that_comes_in_the_middle_ends_the_reading_instead_of_emptying_rows(tmp_path: Path) -> None:
    path = editor_database(tmp_path / "state.vscdb")
    whole = [raw.data for raw, _ in read_composer(path, "c1").lines]
    reading = cursor.records(Source(str(path), "c1"), 0, 0)
    seen = [next(reading).data]
    Holder(str(path), "BEGIN EXCLUSIVE")
    with pytest.raises(OSError, match="cannot be read now"):
        seen.extend(raw.data for raw in reading)
    assert seen == whole[: len(seen)]
    assert cursor.reader(Source(str(path), "c1"), None, list).inactive_keys() is None
