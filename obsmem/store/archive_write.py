"""Writing to the archive: records go in, entries with their seq come out.

Invariants: what a commit adds (bytes, entries, links, read position, reader's state) appears whole or not at all; a
commit checks that nobody read on in the meantime; a transaction holds at most BATCH bytes of transcript.
"""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import Any, NamedTuple

from obsmem.core.errors import StoreError
from obsmem.core.model import Entry, Place, Session
from obsmem.core.pressure import Measure
from obsmem.core.tokens import estimate
from obsmem.store.archive import Archive
from obsmem.store.archive_rows import SourceRow, key_number, key_text
from obsmem.store.archive_schema import KIND_CODES, SPEAKER_CODES, row_number
from obsmem.store.measures import Placed, entries_after, save_measures, set_aside
from obsmem.store.schema import transaction

SEGMENT = 128 << 10  # bytes of records; larger segments hardly compress better, since zlib looks back 32 KiB
BATCH = 8 << 20  # bytes of records in one transaction
LEVEL = 2  # less than half the time of 6, for archives that are a tenth larger
TORN = "torn last line"
TAIL = 4096  # bytes before the read position whose hash tells whether the file was rewritten


class Changed(StoreError):
    """Another process read the same source on in the meantime; start again from where it is now."""


class Pending(NamedTuple):
    """A record that waits for its commit, with the entries that it yields. ``as_read`` are the file's bytes where what is
    kept of them differs."""

    data: bytes
    line: int
    offset: int
    key: str
    entries: tuple[Entry, ...]
    digest: bytes
    copied: bool
    known: tuple[int, ...]
    as_read: bytes


class Segment(NamedTuple):
    """Consecutive records compressed together (in a second thread: zlib releases the interpreter lock)."""

    line: int
    offset: int
    size: int
    records: list[Pending]
    data: Future[bytes]


