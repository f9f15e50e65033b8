"""Cursor's two SQLite databases, read only: the editor's ``state.vscdb`` and the command line's ``store.db``.

Owns every query. Invariants: a value that is empty or damaged yields a row that says so, and the rows after it are still
read; what cannot be read because the program is writing is no row, but an OSError.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from obsmem.harnesses.base import Raw, Source
from obsmem.harnesses.cursor_rows import row_line, row_value
from obsmem.harnesses.living_database import connect, must_wait
from obsmem.harnesses.written import load_objects

if TYPE_CHECKING:
    import sqlite3

MAGIC = b"SQLite format 3\x00"
_KEY_VALUE_TABLES = ("cursorDiskKV", "ItemTable")


def is_database(path: str) -> bool:
    """True if the file begins as every SQLite database does."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def session_ids(path: str) -> list[str]:
    """The ids of the composers that have bubbles, or of the one chat of a command-line store; none where it cannot be read."""
    try:
        with closing(connect(path, bytes)) as connection:
            tables = _tables(connection)
            if "blobs" in tables:
                return [_chat_id(connection, path)]
            return list(_composers(connection, _key_value(tables)))
    except OSError:
        return []


def _composers(connection: sqlite3.Connection, tables: list[str]) -> dict[str, None]:
    found: dict[str, None] = {}
    for table in tables:
        # ';' follows ':' in ASCII, so that each range is a search in the key's index.
        for (key,) in _rows(
            connection, f"SELECT key FROM {table} WHERE key >= 'bubbleId:' AND key < 'bubbleId;' ORDER BY key"
        ):
            found.setdefault(_text(key).split(":")[1])
        for (key,) in _rows(
            connection,
            f"SELECT key FROM {table} WHERE key >= 'composerData:' AND key < 'composerData;'"
            " AND instr(CAST(value AS TEXT), '\"conversation\":[{') > 0",
        ):
            found.setdefault(_text(key).partition(":")[2])
    return found


def rows(source: Source) -> Iterator[Raw]:
    """Yield the rows of one session in the order of the conversation. Raises OSError if the database cannot be read now."""
    with closing(connect(source.path, bytes)) as connection:
        tables = _tables(connection)
        if "blobs" in tables:
            yield from _store_rows(connection)
            return
        table, headers = _conversation(connection, tables, source.session_id)
        kept = _bubble_keys(connection, table, source.session_id)
        for key in [f"composerData:{source.session_id}", *dict.fromkeys([*headers, *kept])]:
            yield _raw(table, key, _value(connection, table, key))


def left_out(source: Source) -> frozenset[str] | None:
    """Keys of bubbles that the conversation no longer names; None for a store, or where no order is kept or can be read."""
    try:
        with closing(connect(source.path, bytes)) as connection:
            tables = _tables(connection)
            if "blobs" in tables:
                return None
            table, headers = _conversation(connection, tables, source.session_id)
            if not headers:
                return None
            return frozenset(_bubble_keys(connection, table, source.session_id)).difference(headers)
    except OSError:
        return None


def _rows(connection: sqlite3.Connection, query: str, *values: str) -> Iterator[tuple[Any, ...]]:
    """Rows of a query up to the first that a damaged file cannot give. Raises OSError where they can be had later."""
    import sqlite3

    try:
        yield from connection.execute(query, values)
    except sqlite3.Error as error:
        if must_wait(error):
            raise OSError(f"the database cannot be read now: {error}") from error


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {_text(name) for (name,) in _rows(connection, "SELECT name FROM sqlite_master WHERE type = 'table'")}


def _key_value(tables: set[str]) -> list[str]:
    return [table for table in _KEY_VALUE_TABLES if table in tables]


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _value(
    connection: sqlite3.Connection, table: str, key: str, column: str = "value", name: str = "key"
) -> bytes | None:
    """The exact bytes of a value; None where it is NULL, missing or unreadable."""
    row = next(_rows(connection, f"SELECT {column} FROM {table} WHERE {name} = ?", key), None)
    if row is None or row[0] is None:
        return None
    return row[0] if isinstance(row[0], bytes) else str(row[0]).encode()


def _raw(table: str, key: str, value: bytes | None) -> Raw:
    return Raw(row_line(table, key, value), table=table, key=key)


def _conversation(connection: sqlite3.Connection, tables: set[str], composer: str) -> tuple[str, list[str]]:
    """The table that keeps a composer, and the keys of its bubbles in their order."""
    key = f"composerData:{composer}"
    held = _key_value(tables)
    table, value = held[0] if held else _KEY_VALUE_TABLES[0], b""
    for candidate in held:
        found = _value(connection, candidate, key)
        if found or _bubble_keys(connection, candidate, composer):
            table, value = candidate, found or b""
            break
    objects, _ = load_objects(value)
    headers = objects[0].get("fullConversationHeadersOnly") if objects else None
    ids = [item.get("bubbleId") for item in headers if isinstance(item, dict)] if isinstance(headers, list) else []
    return table, [f"bubbleId:{composer}:{bubble}" for bubble in ids if isinstance(bubble, str)]


def _bubble_keys(connection: sqlite3.Connection, table: str, composer: str) -> list[str]:
    query = f"SELECT key FROM {table} WHERE key >= ? AND key < ? ORDER BY rowid"
    return [_text(key) for (key,) in _rows(connection, query, f"bubbleId:{composer}:", f"bubbleId:{composer};")]


def _store_rows(connection: sqlite3.Connection) -> Iterator[Raw]:
    """A store's rows as they were written: a message blob never changes, so rowid is the order of the conversation."""
    for (key,) in list(_rows(connection, "SELECT key FROM meta ORDER BY key")):
        yield _raw("meta", _text(key), _value(connection, "meta", _text(key)))
    for (key,) in list(_rows(connection, "SELECT id FROM blobs ORDER BY rowid")):
        yield _raw("blobs", _text(key), _value(connection, "blobs", _text(key), "data", "id"))


def _chat_id(connection: sqlite3.Connection, path: str) -> str:
    """The chat's own id; where the store does not say it, the name of its folder."""
    for (key,) in list(_rows(connection, "SELECT key FROM meta ORDER BY key")):
        value = _value(connection, "meta", _text(key)) or b""
        fields, _ = row_value({"table": "meta", "key": _text(key), "raw": value.decode("utf-8", "replace")})
        if isinstance(fields.get("agentId"), str):
            return str(fields["agentId"])
    return os.path.basename(os.path.dirname(os.path.abspath(path)))
