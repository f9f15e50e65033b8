"""Finding notes by what stands in them, dropped ones too."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence

from obsmem.store.memory import MemoryStore, StoredNote

MOST_NOTES = 300  # that one question looks at, the newest


def notes_holding(
    memory: MemoryStore,
    starts: Sequence[str],
    sessions: Collection[str],
    since: int = 0,
    until: int = 0,
    most: int = MOST_NOTES,
) -> list[StoredNote]:
    """The newest notes of these sessions that hold one of some beginnings of words, in any case; all where none is given.
    ``since`` and ``until`` in milliseconds, 0 for no bound."""
    forms = dict.fromkeys(form for start in starts for form in _forms(start))
    held = " OR ".join(["text LIKE ? ESCAPE '\\'"] * len(forms)) or "1"
    rows = memory.connection.execute(
        f"SELECT id FROM notes WHERE session IN (SELECT value FROM json_each(?)) AND at>=? AND at<? AND ({held})"
        " ORDER BY at DESC, no DESC LIMIT ?",
        (json.dumps(list(sessions)), since, until or 1 << 62, *map(_pattern, forms), most),
    )
    return memory.notes_by_id([row[0] for row in rows.fetchall()])


def notes_of_worker(memory: MemoryStore, session: str, worker: str) -> list[StoredNote]:
    """The notes of a session that one worker made, in the order in which it did."""
    rows = memory.connection.execute(
        "SELECT n.id FROM notes n JOIN worker_calls c ON c.no=n.call WHERE n.session=? AND c.worker=? ORDER BY n.no",
        (session, worker),
    )
    return memory.notes_by_id([row[0] for row in rows.fetchall()])


def _forms(start: str) -> list[str]:
    """LIKE knows the case of ASCII letters only."""
    return [start] if start.isascii() else [start, start.lower(), start.upper(), start.capitalize()]


def _pattern(text: str) -> str:
    for special in ("\\", "%", "_"):
        text = text.replace(special, "\\" + special)
    return f"%{text}%"


def dropped_among(memory: MemoryStore, notes: Iterable[StoredNote]) -> frozenset[str]:
    """The ids of those notes that a tombstone hides, unless they were noted again after it."""
    recorded = {one.note.id: one.recorded_at for one in notes}
    rows = memory.connection.execute(
        "SELECT note, max(at) FROM drops WHERE note IN (SELECT value FROM json_each(?)) GROUP BY note",
        (json.dumps(list(recorded)),),
    )
    return frozenset(id_ for id_, at in rows if recorded[id_] <= at)
