"""``archive.db``: every record's bytes, compressed in segments, and the entries that point into them.

Invariants: the segments of a source, decompressed and joined in order, are the file byte for byte; an entry's bytes
can be had again by its id for as long as the store exists; bytes and read position commit together (``archive_write``).
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Sequence

from obsmem.core import late
from obsmem.core.errors import NotFound, StoreError
from obsmem.core.ids import handle_candidates
from obsmem.core.model import Place, Session
from obsmem.store.archive_rows import EntryRow, SourceRow, entry_row, key_text, session_hash, source_row, stored_session
from obsmem.store.archive_rows import StoredSession as StoredSession  # also imported from here
from obsmem.store.archive_schema import KIND_CODES, MIGRATIONS, OBSERVABLE, SEQ_BITS, row_number
from obsmem.store.measures import OWN_REQUESTS, measures_of
from obsmem.store.schema import open_database, transaction

_SESSION_COLUMNS = (
    "s.no, s.harness, s.id, s.handle, s.workspace, s.cwd, s.transcript, p.handle, s.parent_seq, s.started_at, "
    "s.name, s.role, s.model, s.window, s.last_seq, s.updated_at, s.parent_id, s.rewinds"
)
_SESSION_FROM = "FROM sessions s LEFT JOIN sessions p ON p.no = s.parent"


class Archive:
    """The archive of one store. One connection, used from one thread at a time. ``held`` are the number and the bytes of the
    segment that was decompressed last, whose records are asked for next."""

    def __init__(self, path: str, *, readonly: bool = False) -> None:
        self.path = path
        self.connection = open_database(path, MIGRATIONS, journal="TRUNCATE", readonly=readonly)
        if not readonly:
            self.connection.execute("PRAGMA secure_delete=ON")
        self.held: tuple[int, bytes] = (-1, b"")

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    # --- sessions

    def register(self, session: Session, parent_id: str = "") -> StoredSession:
        """Return the stored session of that harness and id, made with a fresh handle if it is new.

        Raises StoreError for a session that was forgotten.
        """
        found = self.by_id(session.harness, session.id)
        if found is not None:
            return found
        if self.is_forgotten(session_hash(session.harness, session.id)):
            raise StoreError(
                f"Session {session.id} was forgotten on request and is not read again. "
                "Delete its tombstone with 'observational-memory forget --undo' to allow it."
            )
        with transaction(self.connection):
            taken = {row[0] for row in self.connection.execute("SELECT handle FROM sessions")}
            # A forgotten session's handle is never given again either.
            taken |= {
                row[0][7:] for row in self.connection.execute("SELECT hash FROM tombstones WHERE hash LIKE 'handle:%'")
            }
            handle = next(name for name in handle_candidates(session.harness, session.id) if name not in taken)
            self.connection.execute(
                "INSERT OR IGNORE INTO sessions(harness, id, handle, role, transcript, started_at, parent_id)"
                " VALUES(?,?,?,?,?,?,?)",
                (session.harness, session.id, handle, session.role, session.transcript, session.started_at, parent_id),
            )
        found = self.by_id(session.harness, session.id)
        assert found is not None
        return found

    def describe(self, session: int, cwd: str, workspace: str, name: str) -> None:
        """Say of a session that nobody has read yet where it goes on, and what it is called."""
        with transaction(self.connection):
            self.connection.execute(
                "UPDATE sessions SET cwd=?, workspace=?, name=?, updated_at=started_at WHERE no=?",
                (cwd, workspace, name, session),
            )

    def by_id(self, harness: str, session_id: str) -> StoredSession | None:
        """The session with a harness's own id, if it is known."""
        return self._one(
            f"SELECT {_SESSION_COLUMNS} {_SESSION_FROM} WHERE s.harness=? AND s.id=?", (harness, session_id)
        )

    def by_handle(self, handle: str) -> StoredSession:
        """The session with a handle. Raises NotFound."""
        found = self._one(f"SELECT {_SESSION_COLUMNS} {_SESSION_FROM} WHERE s.handle=?", (handle,))
        if found is None:
            raise NotFound(f"No session has the handle {handle!r}. 'observational-memory sessions' lists them.")
        return found

    def by_number(self, number: int) -> StoredSession:
        """The session with a row number. Raises NotFound."""
        found = self._one(f"SELECT {_SESSION_COLUMNS} {_SESSION_FROM} WHERE s.no=?", (number,))
        if found is None:
            raise NotFound(f"The archive has no session number {number}.")
        return found

    def sessions(self) -> list[StoredSession]:
        """All sessions, the last grown first."""
        rows = self.connection.execute(
            f"SELECT {_SESSION_COLUMNS} {_SESSION_FROM} ORDER BY s.updated_at DESC, s.no DESC"
        )
        return [stored_session(row) for row in rows]

    def agents_of(self, session: int) -> list[StoredSession]:
        """The sub-agents that a session spawned, each a session of its own."""
        rows = self.connection.execute(
            f"SELECT {_SESSION_COLUMNS} {_SESSION_FROM} WHERE s.parent=? AND s.role<>'main' ORDER BY s.no", (session,)
        )
        return [stored_session(row) for row in rows]

    def _one(self, sql: str, values: tuple[object, ...]) -> StoredSession | None:
        row = self.connection.execute(sql, values).fetchone()
        return None if row is None else stored_session(row)

    # --- entries

    def entries(self, session: int, first: int = 0, last: int | None = None, where: str = "") -> Iterator[EntryRow]:
        """Yield a session's entries with seq in ``first``..``last`` (inclusive), in order."""
        low = row_number(session, max(first, 0))
        high = row_number(session, last if last is not None else (1 << SEQ_BITS) - 1)
        condition = f" AND {where}" if where else ""
        cursor = self.connection.execute(
            f"SELECT * FROM entries WHERE no BETWEEN ? AND ?{condition} ORDER BY no", (low, high)
        )
        for row in cursor:
            yield entry_row(row)

    def entry(self, session: int, seq: int) -> EntryRow | None:
        """One entry, or None."""
        row = self.connection.execute("SELECT * FROM entries WHERE no=?", (row_number(session, seq),)).fetchone()
        return None if row is None else entry_row(row)

    def observable(self, session: int, first: int, last: int | None = None) -> Iterator[EntryRow]:
        """Yield the entries in a range that an observer may read: no copies, only the newest version of each."""
        return self.entries(session, first, last, OBSERVABLE)

    def observable_tokens(self, session: int, after: int) -> int:
        """Estimated tokens of all observable entries with a seq above ``after``."""
        row = self.connection.execute(
            f"SELECT coalesce(sum(tokens), 0) FROM entries WHERE no BETWEEN ? AND ? AND {OBSERVABLE}",
            (row_number(session, after + 1), row_number(session + 1, 0) - 1),
        ).fetchone()
        return int(row[0])

    def boundaries(self, session: int, first: int = 0) -> list[int]:
        """The seqs of a session's compaction boundaries from ``first`` on."""
        rows = self.connection.execute(
            "SELECT no FROM entries WHERE no BETWEEN ? AND ? AND kind=? AND active=1 AND replaced_by IS NULL ORDER BY no",
            (row_number(session, first), row_number(session + 1, 0) - 1, KIND_CODES["boundary"]),
        )
        return [row[0] & ((1 << SEQ_BITS) - 1) for row in rows]

    def record(self, entry: EntryRow, *, alone: bool = False) -> bytes:
        """The exact bytes of an entry's record (``alone``: no more of its segment is wanted). StoreError if they are damaged."""
        end = entry.start + entry.size
        data = self.segment(entry.segment, end if alone else 0)[entry.start : end]
        if late.sha256(data) != entry.sha256:
            raise StoreError(
                f"The stored bytes of entry {entry.seq} do not match their hash. Run 'observational-memory fsck --repair'."
            )
        return data

    def is_readable(self, entry: EntryRow) -> bool:
        """True if an entry's bytes can be had."""
        try:
            self.record(entry)
        except StoreError:
            return False
        return True

    def segment(self, number: int, most: int = 0) -> bytes:
        """The first ``most`` bytes of a segment (0: all, which are held). Raises StoreError if it is missing or damaged."""
        if self.held[0] == number:
            return self.held[1]
        row = self.connection.execute("SELECT data FROM segments WHERE no=?", (number,)).fetchone()
        if row is None:
            raise StoreError(f"Segment {number} is missing from the archive. Run 'observational-memory fsck --repair'.")
        if not row[0]:
            raise StoreError(
                "The bytes of this entry were removed by retention (config: retention_days); its note stays."
            )
        try:
            data = zlib.decompressobj().decompress(row[0], most) if most else zlib.decompress(row[0])
        except zlib.error as error:
            raise StoreError(
                f"Segment {number} of the archive is damaged ({error}). Run 'observational-memory fsck --repair'."
            ) from error
        if not most:
            self.held = (number, data)
        return data

    def place(self, entry: EntryRow) -> Place:
        """Where an entry's record stood: file, line, byte offset and length, hash."""
        source = self.source(entry.source)
        row = self.connection.execute("SELECT offset FROM segments WHERE no=?", (entry.segment,)).fetchone()
        offset = row[0] + entry.start if row and source.kind != "rows" else 0
        key = self._key_of(entry) if source.kind == "rows" else ""
        return Place(source.path, entry.line, offset, entry.size, entry.sha256.hex(), source.kind if key else "", key)

    def _key_of(self, entry: EntryRow) -> str:
        """The key of the row that an entry, or its newest version, stands in; '' where it says nothing any more."""
        session, newest = entry.no >> SEQ_BITS, entry
        while newest.replaced_by is not None:
            successor = self.entry(session, newest.replaced_by) if newest.replaced_by >= 0 else None
            if successor is None:
                return ""
            newest = successor
        found = self.connection.execute(
            "SELECT key FROM rows WHERE source=? AND first_seq<=? AND last_seq>=?",
            (entry.source, newest.seq, newest.seq),
        ).fetchone()
        return found[0] if found else ""

    # --- sources

    def sources(self, session: int) -> list[SourceRow]:
        """Everything that was read for a session, oldest generation first."""
        rows = self.connection.execute("SELECT * FROM sources WHERE session=? ORDER BY no", (session,))
        return [source_row(row) for row in rows]

    def source(self, number: int) -> SourceRow:
        """One source. Raises StoreError if the archive has none of that number."""
        row = self.connection.execute("SELECT * FROM sources WHERE no=?", (number,)).fetchone()
        if row is None:
            raise StoreError(f"The archive has no source {number}. Run 'observational-memory fsck'.")
        return source_row(row)

    def bytes_of(self, source: int) -> Iterator[bytes]:
        """Yield a source's bytes, segment by segment, in order."""
        for row in self.connection.execute("SELECT no FROM segments WHERE source=? ORDER BY no", (source,)).fetchall():
            yield self.segment(row[0])

    def segment_sizes(self, source: int) -> list[tuple[int, int]]:
        """(number, bytes) of a source's segments, in order."""
        rows = self.connection.execute("SELECT no, size FROM segments WHERE source=? ORDER BY no", (source,))
        return [(row[0], row[1]) for row in rows]

    def links(self, source: int) -> Iterator[tuple[int, str, str, bool]]:
        """Yield (line, id key, parent key, is prompt) of a source's records; keys as 16 hex digits, '' for none."""
        cursor = self.connection.execute(
            "SELECT line, id, parent, prompt FROM links WHERE source=? ORDER BY line", (source,)
        )
        for line, key, parent, prompt in cursor:
            yield line, key_text(key), key_text(parent), bool(prompt)

    def seq_before(self, session: int, source: int, offset: int) -> int:
        """The last entry of a source whose record begins before a byte offset; -1 for none."""
        row = self.connection.execute(
            "SELECT max(e.no) FROM entries e JOIN segments g ON g.no=e.segment"
            " WHERE e.no BETWEEN ? AND ? AND e.source=? AND g.offset + e.start < ?",
            (row_number(session, 0), row_number(session + 1, 0) - 1, source, offset),
        ).fetchone()
        return -1 if row[0] is None else int(row[0]) & ((1 << SEQ_BITS) - 1)

    def side(self, entry: EntryRow) -> bytes | None:
        """The bytes of the side file that holds an entry's whole output, where one was archived."""
        row = self.connection.execute("SELECT source FROM sides WHERE entry=?", (entry.no,)).fetchone()
        return None if row is None else b"".join(self.bytes_of(row[0]))

    def has_side(self, session: int, seq: int) -> bool:
        """True if an entry's side file is archived."""
        number = row_number(session, seq)
        return self.connection.execute("SELECT 1 FROM sides WHERE entry=?", (number,)).fetchone() is not None

    def add_side(self, session: int, seq: int, source: int) -> None:
        """Tie an archived side file to the entry whose whole output it holds."""
        with transaction(self.connection):
            self.connection.execute("INSERT OR IGNORE INTO sides VALUES(?,?)", (row_number(session, seq), source))

    # --- the live path

    def copies_of(self, session: int) -> dict[int, bool]:
        """Row number of each entry that a session copied from another -> whether the copy is on the live path."""
        rows = self.connection.execute(
            "SELECT alias, max(active) FROM entries WHERE no BETWEEN ? AND ? AND alias IS NOT NULL GROUP BY alias",
            (row_number(session, 0), row_number(session + 1, 0) - 1),
        )
        return {number: bool(active) for number, active in rows}

    def fork_point(self, session: int) -> tuple[int, int] | None:
        """(session, seq) of the last entry that a session copied from another; None where it copied none."""
        row = self.connection.execute(
            "SELECT alias FROM entries WHERE no BETWEEN ? AND ? AND alias IS NOT NULL ORDER BY no DESC LIMIT 1",
            (row_number(session, 0), row_number(session + 1, 0) - 1),
        ).fetchone()
        return None if row is None else (row[0] >> SEQ_BITS, row[0] & ((1 << SEQ_BITS) - 1))

    def active_among(self, numbers: Sequence[int]) -> set[int]:
        """Those of these row numbers whose entries are on the live path."""
        found: set[int] = set()
        for start in range(0, len(numbers), 500):
            part = numbers[start : start + 500]
            marks = ",".join("?" * len(part))
            rows = self.connection.execute(f"SELECT no FROM entries WHERE active=1 AND no IN ({marks})", part)
            found.update(row[0] for row in rows)
        return found

    def ends_with_copy(self, session: int) -> bool:
        """True if the last entry of a session repeats another session's, or it has none yet."""
        row = self.connection.execute(
            "SELECT e.copied FROM sessions s LEFT JOIN entries e ON e.no=(s.no<<?)+s.last_seq WHERE s.no=?",
            (SEQ_BITS, session),
        ).fetchone()
        return row is None or row[0] in (None, 1)

    def set_active(self, session: int, seqs: Sequence[int], *, active: bool) -> None:
        """Put entries on or off the live path."""
        with transaction(self.connection):
            changed = self.connection.executemany(
                "UPDATE entries SET active=?1 WHERE no=?2 AND active<>?1",
                [(active, row_number(session, s)) for s in seqs],
            ).rowcount
            if changed > 0:
                self.count_rewind(session)

    def count_rewind(self, session: int) -> None:
        """Note, inside a transaction, that a session's live path changed: what is derived from it is made anew."""
        self.connection.execute("UPDATE sessions SET rewinds=rewinds+1 WHERE no=?", (session,))

    def set_inactive_keys(self, session: int, source: int, keys: Collection[str]) -> bool:
        """Take exactly the entries of these rows of a source, in all their versions, off the live path; versions that
        nothing came after too. True if that changed anything."""
        low, high = row_number(session, 0), row_number(session + 1, 0) - 1
        wanted: set[int] = set()
        with transaction(self.connection):
            for key, first, last in self.connection.execute(
                "SELECT key, first_seq, last_seq FROM rows WHERE source=?", (source,)
            ).fetchall():
                if key in keys:
                    wanted.update(row_number(session, seq) for seq in range(first, last + 1))
            # A replaced version is as active as its successor, which always stands behind it.
            for number, by in self.connection.execute(
                "SELECT no, replaced_by FROM entries WHERE no BETWEEN ? AND ? AND source=? AND replaced_by IS NOT NULL"
                " ORDER BY no DESC",
                (low, high, source),
            ).fetchall():
                if by < 0 or row_number(session, by) in wanted:
                    wanted.add(number)
            now = {
                row[0]
                for row in self.connection.execute(
                    "SELECT no FROM entries WHERE no BETWEEN ? AND ? AND source=? AND active=0", (low, high, source)
                )
            }
            for numbers, active in ((wanted - now, 0), (now - wanted, 1)):
                self.connection.executemany("UPDATE entries SET active=? WHERE no=?", [(active, no) for no in numbers])
            if wanted != now:
                self.count_rewind(session)
        return wanted != now

    def originals(self, session: int) -> dict[int, bytes]:
        """Row number of an entry that came masked from another store -> hash that its record has where it was read."""
        # A store of an earlier version that is only read has no such table, and nothing that came.
        if not self.connection.execute("SELECT 1 FROM sqlite_master WHERE name='originals'").fetchone():
            return {}
        rows = self.connection.execute(
            "SELECT entry, sha256 FROM originals WHERE entry BETWEEN ? AND ?",
            (row_number(session, 0), row_number(session + 1, 0) - 1),
        )
        return {number: bytes(digest) for number, digest in rows}

    # --- measures and sizes

    def measures(self, session: int, up_to: int | None = None) -> list[tuple[int, int]]:
        """(seq, provider-reported context tokens) of a session's own requests, in order."""
        found = measures_of(self.connection, session, up_to)
        return [(one.seq, one.context) for one in found if one.kind in OWN_REQUESTS]

    def sizes(self, session: int) -> tuple[int, int]:
        """(original, stored) bytes of everything that was read for a session."""
        row = self.connection.execute(
            "SELECT coalesce(sum(g.size),0), coalesce(sum(length(g.data)),0) FROM segments g"
            " JOIN sources s ON s.no=g.source WHERE s.session=?",
            (session,),
        ).fetchone()
        return int(row[0]), int(row[1])

    def is_forgotten(self, hash_: str) -> bool:
        """True if what has this hash was forgotten on request."""
        return self.connection.execute("SELECT 1 FROM tombstones WHERE hash=?", (hash_,)).fetchone() is not None

    def forgotten_records(self) -> frozenset[str]:
        """The tombstones of single records: ``record:`` and their SHA-256, ``link:`` and the key of their own id."""
        rows = self.connection.execute("SELECT hash FROM tombstones WHERE hash LIKE 'record:%' OR hash LIKE 'link:%'")
        return frozenset(row[0] for row in rows)

    def drop_cache(self) -> None:
        """Read segments again from the database: one was just changed."""
        self.held = (-1, b"")

    def is_removed(self, entry: EntryRow) -> bool:
        """True if retention removed an entry's bytes."""
        row = self.connection.execute("SELECT length(data) FROM segments WHERE no=?", (entry.segment,)).fetchone()
        return row is not None and row[0] == 0
