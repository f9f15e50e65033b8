"""Forgetting on request, and retention: the two ways in which bytes leave the store.

Invariants: what is forgotten is gone from archive, notes, index and backups, and stays gone when its transcript is
read again (a tombstone holds a hash, never content). Retention removes raw bytes only; notes, ids and places stay, and
a recall says what was removed and when.
"""

from __future__ import annotations

import os
import time
import zlib
from typing import NamedTuple

from obsmem.core.ids import parse_entry_id
from obsmem.store.archive import StoredSession, session_hash
from obsmem.store.archive_schema import row_number
from obsmem.store.archive_write import LEVEL
from obsmem.store.schema import transaction
from obsmem.system.files import remove
from obsmem.tasks.entries import find_entry
from obsmem.tasks.store import Store

DAY = 86_400_000  # milliseconds


class Forgotten(NamedTuple):
    """What was removed: entries, bytes of transcript, notes."""

    entries: int
    bytes: int
    notes: int


def forget_session(store: Store, stored: StoredSession) -> Forgotten:
    """Remove a session with everything derived from it. Its handle is never given again."""
    archive, handle = store.archive, stored.session.handle
    size, _ = archive.sizes(stored.no)
    low, high = row_number(stored.no, 0), row_number(stored.no + 1, 0) - 1
    now = int(time.time() * 1000)
    with transaction(archive.connection):
        run = archive.connection.execute
        # Copies in a fork point here; they have their own bytes and stand alone from now on.
        run("UPDATE entries SET alias=NULL WHERE alias BETWEEN ? AND ?", (low, high))
        count = run("DELETE FROM entries WHERE no BETWEEN ? AND ?", (low, high)).rowcount
        run("DELETE FROM sides WHERE entry BETWEEN ? AND ?", (low, high))
        for table in ("segments", "links", "rows"):
            run(f"DELETE FROM {table} WHERE source IN (SELECT no FROM sources WHERE session=?)", (stored.no,))
        run("DELETE FROM sources WHERE session=?", (stored.no,))
        run("DELETE FROM measures WHERE session=?", (stored.no,))
        run("UPDATE sessions SET parent=NULL, parent_seq=NULL WHERE parent=?", (stored.no,))
        run("DELETE FROM sessions WHERE no=?", (stored.no,))
        run(
            "INSERT OR REPLACE INTO tombstones VALUES(?,?)",
            (session_hash(stored.session.harness, stored.session.id), now),
        )
        run("INSERT OR REPLACE INTO tombstones VALUES(?,?)", (f"handle:{handle}", now))
    notes = _forget_memory(store, handle)
    _wipe(store, stored)
    return Forgotten(count, size, notes)


def _forget_memory(store: Store, handle: str) -> int:
    with transaction(store.memory.connection):
        run = store.memory.connection.execute
        notes = run("DELETE FROM notes WHERE session=?", (handle,)).rowcount
        for table in (
            "reflections",
            "drops",
            "coverage",
            "gaps",
            "progress",
            "worker_calls",
            "blocks",
            "receipts",
            "decisions",
            "pins",
        ):
            run(f"DELETE FROM {table} WHERE session=?", (handle,))
    return int(notes)


def forget_entry(store: Store, name: str) -> Forgotten:
    """Remove one record's bytes (all entries of it), and the notes that cite any of them.

    The bytes become NULs of the same length, so that all other places stay right.
    """
    stored, row = find_entry(store, name)
    archive = store.archive
    data = archive.segment(row.segment)
    blank = b"\x00" * (row.size - 1) + data[row.start + row.size - 1 : row.start + row.size]
    changed = data[: row.start] + blank + data[row.start + row.size :]
    mates = [one for one in archive.entries(stored.no) if (one.segment, one.start) == (row.segment, row.start)]
    with transaction(archive.connection):
        run = archive.connection.execute
        run("UPDATE segments SET data=? WHERE no=?", (zlib.compress(changed, LEVEL), row.segment))
        run("INSERT OR REPLACE INTO tombstones VALUES(?,?)", ("record:" + row.sha256.hex(), int(time.time() * 1000)))
        for mate in mates:
            run("DELETE FROM sides WHERE entry=?", (mate.no,))
            run("DELETE FROM entries WHERE no=?", (mate.no,))
    archive.drop_cache()
    notes = _forget_notes(store, stored.session.handle, [one.seq for one in mates])
    _wipe(store, stored)
    return Forgotten(len(mates), row.size, notes)


def _forget_notes(store: Store, handle: str, seqs: list[int]) -> int:
    with transaction(store.memory.connection):
        run = store.memory.connection.execute
        ids = {
            id_
            for seq in seqs
            for (id_,) in run("SELECT note FROM note_entries WHERE session=? AND seq=?", (handle, seq)).fetchall()
        }
        for id_ in ids:
            run("DELETE FROM reflections WHERE id IN (SELECT reflection FROM reflection_notes WHERE note=?)", (id_,))
            run("DELETE FROM notes WHERE id=?", (id_,))
    return len(ids)


def _wipe(store: Store, stored: StoredSession) -> None:
    """Take what was removed out of free pages, index, backups and rendered blocks too."""
    store.archive.connection.execute("VACUUM")
    store.memory.connection.execute("VACUUM")
    store.index.forget(stored.no)
    backups = os.path.join(store.home, "backups")
    if os.path.isdir(backups):
        for name in os.listdir(backups):
            remove(os.path.join(backups, name))
        store.memory.back_up(backups)
    folder = store.folder_of(stored)
    if os.path.isdir(folder):
        for name in os.listdir(folder):
            remove(os.path.join(folder, name))


def undo_forget(store: Store, harness: str, session_id: str) -> bool:
    """Allow a forgotten session to be read again. True if there was a tombstone. Its bytes do not come back."""
    run = store.archive.connection.execute
    return run("DELETE FROM tombstones WHERE hash=?", (session_hash(harness, session_id),)).rowcount > 0


def apply_retention(store: Store, now: int) -> int:
    """Remove the raw bytes of sessions that have not grown for ``retention_days``; returns how many bytes.

    With ``retention_keep: cited`` the segments stay that hold an entry which a note cites.
    """
    days = store.config["retention_days"]
    if days <= 0:
        return 0
    removed = 0
    for stored in store.archive.sessions():
        if now - stored.updated_at <= days * DAY:
            continue
        kept = _cited_segments(store, stored) if store.config["retention_keep"] == "cited" else set()
        removed += store.archive.remove_segments(stored.no, kept)
    if removed:
        store.archive.connection.execute("VACUUM")
    return removed


def _cited_segments(store: Store, stored: StoredSession) -> set[int]:
    kept = set()
    for note in store.memory.notes(stored.session.handle):
        for name in note.note.entry_ids:
            row = store.archive.entry(stored.no, parse_entry_id(name)[1])
            if row is not None:
                kept.add(row.segment)
    return kept
