"""What rows of ``archive.db`` are read into, and the small encodings that its tables use."""

from __future__ import annotations

from typing import Any

from obsmem.core import late
from obsmem.core.model import EntryKind, Session, Speaker
from obsmem.core.tuples import NamedTuple
from obsmem.store.archive_schema import KINDS, SEQ_BITS, SPEAKERS


class StoredSession(NamedTuple):
    """A session with what only the store knows: its number, its last seq (-1 when empty), when it last grew (ms), and
    how often its live path changed."""

    no: int
    session: Session
    last_seq: int
    updated_at: int
    parent_id: str
    rewinds: int = 0


class EntryRow(NamedTuple):
    """An entry as stored: everything but its text, which its record's bytes yield (block ``block`` of them)."""

    no: int
    seq: int
    source: int
    segment: int
    start: int
    size: int
    sha256: bytes
    block: int
    line: int
    kind: EntryKind
    speaker: Speaker
    at: int
    tokens: int
    active: bool
    copied: bool
    alias: int | None
    replaced_by: int | None


class SourceRow(NamedTuple):
    """How far a source was read: bytes, lines, the reader's state, and the hash of the last bytes read."""

    no: int
    session: int
    path: str
    generation: int
    kind: str
    offset: int
    line: int
    state: str
    tail: bytes
    tail_size: int
    torn: bool
    skipped: str
    read_at: int


def session_hash(harness: str, session_id: str) -> str:
    """What a tombstone keeps of a forgotten session: enough to know it again, too little to say what it was."""
    return "session:" + late.sha256(f"{harness}\n{session_id}".encode("utf-8", "surrogatepass")).hex()


def key_number(key: str) -> int:
    """A link key (16 hex digits) as the signed number that SQLite stores; 0 for none."""
    if not key:
        return 0
    number = int(key, 16)
    return number - (1 << 64) if number >= 1 << 63 else number


def key_text(number: int) -> str:
    """The link key that ``key_number`` stored."""
    return f"{number & ((1 << 64) - 1):016x}" if number else ""


def stored_session(row: Any) -> StoredSession:
    (no, harness, id_, handle, workspace, cwd, transcript, parent, parent_seq, started, name, role, model) = row[:13]
    window, last_seq, updated, parent_id, rewinds = row[13:]
    point = (parent, parent_seq if parent_seq is not None else -1) if parent else None
    session = Session(harness, id_, handle, workspace, cwd, transcript, point, started, name, role, model, window)
    return StoredSession(no, session, last_seq, updated, parent_id, rewinds)


def source_row(row: Any) -> SourceRow:
    no, session, path, generation, kind, offset, line, state, tail, tail_size, torn, skipped, read_at = row
    return SourceRow(
        no, session, path, generation, kind, offset, line, state, tail or b"", tail_size, bool(torn), skipped, read_at
    )


def entry_row(row: Any) -> EntryRow:
    (no, source, segment, start, size, sha, block, line, kind, speaker, at, tokens) = row[:12]
    active, copied, alias, replaced = row[12:]
    return EntryRow(
        no,
        no & ((1 << SEQ_BITS) - 1),
        source,
        segment,
        start,
        size,
        sha,
        block,
        line,
        KINDS[kind],
        SPEAKERS[speaker],
        at,
        tokens,
        bool(active),
        bool(copied),
        alias,
        replaced,
    )
