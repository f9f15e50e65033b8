"""Taking bytes out of the archive: a session, one record with all its copies, or what retention no longer keeps.

Invariant: what is taken out leaves a tombstone (a hash, never content), so that reading a transcript again does not
bring it back; what stays keeps its place, as a record's bytes become NULs of the same length.
"""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Collection, Iterator

from obsmem.core.errors import StoreError
from obsmem.store.archive import Archive
from obsmem.store.archive_rows import EntryRow, StoredSession, key_text, session_hash
from obsmem.store.archive_schema import row_number, seq_of
from obsmem.store.archive_write import LEVEL
from obsmem.store.schema import transaction

Seqs = dict[int, list[int]]  # session number -> seqs of its entries


def remove_session(archive: Archive, stored: StoredSession) -> int:
    """Remove a session with all its bytes; returns how many entries it had. Its handle is never given again."""
    low, high = row_number(stored.no, 0), row_number(stored.no + 1, 0) - 1
    now = int(time.time() * 1000)
    run = archive.connection.execute
    with transaction(archive.connection):
        # Copies in a fork point here; they have their own bytes and stand alone from now on.
        run("UPDATE entries SET alias=NULL WHERE alias BETWEEN ? AND ?", (low, high))
        count = run("DELETE FROM entries WHERE no BETWEEN ? AND ?", (low, high)).rowcount
        for table in ("sides", "originals", "rewound"):
            run(f"DELETE FROM {table} WHERE entry BETWEEN ? AND ?", (low, high))
        for table in ("segments", "links", "rows"):
            run(f"DELETE FROM {table} WHERE source IN (SELECT no FROM sources WHERE session=?)", (stored.no,))
        run("DELETE FROM sources WHERE session=?", (stored.no,))
        run("DELETE FROM measures WHERE session=?", (stored.no,))
        run("UPDATE sessions SET parent=NULL, parent_seq=NULL WHERE parent=?", (stored.no,))
        run("DELETE FROM sessions WHERE no=?", (stored.no,))
        for hash_ in (session_hash(stored.session.harness, stored.session.id), f"handle:{stored.session.handle}"):
            run("INSERT OR REPLACE INTO tombstones VALUES(?,?)", (hash_, now))
    archive.drop_cache()  # the numbers of its segments are given again
    return int(count)


def remove_record(archive: Archive, row: EntryRow) -> tuple[int, Seqs]:
    """Blank the record of an entry wherever it stands: in earlier generations of its file, and in the sessions that it
    was copied to or from. Returns (bytes of the record, the entries that went)."""
    family = _family(archive, row)
    records = {archive.record(one) for one in family if archive.is_readable(one)}
    places = {(one.segment, one.start) for one in family}
    now = int(time.time() * 1000)
    gone: Seqs = {}
    with transaction(archive.connection):
        run = archive.connection.execute
        for session in {seq_of(one.no)[0] for one in family}:
            found = places | set(_blank(archive, session, records))
            rows = [one for one in archive.entries(session) if (one.segment, one.start) in found]
            for one in rows:
                _remove_side(archive, one)
                run("DELETE FROM entries WHERE no=?", (one.no,))
            gone[session] = [one.seq for one in rows]
            archive.count_rewind(session)
        for hash_ in _tombstones(archive, family, records):
            run("INSERT OR REPLACE INTO tombstones VALUES(?,?)", (hash_, now))
    archive.drop_cache()
    return row.size, gone


def _family(archive: Archive, row: EntryRow) -> list[EntryRow]:
    """An entry, the one that it was copied from, and all copies of that."""
    first = row.no if row.alias is None else row.alias
    numbers = archive.connection.execute("SELECT no FROM entries WHERE no IN (?1, ?2) OR alias=?1", (first, row.no))
    found = [archive.entry(*seq_of(number)) for (number,) in numbers.fetchall()]
    return [one for one in found if one is not None]


def _blank(archive: Archive, session: int, records: Collection[bytes]) -> Iterator[tuple[int, int]]:
    """Blank these records in all segments of a session; yields (segment, start) of each place."""
    numbers = archive.connection.execute(
        "SELECT g.no FROM segments g JOIN sources s ON s.no=g.source WHERE s.session=? AND length(g.data)>0", (session,)
    ).fetchall()
    for (number,) in numbers:
        try:
            data = archive.segment(number)
        except StoreError:
            continue  # damaged: nothing can be read there, and fsck puts nothing back that has a tombstone
        changed = data
        for record in records:
            start = changed.find(record)
            while start >= 0:
                if start == 0 or changed[start - 1] == 0x0A:
                    changed = changed[:start] + blank(record) + changed[start + len(record) :]
                    yield number, start
                start = changed.find(record, start + 1)
        if changed != data:
            archive.connection.execute("UPDATE segments SET data=? WHERE no=?", (zlib.compress(changed, LEVEL), number))


def blank(record: bytes) -> bytes:
    """What stands in the place of a forgotten record: as long, and with its newline."""
    return b"\x00" * (len(record) - 1) + record[-1:]


def _remove_side(archive: Archive, row: EntryRow) -> None:
    run = archive.connection.execute
    found = run("SELECT source FROM sides WHERE entry=?", (row.no,)).fetchone()
    if found is None:
        return
    run("DELETE FROM sides WHERE source=?", found)
    run("DELETE FROM segments WHERE source=?", found)
    run("DELETE FROM sources WHERE no=?", found)


def _tombstones(archive: Archive, family: Collection[EntryRow], records: Collection[bytes]) -> set[str]:
    hashes = {"record:" + one.sha256.hex() for one in family}
    hashes |= {"record:" + hashlib.sha256(record).hexdigest() for record in records}
    for one in family:
        link = archive.connection.execute(
            "SELECT id FROM links WHERE source=? AND line=? AND id<>0", (one.source, one.line)
        ).fetchone()
        if link is not None:
            hashes.add("link:" + key_text(link[0]))
    return hashes


def remove_segments(archive: Archive, session: int, kept: Collection[int]) -> int:
    """Empty the segments of a session but those in ``kept``; returns how many bytes of transcript they held."""
    removed = 0
    with transaction(archive.connection):
        rows = archive.connection.execute(
            "SELECT g.no, g.size FROM segments g JOIN sources s ON s.no=g.source WHERE s.session=? AND length(g.data)>0",
            (session,),
        ).fetchall()
        for number, size in rows:
            if number not in kept:
                archive.connection.execute("UPDATE segments SET data=x'' WHERE no=?", (number,))
                removed += size
    archive.drop_cache()
    return removed


def is_removed(archive: Archive, entry: EntryRow) -> bool:
    """True if retention removed an entry's bytes."""
    row = archive.connection.execute("SELECT length(data) FROM segments WHERE no=?", (entry.segment,)).fetchone()
    return row is not None and row[0] == 0


def segments_behind(archive: Archive, entry: EntryRow) -> set[int]:
    """The segments that hold an entry: its record's, and those of its side file."""
    rows = archive.connection.execute(
        "SELECT g.no FROM sides x JOIN segments g ON g.source=x.source WHERE x.entry=?", (entry.no,)
    )
    return {entry.segment, *(row[0] for row in rows)}