class SourceWriter:
    """Adds records of one source. ``add`` each in order, ``commit`` when ``full`` and at the end."""

    def __init__(self, archive: Archive, session: int, path: str, kind: str) -> None:
        self.archive = archive
        self.session = session
        self.row = self._open(path, kind)
        self.position = self.row.offset
        self.line = self.row.line
        self.skipped: Counter[str] = Counter(json.loads(self.row.skipped))
        self._segments: list[Segment] = []
        self._records: list[Pending] = []
        self._size = 0
        self._batch = 0
        self._links: list[tuple[int, int, int, int, bool]] = []
        self._activity: list[tuple[int, int, bool]] = []
        self._disowned: set[int] = set()
        self._measures: list[tuple[int, Measure, bool]] = []  # with the index of an entry among the batch's
        self._count = 0
        self._tail = b""
        self._torn = False
        self._pool = ThreadPoolExecutor(1)
        self.alias_of: Callable[[Pending, int], int | None] = lambda pending, block: None

    def _open(self, path: str, kind: str) -> SourceRow:
        connection = self.archive.connection
        found = [row for row in self.archive.sources(self.session) if row.path == path and row.kind == kind]
        if found:
            row = found[-1]
            return self._drop_torn(row) if row.torn else row
        with transaction(connection):
            connection.execute(
                "INSERT OR IGNORE INTO sources(session, path, kind) VALUES(?,?,?)", (self.session, path, kind)
            )
        return [row for row in self.archive.sources(self.session) if row.path == path and row.kind == kind][-1]

    def _drop_torn(self, row: SourceRow) -> SourceRow:
        """Take back a torn last line that was archived as it stood; it is read again now."""
        connection = self.archive.connection
        with transaction(connection):
            last = connection.execute(
                "SELECT no, line, offset FROM segments WHERE source=? ORDER BY no DESC LIMIT 1", (row.no,)
            ).fetchone()
            if last is not None:
                connection.execute("DELETE FROM segments WHERE no=?", (last[0],))
                self.archive.drop_cache()  # its number is given again
                tail = self._stored_tail(row.no)
                skipped = Counter(json.loads(row.skipped))
                skipped[TORN] -= 1
                connection.execute(
                    "UPDATE sources SET torn=0, offset=?, line=?, tail=?, tail_size=?, skipped=? WHERE no=?",
                    (last[2], last[1] - 1, hashlib.sha256(tail).digest(), len(tail), json.dumps(+skipped), row.no),
                )
        return self.archive.source(row.no)

    def _stored_tail(self, source: int) -> bytes:
        """The last bytes that are archived of a source."""
        tail = b""
        for (number,) in self.archive.connection.execute(
            "SELECT no FROM segments WHERE source=? ORDER BY no DESC", (source,)
        ).fetchall():
            tail = self.archive.segment(number) + tail
            if len(tail) >= TAIL:
                break
        return tail[-TAIL:]

    def restart(self) -> None:
        """Begin a new generation: the file was rewritten. What was read before stays in the archive."""
        connection = self.archive.connection
        with transaction(connection):
            added = connection.execute(
                "INSERT OR IGNORE INTO sources(session, path, kind, generation) VALUES(?,?,?,?)",
                (self.session, self.row.path, self.row.kind, self.row.generation + 1),
            ).rowcount
            if not added:
                raise Changed(f"{self.row.path} was begun anew by another process.")
            number = connection.execute("SELECT last_insert_rowid()").fetchone()[0]
        self.row = self.archive.source(number)
        self.position, self.line, self.skipped = 0, 0, Counter()

    @property
    def full(self) -> bool:
        """True when a commit is due."""
        return self._batch >= BATCH

    def add(self, data: bytes, line: int, offset: int, entries: tuple[Entry, ...], *, skipped: tuple[str, ...] = (),
            key: str = "", copied: bool = False, torn: bool = False, as_read: bytes = b"",
            known: tuple[int, ...] = ()) -> None:  # fmt: skip
        """Queue a record. ``torn`` marks a last line that will be read again when it has grown; ``as_read`` are the
        file's bytes where what is kept of them differs (a forgotten record); ``known`` are the seqs of the entries that
        this very record has already: they stand here from now on, and on the live path."""
        for reason in skipped:
            self.skipped[reason] += 1
        if torn:
            self._cut()
            self._torn = True
        digest = hashlib.sha256(data).digest() if entries or key else b""
        self._records.append(Pending(data, line, offset, key, entries, digest, copied, known, as_read))
        size = len(data)
        self._count += len(entries)
        self._size += size
        self._batch += size
        self.position = offset + size
        self.line = line if data.endswith(b"\n") or key or torn else line - 1
        if self._size >= SEGMENT:
            self._cut()

    def link(self, line: int, key: str, parent: str, prompt: bool) -> None:
        """Remember a record's place in the harness's own tree."""
        self._links.append((self.row.no, line, key_number(key), key_number(parent), prompt))

    def pending_links(self) -> list[tuple[int, str, str, bool]]:
        """(line, id key, parent key, is prompt) of records added but not yet committed."""
        return [(line, key_text(key), key_text(parent), prompt) for _, line, key, parent, prompt in self._links]

    def measure(self, measure: Measure, copied: bool = False) -> None:
        """Remember what was reported at the record just added; ``copied`` where that is another session's."""
        back = 0
        if measure.place != "here":
            before = self._segments[-1].records if self._segments else []
            back = entries_after(
                measure.place, (one.entries for one in chain(reversed(self._records), reversed(before)))
            )
        self._measures.append((self._count - 1 - back, measure, copied))

    def disown(self, lines: Iterable[int]) -> None:
        """The words of these lines turn out to be the harness's own: no agent's reply, but a summary."""
        self._disowned.update(lines)

    def activate(self, first: int, last: int, active: bool) -> None:
        """Put the entries of lines ``first``..``last`` on or off the live path, in the order of calls."""
        self._activity.append((first, last, active))

    def _cut(self) -> None:
        if not self._records:
            return
        raw = b"".join(record.data for record in self._records)
        first = self._records[0]
        self._segments.append(
            Segment(first.line, first.offset, len(raw), self._records, self._pool.submit(zlib.compress, raw, LEVEL))
        )
        self._records, self._size = [], 0

    def commit(self, state: dict[str, Any], session: Session, parent_id: str = "") -> list[Entry]:
        """Write all that was added, and how far the source was read. Returns the entries, now with seq and place.

        Raises Changed if another process read this source on since it was opened; nothing is written then.
        """
        self._cut()
        connection = self.archive.connection
        now = int(time.time() * 1000)
        entries: list[Entry] = []
        with transaction(connection):
            offset, known = connection.execute(
                "SELECT offset, read_at FROM sources WHERE no=?", (self.row.no,)
            ).fetchone()
            if (offset, known) != (self.row.offset, self.row.read_at):
                raise Changed(f"{self.row.path} was read on by another process.")
            (last_seq,) = connection.execute("SELECT last_seq FROM sessions WHERE no=?", (self.session,)).fetchone()
            seq = last_seq + 1
            for segment in self._segments:
                seq = self._insert(segment, seq, entries)
            connection.executemany("INSERT OR REPLACE INTO links VALUES(?,?,?,?,?)", self._links)
            save_measures(
                connection,
                self.session,
                [Placed(max(last_seq + 1 + index, 0), measure, copied) for index, measure, copied in self._measures],
            )
            self._apply_activity(entries)
            self._apply_disowned(entries)
            self._move_tail()
            self._save_position(state, now)
            self._save_session(session, parent_id, seq - 1, now if entries else 0)
        self._reset()
        return entries

    def _insert(self, segment: Segment, seq: int, entries: list[Entry]) -> int:
        connection = self.archive.connection
        cursor = connection.execute(
            "INSERT INTO segments(source, line, offset, size, data) VALUES(?,?,?,?,?)",
            (self.row.no, segment.line, segment.offset, segment.size, segment.data.result()),
        )
        number, start, rows = cursor.lastrowid, 0, []
        for record in segment.records:
            size, first = len(record.data), seq
            for entry in record.entries:
                if seq == first:
                    place = self._place(record)
                tokens = estimate(entry.text)
                alias = self.alias_of(record, entry.block) if record.copied else None
                rows.append((
                    row_number(self.session, seq), self.row.no, number, start, size, record.digest, entry.block, record.line,
                    KIND_CODES[entry.kind], SPEAKER_CODES[entry.speaker], entry.at, tokens, entry.active, record.copied, alias,
                    None,
                ))  # fmt: skip
                entries.append(entry.archived(seq, place, tokens))
                seq += 1
            if record.known:
                self._move_entries(record, number or 0, start)
            if record.key:
                self._replace_row(record, first, seq - 1)
            start += size
        connection.executemany("INSERT INTO entries VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", rows)
        return seq

    def _place(self, record: Pending) -> Place:
        table = "rows" if record.key else ""
        return Place(
            self.row.path, record.line, record.offset, len(record.data), record.digest.hex(), table, record.key
        )

    def _move_entries(self, record: Pending, segment: int, start: int) -> None:
        """A record came again (the file was rewritten or moved): its entries stand in the new place, and are live."""
        run = self.archive.connection.execute
        for seq in record.known:
            number = row_number(self.session, seq)
            if run("SELECT 1 FROM entries WHERE no=? AND active=0", (number,)).fetchone():
                self.archive.count_rewind(self.session)
            digest = hashlib.sha256(record.data).digest()  # another store may have sent it masked
            run(
                "UPDATE entries SET source=?, segment=?, start=?, size=?, sha256=?, line=?, active=1 WHERE no=?",
                (self.row.no, segment, start, len(record.data), digest, record.line, number),
            )
            run("DELETE FROM originals WHERE entry=?", (number,))

    def _replace_row(self, record: Pending, first: int, last: int) -> None:
        """A row of a database has a new version: the entries of the old one point to their successor."""
        connection = self.archive.connection
        old = connection.execute(
            "SELECT first_seq, last_seq FROM rows WHERE source=? AND key=?", (self.row.no, record.key)
        ).fetchone()
        if old is not None and old[1] >= old[0]:
            self.archive.count_rewind(self.session)
            connection.execute(
                "UPDATE entries SET replaced_by=? WHERE no BETWEEN ? AND ?",
                (first if last >= first else -1, row_number(self.session, old[0]), row_number(self.session, old[1])),
            )
        connection.execute(
            "INSERT OR REPLACE INTO rows VALUES(?,?,?,?,?)", (self.row.no, record.key, record.digest, first, last)
        )

    def _apply_activity(self, entries: list[Entry]) -> None:
        for first, last, active in self._activity:
            self.archive.connection.execute(
                "UPDATE entries SET active=? WHERE no BETWEEN ? AND ? AND source=? AND line BETWEEN ? AND ?",
                (active, row_number(self.session, 0), row_number(self.session + 1, 0) - 1, self.row.no, first, last),
            )
            for index, entry in enumerate(entries):
                if entry.place is not None and first <= entry.place.line <= last:
                    entries[index] = entry._replace(active=active)
        if self._activity:
            self.archive.count_rewind(self.session)

    def _apply_disowned(self, entries: list[Entry]) -> None:
        values = (KIND_CODES["summary"], SPEAKER_CODES["harness"])
        for line in self._disowned:
            self.archive.connection.execute(
                "UPDATE entries SET kind=?, speaker=? WHERE no BETWEEN ? AND ? AND source=? AND line=? AND kind=?",
                (*values, row_number(self.session, 0), row_number(self.session + 1, 0) - 1, self.row.no, line,
                 KIND_CODES["assistant"]),
            )  # fmt: skip
            set_aside(self.archive.connection, self.session, self.row.no, line)
        for index, entry in enumerate(entries):
            if entry.place is not None and entry.place.line in self._disowned and entry.kind == "assistant":
                entries[index] = entry._replace(kind="summary", speaker="harness")

    def _move_tail(self) -> None:
        pieces: list[bytes] = []
        size = 0
        for record in chain.from_iterable(reversed(segment.records) for segment in reversed(self._segments)):
            if size >= TAIL:
                break
            pieces.append(record.as_read or record.data)
            size += len(record.data)
        self._tail = b"".join([self._tail, *reversed(pieces)])[-TAIL:]

    def _save_position(self, state: dict[str, Any], now: int) -> None:
        tail = hashlib.sha256(self._tail).digest() if self._tail else self.row.tail
        size = len(self._tail) if self._tail else self.row.tail_size
        # read_at also serves as the version of this row: a second commit within a millisecond must differ.
        stamp = max(now, self.row.read_at + 1)
        self.archive.connection.execute(
            "UPDATE sources SET offset=?, line=?, state=?, tail=?, tail_size=?, torn=?, skipped=?, read_at=? WHERE no=?",
            (
                self.position,
                self.line,
                json.dumps(state),
                tail,
                size,
                self._torn,
                json.dumps(self.skipped),
                stamp,
                self.row.no,
            ),
        )
        self.row = self.archive.source(self.row.no)

    def _save_session(self, session: Session, parent_id: str, last_seq: int, grown: int) -> None:
        """Take over what the reader has learnt; what it does not know ('' or 0) stays as it was."""
        known = {
            "name": session.name, "cwd": session.cwd, "workspace": session.workspace, "transcript": session.transcript,
            "started_at": session.started_at, "model": session.model, "window": session.window, "parent_id": parent_id,
        }  # fmt: skip
        values = {name: value for name, value in known.items() if value}
        values |= {"role": session.role, "last_seq": last_seq}
        if grown:
            values["updated_at"] = grown
        columns = ", ".join(f"{name}=?" for name in values)
        self.archive.connection.execute(f"UPDATE sessions SET {columns} WHERE no=?", (*values.values(), self.session))

    def _reset(self) -> None:
        self._segments, self._links, self._activity, self._measures = [], [], [], []
        self._disowned = set()
        self._batch = self._count = 0

    def close(self) -> None:
        """Stop the compressing thread."""
        self._pool.shutdown(wait=False)
