"""Reads OpenCode's SQLite database, ``opencode.db``. Never writes to it.

Invariants: the database is opened read-only; a session is read in one transaction, so its messages and parts fit
together while OpenCode writes; a column that a version lacks costs nothing else. The table ``todo`` is left out: its
items stand in the ``todowrite`` calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from obsmem.core import late
from obsmem.core.tuples import NamedTuple
from obsmem.harnesses.living_database import connect
from obsmem.harnesses.opencode_parts import voice_of
from obsmem.harnesses.opencode_rows import Row, parsed

MAGIC = b"SQLite format 3\x00"
_TABLES = tuple(late.pattern(rb"CREATE TABLE [`\"\[]?" + name + rb"[`\"\]]?\s*\(") for name in (b"message", b"part"))


def is_database(head: bytes) -> bool:
    """True if a file that begins so is a database with OpenCode's tables."""
    return head.startswith(MAGIC) and all(table.search(head) for table in _TABLES)


def session_ids(path: str) -> list[str]:
    """The ids of all sessions in a database, oldest first. Raises OSError where it cannot be read."""
    with closing(_Connection(path)) as connection:
        sessions = connection.select("SELECT * FROM session")
        return [str(session["id"]) for session in sorted(sessions, key=_by_time)]


def rows(path: str, session_id: str) -> Iterator[Row]:
    """Yield the rows of a session in order. Raises OSError where the database cannot be read."""
    with closing(_Connection(path)) as connection:
        for session in connection.select("SELECT * FROM session WHERE id=?", session_id):
            yield _session_row(session)
        for message in connection.select(
            "SELECT * FROM message WHERE session_id=? ORDER BY time_created, id", session_id
        ):
            row = _row("message", message, str(message["id"]))
            voice = voice_of(parsed(row.raw))
            row = row._replace(role=voice.role, summary=voice.summary, message_time=voice.at or row.time_created)
            yield row
            for part in connection.select("SELECT * FROM part WHERE message_id=? ORDER BY time_created, id", row.key):
                yield _row("part", part, row.key)._replace(
                    role=row.role, summary=row.summary, message_time=row.message_time
                )
        orphans = (
            "SELECT * FROM part WHERE session_id=? AND message_id NOT IN (SELECT id FROM message WHERE session_id=?)"
            " ORDER BY time_created, id"
        )
        for part in connection.select(orphans, session_id, session_id):
            yield _row("part", part, str(part.get("message_id") or ""))


class Standing(NamedTuple):
    """How a session stands before a request: the newest summary that took the place of its history and when that was made
    (milliseconds), '' and 0 where there is none; ``fresh`` where it holds nothing but its first prompt."""

    summary: str = ""
    summed_up_at: int = 0
    fresh: bool = False


def standing_of(path: str, session_id: str) -> Standing:
    """Look up a session of its own; nothing is said of a sub-agent's. Raises OSError where the database cannot be read."""
    with closing(_Connection(path)) as connection:
        session = next(connection.select("SELECT * FROM session WHERE id=?", session_id), {})
        if not session or session.get("parent_id"):
            return Standing()
        newest_first = (
            "SELECT id, data, time_created FROM message WHERE session_id=? AND data LIKE ?"
            " ORDER BY time_created DESC, id DESC"
        )
        for message in connection.select(newest_first, session_id, '%"summary"%'):
            info = parsed(_as_text(message["data"]))
            if voice_of(info).summary and not info.get("error"):
                parts = connection.select("SELECT data FROM part WHERE message_id=? ORDER BY id", str(message["id"]))
                said = [part for row in parts if (part := parsed(_as_text(row["data"]))).get("type") == "text"]
                return Standing("".join(str(part.get("text") or "") for part in said), _whole(message["time_created"]))
        prompts = connection.select(
            "SELECT id FROM message WHERE session_id=? AND data LIKE ? LIMIT 2", session_id, '%"role":"user"%'
        )
        return Standing(fresh=len(list(prompts)) < 2)


def last_model(path: str) -> tuple[str, str]:
    """(provider, model) of the newest prompt in a database; ('', '') where there is none, or no database."""
    try:
        with closing(_Connection(path)) as connection:
            newest_first = "SELECT data FROM message WHERE data LIKE ? ORDER BY time_created DESC, id DESC LIMIT 20"
            for message in connection.select(newest_first, '%"role":"user"%'):
                model = parsed(_as_text(message["data"])).get("model")
                if isinstance(model, dict) and model.get("providerID") and model.get("modelID"):
                    return str(model["providerID"]), str(model["modelID"])
    except OSError:
        pass
    return "", ""


def _by_time(session: dict[str, Any]) -> tuple[int, str]:
    return _whole(session.get("time_created")), str(session["id"])


def _row(table: str, columns: dict[str, Any], message_id: str) -> Row:
    created, updated = _whole(columns.get("time_created")), _whole(columns.get("time_updated"))
    text = columns.get("data")
    session_id = str(columns.get("session_id") or "")
    return Row(table, str(columns["id"]), _as_text(text), session_id, message_id, created, updated)


def _session_row(columns: dict[str, Any]) -> Row:
    """A session has no JSON text of its own: its columns make one."""
    created, updated = _whole(columns.get("time_created")), _whole(columns.get("time_updated"))
    shown = {name: _as_text(value) if isinstance(value, bytes) else value for name, value in columns.items()}
    key = str(columns["id"])
    return Row("session", key, json.dumps(shown, ensure_ascii=False), key, "", created, updated)


def _as_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str) else ""


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


class _Connection:
    """A read-only connection and one read transaction; every failure of SQLite is an OSError that names the file."""

    def __init__(self, path: str) -> None:
        import sqlite3

        self._error = sqlite3.Error
        self._path = path
        self._connection = connect(path, lambda text: text.decode("utf-8", "surrogateescape"))
        self._connection.execute("BEGIN")

    def select(self, sql: str, *values: str) -> Iterator[dict[str, Any]]:
        """Yield rows as column name -> value."""
        try:
            cursor = self._connection.execute(sql, values)
            names = [column[0] for column in cursor.description]
            for values_of_row in cursor:
                yield dict(zip(names, values_of_row, strict=True))
        except self._error as error:
            raise OSError(f"{self._path}: {error}") from error

    def close(self) -> None:
        """End the transaction and let go of the file."""
        self._connection.close()
