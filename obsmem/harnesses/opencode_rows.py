"""The rows of a session that OpenCode keeps in its database or in its folder of JSON files, as records.

A record is one JSON line that is built here: what names and orders the row, what its message says about it (role,
summary, time), and under ``raw`` the row's own text, exactly. Invariants: a session's rows come in one fixed order
(the session, then each message followed by its parts); the same row gives the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from obsmem.core.tuples import NamedTuple
from obsmem.harnesses.base import Raw
from obsmem.harnesses.written import load_objects


class Row(NamedTuple):
    """One row. ``role``, ``summary`` and ``message_time`` are those of the message that the row is, or belongs to."""

    table: str
    key: str
    raw: str
    session_id: str = ""
    message_id: str = ""
    time_created: int = 0
    time_updated: int = 0
    role: str = ""
    summary: bool = False
    message_time: int = 0


def as_record(row: Row) -> Raw:
    """The row as a record. Bytes of ``raw`` that are no UTF-8 stay as they are."""
    line = json.dumps(row._asdict(), ensure_ascii=False, separators=(",", ":")) + "\n"
    return Raw(line.encode("utf-8", "surrogateescape"), table=row.table, key=row.key)


def from_object(value: Mapping[str, Any]) -> Row | None:
    """The row that a record's JSON object holds; None where it holds none."""
    if not isinstance(value.get("table"), str) or not isinstance(value.get("raw"), str):
        return None
    known = {name: value[name] for name in Row._fields if type(value.get(name)) is type(_TYPES[name])}
    return Row(**{"key": "", **known})


_TYPES: Mapping[str, Any] = {**Row("", "", "")._asdict()}


def parsed(raw: str) -> dict[str, Any]:
    """The JSON object of a row's own text; empty where there is none."""
    objects, _ = load_objects(raw.encode("utf-8", "surrogateescape"))
    return objects[0] if objects else {}


def is_rows(path: str) -> bool:
    """True for the formats whose rows change: a database, or the folder of JSON files."""
    return path.endswith(".db") or os.path.isdir(path)


def revert_of(session: Mapping[str, Any]) -> tuple[str, str]:
    """Where a session was reverted to, as (message id, part id); ('', '') for nowhere, part '' for the whole message."""
    revert = session.get("revert")
    if isinstance(revert, str):
        revert = parsed(revert)
    if not isinstance(revert, Mapping):
        return "", ""
    message, part = revert.get("messageID"), revert.get("partID")
    return (message, part if isinstance(part, str) else "") if isinstance(message, str) else ("", "")


def reverted_keys(rows: Iterable[Row]) -> frozenset[str]:
    """The keys of a session's rows at and after the point that it was reverted to. Reads no further than it must."""
    return frozenset(_reverted(iter(rows)))


def _reverted(rows: Iterator[Row]) -> Iterator[str]:
    message_id, part_id = "", ""
    reached = False
    for row in rows:
        if row.table == "session":
            message_id, part_id = revert_of(parsed(row.raw))
            if not message_id:
                return
        elif not reached:
            # Without a part the whole message goes; with one, that part and what follows it.
            reached = row.key == (part_id or message_id)
            # A part that is gone must not keep the later messages.
            reached = reached or (row.table == "message" and bool(part_id) and row.key > message_id)
        if reached:
            yield row.key
