"""Forgetting on request, and retention: the two ways in which bytes leave the store.

Invariants: what is forgotten is gone from archive, notes, index and backups, and stays gone when its transcript is
read again (a tombstone holds a hash, never content). Retention removes raw bytes only; notes, ids and places stay, and
a recall says what was removed and when.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from obsmem.core.ids import parse_entry_id
from obsmem.store.archive_forget import remove_record, remove_segments, remove_session, segments_behind
from obsmem.store.archive_rows import EntryRow, StoredSession, session_hash
from obsmem.store.schema import transaction
from obsmem.system.files import remove
from obsmem.system.paths import session_folder
from obsmem.tasks.entries import find_entry, read_entries
from obsmem.tasks.rule_files import clear_rule_files
from obsmem.tasks.store import Store

DAY = 86_400_000  # milliseconds


class Forgotten(NamedTuple):
    """What was removed: entries, bytes of transcript, notes."""

    entries: int
    bytes: int
    notes: int


def forget_session(store: Store, stored: StoredSession) -> Forgotten:
    """Remove a session with everything derived from it. Its handle is never given again."""
    size, _ = store.archive.sizes(stored.no)
    touched = [stored, *_descendants(store, stored)]
    folders = [folder for one in touched for folder in _folders(store, one)]
    count = remove_session(store.archive, stored)
    notes = _forget_memory(store, stored.session.handle)
    _wipe(store, touched, folders)
    return Forgotten(count, size, notes)


def _descendants(store: Store, stored: StoredSession) -> list[StoredSession]:
    """The sessions that inherit from one, however far down: their blocks show its notes."""
    found, handles = [], {stored.session.handle}
    everybody = store.archive.sessions()
    for _ in everybody:
        new = [one for one in everybody if one.session.parent and one.session.parent[0] in handles and one not in found]
        if not new:
            break
        found += new
        handles |= {one.session.handle for one in new}
    return found


def _forget_memory(store: Store, handle: str) -> int:
    with transaction(store.memory.connection):
        run = store.memory.connection.execute
        run(
            "DELETE FROM reflections WHERE id IN (SELECT r.reflection FROM reflection_notes r"
            " JOIN notes n ON n.id=r.note WHERE n.session=?)",
            (handle,),
        )
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
    """Remove one record's bytes (all entries of it) with its copies in forks, and the notes that cite any of them; where a
    harness wrote the same words down twice (as they waited, and as they were sent), both records.

    The bytes become NULs of the same length, so that all other places stay right.
    """
    stored, row = find_entry(store, name)
    twins = _twins(store, stored, row)
    size, gone = remove_record(store.archive, row)
    for twin in twins:
        bytes_, more = remove_record(store.archive, twin)
        size += bytes_
        gone = {session: [*gone.get(session, []), *more.get(session, [])] for session in {*gone, *more}}
    touched = [store.archive.by_number(session) for session in gone]
    notes = sum(_forget_notes(store, one.session.handle, gone[one.no]) for one in touched)
    touched += [below for one in touched for below in _descendants(store, one)]
    _wipe(store, touched, [folder for one in touched for folder in _folders(store, one)])
    return Forgotten(sum(map(len, gone.values())), size, notes)


def _twins(store: Store, stored: StoredSession, row: EntryRow) -> list[EntryRow]:
    """The other entries of a session with the same human words that are off the live path, or stand for this one."""
    if row.speaker != "human" or not store.archive.is_readable(row):
        return []
    text = read_entries(store, stored, [row])[0].text
    alike = [
        one
        for one in store.archive.entries(stored.no)
        if one.no != row.no and one.speaker == row.speaker and one.tokens == row.tokens and one.active != row.active
    ]
    return [one for one in alike if [entry.text for entry in read_entries(store, stored, [one], lost=True)] == [text]]


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


def _folders(store: Store, stored: StoredSession) -> list[str]:
    """The folders of a session's small files, under every path that it was read from."""
    session = stored.session
    paths = [row.path for row in store.archive.sources(stored.no) if row.kind != "side"]
    return [session_folder(store.home, session.harness, path, session.id) for path in [session.transcript, *paths]]


def _wipe(store: Store, touched: Iterable[StoredSession], folders: Iterable[str]) -> None:
    """Take what was removed out of free pages, index, backups, damaged files kept aside, and rendered blocks too."""
    store.archive.connection.execute("VACUUM")
    store.memory.connection.execute("VACUUM")
    for stored in touched:
        store.index.forget(stored.no)
    for folder in folders:
        _empty(folder)
    clear_rule_files(store.home, touched)
    store.index.vacuum()
    for name in os.listdir(store.home):
        if ".damaged" in name:
            remove(os.path.join(store.home, name))
    backups = os.path.join(store.home, "backups")
    if os.path.isdir(backups):
        _empty(backups)
        store.memory.back_up(backups)


def _empty(folder: str) -> None:
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
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
        removed += remove_segments(store.archive, stored.no, kept)
    if removed:
        store.archive.connection.execute("VACUUM")
    return removed


def _cited_segments(store: Store, stored: StoredSession) -> set[int]:
    kept: set[int] = set()
    for note in store.memory.notes(stored.session.handle):
        for name in note.note.entry_ids:
            row = store.archive.entry(stored.no, parse_entry_id(name)[1])
            if row is not None:
                kept |= segments_behind(store.archive, row)
    return kept
