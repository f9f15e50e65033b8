"""Checking the store, and repairing what can be repaired from what is still there.

What can be: the index is rebuilt from the archive; damaged segments are read again from transcripts that still exist;
the memory is restored from its newest good backup. Invariant: checking alone changes nothing.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import zlib
from typing import NamedTuple

from obsmem.core.ids import content_id
from obsmem.store.archive import SourceRow, StoredSession
from obsmem.store.archive_forget import is_removed
from obsmem.store.archive_write import LEVEL
from obsmem.store.index import move_aside
from obsmem.store.schema import transaction
from obsmem.tasks.cards import update_cards
from obsmem.tasks.store import ARCHIVE, INDEX, MEMORY, Store, open_store
from obsmem.tasks.words import index_words


class Finding(NamedTuple):
    """One thing that is wrong. ``repaired`` says whether it no longer is."""

    where: str
    what: str
    repaired: bool = False


def check(store: Store, *, repair: bool = False) -> list[Finding]:
    """Check archive, memory and index of an open store; with ``repair`` mend what can be mended."""
    findings = _check_file(store.archive.connection, ARCHIVE)
    findings += _check_segments(store, repair)
    findings += _check_entries(store)
    findings += _check_file(store.memory.connection, MEMORY)
    findings += _check_notes(store)
    findings += _check_coverage(store, repair)
    findings += _check_index(store, repair)
    return findings


def restore_memory(home: str) -> str:
    """Put the newest good backup in the place of a memory that cannot be opened; '' where it is sound or none is good.

    The damaged file is kept beside it.
    """
    path = os.path.join(home, MEMORY)
    if not os.path.exists(path) or not damage(path):
        return ""
    folder = os.path.join(home, "backups")
    for name in sorted(os.listdir(folder), reverse=True) if os.path.isdir(folder) else []:
        backup = os.path.join(folder, name)
        if name.endswith(".db") and not damage(backup):
            move_aside(path)
            with open(backup, "rb") as source, open(path, "wb") as target:
                target.write(source.read())
            os.chmod(path, 0o600)
            return backup
    return ""


def damage(path: str) -> str:
    """What SQLite says is wrong with a database file; '' if it is sound."""
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if answer == "ok" else str(answer)


def _check_file(connection: sqlite3.Connection, name: str) -> list[Finding]:
    try:
        answers = [row[0] for row in connection.execute("PRAGMA integrity_check(5)")]
    except sqlite3.DatabaseError as error:
        answers = [str(error)]
    return [Finding(name, answer) for answer in answers if answer != "ok"]


def _check_segments(store: Store, repair: bool) -> list[Finding]:
    """Every segment decompresses to its size and follows the one before it."""
    findings = []
    for stored in store.archive.sessions():
        for source in store.archive.sources(stored.no):
            expected = 0
            rows = store.archive.connection.execute(
                "SELECT no, offset, size, data FROM segments WHERE source=? ORDER BY no", (source.no,)
            ).fetchall()
            for number, offset, size, data in rows:
                where = f"{stored.session.handle} segment {number} of {source.path}"
                if source.kind == "file" and offset != expected:
                    findings.append(Finding(where, f"begins at byte {offset}, the one before ends at {expected}"))
                expected = offset + size
                if data and not _is_sound(data, size):
                    mended = repair and _read_again(store, source, number, offset, size)
                    findings.append(Finding(where, "cannot be decompressed", mended))
    return findings


def _is_sound(data: bytes, size: int) -> bool:
    try:
        return len(zlib.decompress(data)) == size
    except zlib.error:
        return False


def _read_again(store: Store, source: SourceRow, number: int, offset: int, size: int) -> bool:
    """Take a segment's bytes from the transcript again, if every entry's hash agrees with them."""
    try:
        with open(source.path, "rb") as file:
            file.seek(offset)
            data = file.read(size)
    except OSError:
        return False
    rows = store.archive.connection.execute("SELECT start, size, sha256 FROM entries WHERE segment=?", (number,))
    if len(data) != size or any(hashlib.sha256(data[a : a + n]).digest() != digest for a, n, digest in rows):
        return False
    with transaction(store.archive.connection):
        store.archive.connection.execute("UPDATE segments SET data=? WHERE no=?", (zlib.compress(data, LEVEL), number))
    store.archive.drop_cache()
    return True


def _check_entries(store: Store) -> list[Finding]:
    """Every entry's bytes have the hash that they had when they were read."""
    findings = []
    for stored in store.archive.sessions():
        bad = []
        for row in store.archive.entries(stored.no):
            try:
                store.archive.record(row)
            except Exception as error:  # any failure to give the bytes back is the finding
                if not is_removed(store.archive, row):
                    bad.append((row.seq, str(error)))
        if bad:
            findings.append(Finding(f"{stored.session.handle}", f"{len(bad)} entries, first {bad[0][0]}: {bad[0][1]}"))
    return findings


def _check_notes(store: Store) -> list[Finding]:
    """Every note's id follows from its text and sources, and each source exists."""
    findings = []
    known = {stored.session.handle: stored for stored in store.archive.sessions()}
    for (handle,) in store.memory.connection.execute("SELECT DISTINCT session FROM notes").fetchall():
        for one in store.memory.notes(handle):
            note = one.note
            if content_id(note.text, note.entry_ids) != note.id:
                findings.append(Finding(f"note {note.id}", "its id does not follow from its text and sources"))
            if handle not in known:
                findings.append(Finding(f"note {note.id}", f"its session {handle} is not in the archive"))
            elif any(not _exists(store, known[handle], name) for name in note.entry_ids):
                findings.append(Finding(f"note {note.id}", "cites an entry that the archive does not have"))
    return findings


def _exists(store: Store, stored: StoredSession, name: str) -> bool:
    handle, _, seq = name.rpartition(".")
    return handle == stored.session.handle and store.archive.entry(stored.no, int(seq)) is not None


def _check_coverage(store: Store, repair: bool) -> list[Finding]:
    findings = []
    for stored in store.archive.sessions():
        handle = stored.session.handle
        covered = store.memory.covered_to(handle)
        if covered > stored.last_seq:
            if repair:
                store.memory.roll_back_coverage(handle, stored.last_seq)
            findings.append(Finding(handle, f"is covered to {covered}, but ends at {stored.last_seq}", repair))
    return findings


def _check_index(store: Store, repair: bool) -> list[Finding]:
    wrong = store.index.check()
    if not wrong:
        return []
    if repair:
        store.rebuild_index()
        for stored in store.archive.sessions():
            update_cards(store, stored)
            index_words(store, stored)
    return [Finding(INDEX, wrong, repair)]


def check_home(home: str, *, repair: bool = False) -> list[Finding]:
    """Check a data folder, restoring first (with ``repair``) a memory that cannot be opened."""
    findings = []
    wrong = damage(os.path.join(home, MEMORY)) if os.path.exists(os.path.join(home, MEMORY)) else ""
    if wrong:
        backup = restore_memory(home) if repair else ""
        findings.append(
            Finding(MEMORY, wrong + (f"; restored from {os.path.basename(backup)}" if backup else ""), bool(backup))
        )
        if not backup:
            return findings
    with open_store(home) as store:
        return findings + check(store, repair=repair)
