"""The entries of a session for a report: their words in pieces that can be had one by one, and what is known of each.

Invariants: each entry of the session stands in exactly one piece, whole, masked, in order; behind them stand the entries of other
sessions that its notes cite. Only one piece is held at a time; what is held of all entries is a line each.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from obsmem.core.errors import NotFound, StoreError
from obsmem.core.ids import entry_id, parse_entry_id
from obsmem.core.model import Entry
from obsmem.store.archive import StoredSession
from obsmem.store.archive_rows import EntryRow
from obsmem.system.local_time import local_wall
from obsmem.tasks.entries import find_entry, read_entries
from obsmem.tasks.report_data_words import clean_text, clean_words
from obsmem.tasks.store import Store

PIECE = 300_000  # characters of words in a piece: what is read, unpacked and parsed to show one entry
BATCH = 500  # entries that are read from the archive at a time
PREVIEW = 140  # characters of an entry's words in a list
LEVEL = 6  # of compression
GONE = "Its bytes cannot be read any more: retention removed them, or they are damaged ('observational-memory fsck' says which)."
KINDS = ("user", "assistant", "thinking", "tool_call", "tool_result", "summary", "boundary", "notice")
SPEAKERS = ("human", "agent", "tool", "harness", "subagent")
LIVE, COPIED, REPLACED, MISSING, FOREIGN = 1, 2, 4, 8, 16  # marks of an entry


class Columns:
    """What is known of every entry, column by column; ``pieces`` are the places of the first entry of each piece."""

    def __init__(self) -> None:
        self.ids: list[str] = []  # of entries of other sessions; the own ones are named by ``seq``
        self.seq: list[int] = []
        self.at: list[int] = []  # milliseconds, as the user's clock showed them
        self.kind: list[int] = []
        self.speaker: list[int] = []
        self.tool: list[int] = []
        self.ok: list[int] = []  # 1 it went well, 0 it did not, -1 nobody said
        self.tokens: list[int] = []
        self.length: list[int] = []  # characters
        self.marks: list[int] = []
        self.line: list[int] = []  # of the transcript, 0 where it has none
        self.preview: list[str] = []
        self.tools: list[str] = []
        self.pieces: list[int] = []
        self._tools: dict[str, int] = {}

    def add(self, row: EntryRow, entry: Entry | None, text: str, preview: str, marks: int) -> None:
        """Add the line of an entry."""
        tool = entry.tool if entry is not None else ""
        if tool not in self._tools:
            self._tools[tool] = len(self.tools)
            self.tools.append(tool)
        ok = entry.ok if entry is not None else None
        self.seq.append(row.seq)
        self.at.append(local_wall(row.at))
        self.kind.append(KINDS.index(row.kind))
        self.speaker.append(SPEAKERS.index(row.speaker))
        self.tool.append(self._tools[tool])
        self.ok.append(-1 if ok is None else int(ok))
        self.tokens.append(row.tokens)
        self.length.append(len(text))
        self.marks.append(marks)
        self.line.append(row.line)
        self.preview.append(preview)

    def value(self) -> dict[str, Any]:
        """All columns by their names, as JSON takes them."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


class Piece(NamedTuple):
    """The words of consecutive entries as a packed JSON list."""

    number: int
    packed: bytes


def pack(value: Any) -> bytes:
    """A value as JSON, compressed; the same value gives the same bytes."""
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return gzip.compress(data, LEVEL, mtime=0)


def pieces(store: Store, stored: StoredSession, cited: Iterable[str], columns: Columns) -> Iterator[Piece]:
    """The words of a session's entries, piece by piece; ``columns`` is complete when the last one was taken. ``cited`` are the
    ids of entries that notes stand on: of other sessions, and versions that were replaced, only these are there."""
    own, foreign = _parted(stored, cited)
    words: list[str] = []
    tools: dict[str, str] = {}  # of calls, for results that do not name theirs
    size = number = 0
    for row, entry, of in _all(store, stored, own, foreign):
        text = clean_text(store, entry.text) if entry is not None else ""
        preview = clean_words(store, text[: PREVIEW * 4], PREVIEW) if entry is not None else GONE
        if words and size + len(text) > PIECE:
            yield Piece(number, pack(words))
            words, size, number = [], 0, number + 1
        if not words:
            columns.pieces.append(len(columns.seq))
        named = None if entry is None else _with_tool(store, entry, tools)
        columns.add(row, named, text, preview, _marks(row, entry, foreign=of != stored.no))
        if of != stored.no:
            columns.ids.append(entry_id(store.archive.by_number(of).session.handle, row.seq))
        words.append(text)
        size += len(text)
    if words:
        yield Piece(number, pack(words))


def _with_tool(store: Store, entry: Entry, tools: dict[str, str]) -> Entry:
    """An entry with its tool's name, a result with that of its call where it does not say; calls are added to ``tools``."""
    tool = clean_words(store, entry.tool) or tools.get(entry.call_id, "")
    if entry.kind == "tool_call" and entry.call_id:
        tools[entry.call_id] = tool
    return entry._replace(tool=tool)


def _parted(stored: StoredSession, cited: Iterable[str]) -> tuple[set[int], list[str]]:
    """The seqs of the session's own entries among ids, and the ids of other sessions' entries, in order."""
    own: set[int] = set()
    foreign: dict[str, None] = {}
    for name in cited:
        handle, seq = parse_entry_id(name)
        if handle == stored.session.handle:
            own.add(seq)
        else:
            foreign[name] = None
    return own, list(foreign)


def _all(
    store: Store, stored: StoredSession, own: set[int], foreign: Sequence[str]
) -> Iterator[tuple[EntryRow, Entry | None, int]]:
    """(row, entry, number of its session); the entry is None where its bytes are gone."""
    first = 0
    while first <= stored.last_seq:
        rows = [
            row
            for row in store.archive.entries(stored.no, first, first + BATCH - 1)
            if row.replaced_by is None or row.seq in own
        ]
        for row, entry in _read(store, stored, rows):
            yield row, entry, stored.no
        first += BATCH
    for name in foreign:
        try:
            other, found = find_entry(store, name)
        except (NotFound, StoreError):
            continue  # it was forgotten: the note says so where it is shown
        for row, entry in _read(store, other, [found]):
            yield row, entry, other.no


def _read(store: Store, stored: StoredSession, rows: Sequence[EntryRow]) -> Iterator[tuple[EntryRow, Entry | None]]:
    found = {entry.seq: entry for entry in read_entries(store, stored, rows, lost=True)}
    for row in rows:
        yield row, found.get(row.seq)


def _marks(row: EntryRow, entry: Entry | None, *, foreign: bool) -> int:
    marks = ((LIVE, row.active), (COPIED, row.copied), (REPLACED, row.replaced_by is not None),
             (MISSING, entry is None), (FOREIGN, foreign))  # fmt: skip
    return sum(bit for bit, is_set in marks if is_set)
