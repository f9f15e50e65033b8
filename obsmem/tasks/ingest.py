"""Reading transcripts into the archive: only what is new, in order, whatever happened to the file.

Invariants: a record is archived before anything is concluded from it; reading on costs what is new, not what is old;
a rewritten file is read again, but what the archive already holds of it becomes no second entry; a worker's own
session is not read at all.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from obsmem.core.errors import NotFound, StoreError
from obsmem.core.model import Entry
from obsmem.harnesses import load
from obsmem.harnesses.base import Harness, Link, Parsed, Raw, Reader, Source
from obsmem.harnesses.written import link_key
from obsmem.store.archive import StoredSession
from obsmem.store.archive_forget import blank
from obsmem.store.archive_known import find_link, known_records, set_parent
from obsmem.store.archive_write import TORN, Changed, SourceWriter
from obsmem.system.collecting import seldom
from obsmem.system.workspace import workspace_of
from obsmem.tasks.beside import Beside
from obsmem.tasks.cards import update_cards
from obsmem.tasks.entries import read_entries
from obsmem.tasks.identify import first_named, has_begun, identify, refused
from obsmem.tasks.origin import Origin
from obsmem.tasks.own_voice import OwnVoice
from obsmem.tasks.store import Store

COMPARED = 3  # copied entries whose words show where a fork branched off


class Ingested(NamedTuple):
    """What one reading brought. ``reason`` says why nothing was read: excluded | worker | forgotten | busy | empty
    (no whole record yet) | ''."""

    stored: StoredSession | None
    records: int = 0
    entries: int = 0
    bytes: int = 0
    skipped: Mapping[str, int] = MappingProxyType({})
    reason: str = ""


class Progress(NamedTuple):
    """Where a reading stands, for progress bars: bytes done of bytes in all."""

    done: int
    total: int


def ingest(
    store: Store,
    harness: str,
    source: Source,
    *,
    final: bool = False,
    stop: Callable[[Raw, Parsed], bool] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Ingested:
    """Read a source on from where it was left.

    ``final`` archives a torn last line too (it is read again if it grows). ``stop`` ends the reading *before* the
    record for which it returns True. Raises OSError if the file cannot be read.
    """
    if not (os.path.isfile(source.path) or os.path.isdir(source.path)) and os.path.exists(source.path):
        raise OSError(f"{source.path} is neither a file nor a folder: reading it might never end.")
    module = load(harness)
    session, parent_id = identify(module, harness, source)
    session = first_named(store, session, source)
    reason = refused(store, session, source)
    if not reason and not final and store.archive.by_id(harness, session.id) is None and not has_begun(module, source):
        reason = "empty"
    if reason:
        return Ingested(None, reason=reason)
    try:
        stored = store.archive.register(session, parent_id)
    except StoreError:
        return Ingested(None, reason="forgotten")
    for _ in range(3):
        try:
            with seldom():
                return _Reading(store, module, stored, source, final, stop, progress).run()
        except Changed:
            continue
    return Ingested(store.archive.by_handle(stored.session.handle), reason="busy")


class _Reading:
    """One pass over one source: the reader, the writer, and what is known of copies and rewrites."""

    def __init__(self, store: Store, module: Harness, stored: StoredSession, source: Source, final: bool,
                 stop: Callable[[Raw, Parsed], bool] | None, progress: Callable[[Progress], None] | None) -> None:  # fmt: skip
        self.store, self.module, self.stored, self.source = store, module, stored, source
        self.final, self.stop, self.progress = final, stop, progress
        self.rows = module.ROWS and is_database(source.path)
        self.writer = SourceWriter(store.archive, stored.no, source.path, "rows" if self.rows else "file")
        self.known: dict[bytes, list[tuple[int, ...]]] = {}
        if not self.rows:
            if _rewritten(self.writer, source.path):
                self.writer.restart()
            self.known = known_records(store.archive, stored.no, self.writer.row.no)
        self.forgotten = store.archive.forgotten_records()
        self.known_rows: dict[str, bytes] = {}
        self.seen_rows: set[str] = set()
        if self.rows:
            self.known_rows = dict(
                store.archive.connection.execute("SELECT key, sha256 FROM rows WHERE source=?", (self.writer.row.no,))
            )
        state = self.writer.row.state
        self.reader: Reader = module.reader(source, json.loads(state) if state else None, self._history)
        self.origin = Origin(store, self.writer)
        self.own_voice = OwnVoice(store, stored)
        self.beside = Beside(store, module, stored, source.path)
        # A copy stands at the beginning, whole; it may have been cut by the end of an earlier reading.
        self.copying = not self.rows and store.archive.ends_with_copy(stored.no)
        self.stopped = False
        self.state: dict[str, Any] | None = None
        self.receipts: dict[tuple[int, str], tuple[str, ...]] = {}
        self.parent: StoredSession | None = None
        self.last_copied: list[Entry] = []
        self.linked = ("", "")  # the id of the newest record, and its key
        self.records = self.entries = 0

    def _history(self) -> Iterable[tuple[int, Link]]:
        for line, key, parent, prompt in self.store.archive.links(self.writer.row.no):
            yield line, Link(key, parent, prompt)
        for line, key, parent, prompt in self.writer.pending_links():
            yield line, Link(key, parent, prompt)

    def run(self) -> Ingested:
        start = self.writer.position
        total = os.path.getsize(self.source.path) if os.path.isfile(self.source.path) else 0
        before = Counter(self.writer.skipped)
        try:
            self.store.with_index(self.beside.catch_up)
            for raw in self.module.records(self.source, self.writer.position, self.writer.line):
                if not self._take(raw):
                    break
                if self.writer.full:
                    self._commit()
                    if self.progress is not None:
                        self.progress(Progress(self.writer.position, total))
            self._finish()
        finally:
            self.writer.close()
        stored = self.store.archive.by_handle(self.stored.session.handle)
        skipped = Counter(self.writer.skipped)
        skipped.subtract(before)
        return Ingested(stored, self.records, self.entries, self.writer.position - start, +skipped)

    def _take(self, raw: Raw) -> bool:
        """Queue one record; False ends the reading."""
        if self.rows:
            self.seen_rows.add(raw.key)
            if self.known_rows.get(raw.key) == hashlib.sha256(raw.data).digest():
                self.reader.read(raw)
                return True
        state = None if raw.complete and self.stop is None else self.reader.state()
        parsed = self.reader.read(raw)
        broken = not raw.complete and "not JSON" in parsed.skipped
        torn = broken and not parsed.entries
        self.stopped = self.stop is not None and self.stop(raw, parsed)
        if torn or self.stopped or (broken and not self.final):
            self.state = state  # the record is read again one day: it has told the reader nothing yet
        if self.stopped or (broken and not self.final):
            return False
        entries, skipped = self.own_voice.heard(parsed.entries, parsed.skipped), parsed.skipped
        as_read = raw.data
        if self.forgotten and self._is_forgotten(raw, parsed):
            # Same length, so that all places stay right; the words are gone.
            raw = raw._replace(data=blank(raw.data))
            entries, skipped = (), ("forgotten on request",)
        known: tuple[int, ...] = ()
        if self.known and entries:
            seen = self.known.get(hashlib.sha256(raw.data).digest())
            if seen:
                known = seen.pop(0)
                entries, skipped = (), (*skipped, "already archived")
        copied = (self.copying or parsed.copied or parsed.repeats is not None) and self._repeats_another(raw, parsed)
        if torn:
            skipped = (TORN,)
        self.writer.add(
            raw.data,
            raw.line,
            raw.offset,
            entries,
            skipped=skipped,
            key=raw.key,
            copied=copied,
            torn=torn,
            as_read=as_read,
            known=known,
        )
        if parsed.link is not None:
            self._link(raw.line, parsed.link)
        measure = parsed.measure
        if measure is not None and (measure.context or measure.kind == "kept") and not known:
            self.writer.measure(measure, copied)
        if parsed.disowned:
            self.writer.disown(parsed.disowned)
        for activity in parsed.activity:
            self.writer.activate(*activity)
        if parsed.receipts:
            self.receipts[raw.line, raw.key] = parsed.receipts
        if copied:
            self.last_copied = [*self.last_copied, *(entry for entry in entries if entry.observable)][-COMPARED:]
        self.records += 1
        self.entries += len(entries)
        return True

    def _link(self, line: int, link: Link) -> None:
        """Queue a record's place in the tree of records: its parent is nearly always the record before."""
        before, key = self.linked
        parent = key if link.parent == before else link_key(link.parent)
        self.linked = link.id, link_key(link.id)
        self.writer.link(line, self.linked[1], parent, link.prompt)

    def _repeats_another(self, raw: Raw, parsed: Parsed) -> bool:
        """True of a record that repeats another session's: as its harness, our own fork, or the record's id says."""
        if parsed.repeats is not None and parsed.repeats.session == self.stored.session.id:
            return self.origin.is_repeated(raw, parsed.repeats)
        if parsed.copied and self._parent_is_known():  # else nobody else observed it, and nobody else can
            return True
        return parsed.link is not None and self._is_copy(raw, parsed.link)

    def _is_forgotten(self, raw: Raw, parsed: Parsed) -> bool:
        if "record:" + hashlib.sha256(raw.data).hexdigest() in self.forgotten:
            return True
        return parsed.link is not None and "link:" + link_key(parsed.link.id) in self.forgotten

    def _parent_is_known(self) -> bool:
        if self.parent is None and self.reader.parent_id:
            self.parent = self.store.archive.by_id(self.stored.session.harness, self.reader.parent_id)
        return self.parent is not None

    def _is_copy(self, raw: Raw, link: Link) -> bool:
        """True if another session holds this record already: a fork or an old-style resume copied its history."""
        if self.copying and link.id:
            found = find_link(self.store.archive, link_key(link.id), self.stored.no)
            self.copying = found is not None
            if found is not None:
                self.origin.note(raw.line, *found)
        return self.copying and bool(link.id)

    def _commit(self) -> None:
        session = self.reader.session
        session = session._replace(
            transcript=self.source.path, workspace=workspace_of(session.cwd), id=self.stored.session.id
        )
        state = self.state if self.state is not None else self.reader.state()
        entries = self.writer.commit(state, session, self.reader.parent_id)
        self._after(entries)

    def _after(self, entries: list[Entry]) -> None:
        whole = []
        for entry in entries:
            marks: tuple[str, ...] = ()
            if entry.place is not None and entry.speaker == "harness":
                marks = self.receipts.pop((entry.place.line, entry.place.key), ())
            whole.append(self.beside.keep(entry, marks))
        stored = self.store.archive.by_handle(self.stored.session.handle)
        if entries:
            self.beside.reached(stored.last_seq)
        if stored.rewinds == self.stored.rewinds:  # else all cards are made anew: once, when everything is read
            update_cards(self.store, stored, whole)

    def _finish(self) -> None:
        self._commit()
        if self.rows:
            self._mark_inactive_rows()
        if self.known and not self.stopped:
            self._leave_vanished()
        update_cards(self.store, self.store.archive.by_handle(self.stored.session.handle))
        unknown = self.stored.session.parent is None
        point = self.origin.point() if unknown else None
        if point is None and (unknown or self.origin.places) and self.origin.parentage is None:
            point = self.store.archive.fork_point(self.stored.no)
        if point is not None:
            set_parent(self.store.archive, self.stored.no, *point)
        elif self.reader.parent_id and unknown:
            self._adopt(self.reader.parent_id)

    def _leave_vanished(self) -> None:
        """Take off the live path what no file of this session holds any more: it was rewritten, or moved here."""
        there = {
            row.no
            for row in self.store.archive.sources(self.stored.no)
            if row.kind == "bundle"  # what another store sent stands in no file here
            or (row.kind == "file" and row.path != self.source.path and os.path.exists(row.path))
        }
        vanished: list[int] = []
        for seqs in (seqs for places in self.known.values() for seqs in places):
            row = self.store.archive.entry(self.stored.no, seqs[0])
            if row is not None and row.source not in there:
                vanished += seqs
        self.store.archive.set_active(self.stored.no, vanished, active=False)

    def _mark_inactive_rows(self) -> None:
        """Take rows off the live path that the reader names, and those that are gone from the database (a harness
        deletes what was reverted at the next prompt)."""
        named = self.reader.inactive_keys()
        if named is None:
            return
        gone = self.known_rows.keys() - self.seen_rows
        self.store.archive.set_inactive_keys(self.stored.no, self.writer.row.no, named | gone)

    def _adopt(self, parent_id: str) -> None:
        """Link a session to its parent, with the fork point where it can be told: by the byte that the harness names,
        or by the words that were copied last. A sub-agent begins at no point of its parent that matters (-1)."""
        parent = self.store.archive.by_id(self.stored.session.harness, parent_id)
        if parent is None or parent.no == self.stored.no:
            return
        seq = -1
        if self.reader.session.role == "main":
            seq = self._seq_at(parent) if self.reader.parent_offset >= 0 else self._seq_of_words(parent)
        set_parent(self.store.archive, self.stored.no, parent.no, seq)

    def _seq_at(self, parent: StoredSession) -> int:
        """The last entry of the parent before the byte at which this session branched off."""
        files = [row for row in self.store.archive.sources(parent.no) if row.kind == "file"]
        return self.store.archive.seq_before(parent.no, files[-1].no, self.reader.parent_offset) if files else -1

    def _seq_of_words(self, parent: StoredSession) -> int:
        """The last entry of the parent with the words that were copied last."""
        words = [(entry.kind, entry.text) for entry in self.last_copied]
        if not words:
            return -1
        entries = read_entries(self.store, parent, self.store.archive.observable(parent.no, 0))
        said = [(entry.kind, entry.text) for entry in entries]
        for length in range(len(words), 0, -1):  # as many of them in a row as there are
            for end in range(len(said), length - 1, -1):
                if said[end - length : end] == words[-length:]:
                    return entries[end - 1].seq
        return -1


def is_database(path: str) -> bool:
    """True for sources whose records are rows that may change: SQLite files and folders."""
    return os.path.isdir(path) or path.endswith((".db", ".vscdb"))


def _rewritten(writer: SourceWriter, path: str) -> bool:
    """True if the bytes before the read position are no longer those that were read."""
    row = writer.row
    if row.offset == 0:
        return False
    try:
        with open(path, "rb") as file:
            file.seek(max(0, row.offset - row.tail_size))
            data = file.read(min(row.tail_size, row.offset))
    except OSError:
        return False
    if path.endswith(".zst"):
        return False  # positions are those of the decompressed text; such files are written once
    return row.tail_size > 0 and hashlib.sha256(data).digest() != row.tail


def known_session(store: Store, path: str) -> StoredSession:
    """The session that was read from a path. Raises NotFound."""
    row = store.archive.connection.execute(
        "SELECT session FROM sources WHERE path=? ORDER BY no DESC LIMIT 1", (path,)
    ).fetchone()
    if row is None:
        raise NotFound(f"Nothing was read from {path} yet. 'observational-memory ingest {path}' does it.")
    return store.archive.by_number(row[0])
