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

from obsmem.core.errors import StoreError
from obsmem.core.ids import content_id
from obsmem.harnesses import load
from obsmem.harnesses.base import Source
from obsmem.store.archive_forget import blank, is_removed
from obsmem.store.archive_rows import SourceRow, StoredSession
from obsmem.store.archive_write import LEVEL
from obsmem.store.schema import damage, move_aside, transaction
from obsmem.system.files import write_atomic
from obsmem.tasks.cards import update_cards
from obsmem.tasks.raw_check import wrong_outputs
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
    findings += [Finding(where, what) for where, what in wrong_outputs(store)]
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
            with open(backup, "rb") as source:
                write_atomic(path, source.read())
            return backup
    return ""


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
                    mended = repair and _read_again(store, stored, source, number, offset, size)
                    findings.append(Finding(where, "cannot be decompressed", mended))
    return findings


def _is_sound(data: bytes, size: int) -> bool:
    try:
        return len(zlib.decompress(data)) == size
    except zlib.error:
        return False


def _read_again(store: Store, stored: StoredSession, source: SourceRow, number: int, offset: int, size: int) -> bool:
    """Take a segment's bytes from the transcript again, if they are those that were read. What was forgotten since
    stays so."""
    try:
        data = _bytes_now(store, stored, source, number, offset, size)
    except OSError:
        return False
    run = store.archive.connection.execute
    rows = run("SELECT start, size, sha256 FROM entries WHERE segment=?", (number,)).fetchall()
    (old,) = run("SELECT data FROM segments WHERE no=?", (number,)).fetchone()
    # The end of a zlib stream is a checksum of what it held: it vouches for the records that have no entry.
    vouched = zlib.adler32(data).to_bytes(4, "big") == bytes(old[-4:])
    agree = all(hashlib.sha256(data[a : a + n]).digest() == digest for a, n, digest in rows)
    if len(data) != size or not agree or not (vouched or rows):
        return False
    with transaction(store.archive.connection):
        run("UPDATE segments SET data=? WHERE no=?", (zlib.compress(data, LEVEL), number))
    store.archive.drop_cache()
    return True


def _bytes_now(store: Store, stored: StoredSession, source: SourceRow, number: int, offset: int, size: int) -> bytes:
    """What stands at a segment's place in its source now; rows of a database are not looked for."""
    if source.kind == "side":
        with open(source.path, "rb") as file:
            file.seek(offset)
            return file.read(size)
    if source.kind != "file":
        return b""
    (line,) = store.archive.connection.execute("SELECT line FROM segments WHERE no=?", (number,)).fetchone()
    forgotten = store.archive.forgotten_records()
    pieces, length = [], 0
    for raw in load(stored.session.harness).records(Source(source.path), offset, line - 1):
        is_forgotten = "record:" + hashlib.sha256(raw.data).hexdigest() in forgotten
        pieces.append(blank(raw.data) if is_forgotten else raw.data)
        length += len(raw.data)
        if length >= size:
            break
    return b"".join(pieces)


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
        _rebuild(store)
    return [Finding(INDEX, wrong, repair)]


def _rebuild(store: Store) -> None:
    for stored in store.archive.sessions():
        update_cards(store, stored)
        index_words(store, stored)


def check_home(home: str, *, repair: bool = False) -> list[Finding]:
    """Check a data folder, restoring first (with ``repair``) a memory that cannot be opened, and making a new index in
    the place of a damaged one. Checking alone opens nothing for writing."""
    findings = []
    for name in (ARCHIVE, MEMORY, INDEX):
        path = os.path.join(home, name)
        wrong = damage(path) if os.path.exists(path) else ""
        if not wrong:
            continue
        remark, repaired = "", False
        if repair and name == MEMORY:
            backup = restore_memory(home)
            remark, repaired = (f"; restored from {os.path.basename(backup)}", True) if backup else ("", False)
        elif repair and name == INDEX:
            move_aside(path)
            remark, repaired = "; made anew", True
        findings.append(Finding(name, wrong + remark, repaired))
    if any(not finding.repaired for finding in findings):
        return findings
    try:
        with open_store(home, readonly=not repair and os.path.exists(os.path.join(home, INDEX))) as store:
            if any(finding.where == INDEX for finding in findings):
                _rebuild(store)
            return findings + check(store, repair=repair)
    except StoreError as error:
        return [*findings, Finding(home, str(error))]
