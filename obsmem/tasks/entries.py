"""Entries with their text: rows of the archive joined with what their record's bytes say.

Invariant: the text comes from the archived bytes alone, so it is the same after the transcript is gone; who spoke and
what kind it is come from the row, where context had its say when the record was first read.
"""

from __future__ import annotations

from collections.abc import Iterable

from obsmem.core.errors import NotFound, StoreError
from obsmem.core.ids import parse_entry_id
from obsmem.core.model import Entry
from obsmem.core.tokens import estimate
from obsmem.harnesses import load
from obsmem.store.archive_raw import RAW, raw_bytes, side_sources
from obsmem.store.archive_rows import EntryRow, SourceRow, StoredSession
from obsmem.store.archive_schema import seq_of
from obsmem.tasks.store import Store


def read_entries(
    store: Store,
    stored: StoredSession,
    rows: Iterable[EntryRow],
    *,
    places: bool = False,
    lost: bool = False,
    scattered: bool = False,
) -> list[Entry]:
    """Give entry rows of one session their text. With ``places`` each also says where its record stood; with ``lost``
    those that cannot be had are left out. ``scattered`` says that they stand far from each other. Raises StoreError for what
    cannot be had otherwise."""
    module = load(stored.session.harness)
    rows = list(rows)
    sides = side_sources(store.archive, rows)
    entries: list[Entry] = []
    parsed: tuple[tuple[int, int], list[Entry]] = ((-1, -1), [])
    for row in rows:
        record = (row.segment, row.start)
        if parsed[0] != record:
            try:
                parsed = (record, module.blocks(store.archive.record(row, alone=scattered)))
            except StoreError:
                if not lost:
                    raise
                parsed = (record, [])
        if row.block >= len(parsed[1]):
            if lost:
                continue
            raise StoreError(
                f"Entry {stored.session.handle}.{row.seq} cannot be read with this version of the program. "
                "Run 'observational-memory fsck'."
            )
        entry = _join(parsed[1][row.block], row)
        if row.no in sides:
            entry = _with_side(store, entry, sides[row.no])
        if places:
            entry = entry._replace(place=store.archive.place(row))
        entries.append(entry)
    return entries


def _with_side(store: Store, entry: Entry, source: SourceRow) -> Entry:
    """An entry with its whole output, where that is archived apart: beside the words of its record, or in the place of them
    where they are what was left of it. As its record has it where those bytes are gone."""
    try:
        data = raw_bytes(store.archive, source)
    except StoreError:
        return entry
    if source.kind == RAW:
        return whole_entry(entry, data)
    return entry._replace(text=f"{entry.text}\n{data.decode('utf-8', 'replace')}")


def whole_entry(entry: Entry, data: bytes) -> Entry:
    """A result with all that its tool printed, in the place of what was left of it."""
    text = data.decode("utf-8", "replace")
    return entry._replace(text=text, preface=0, tokens=estimate(text))


def _join(entry: Entry, row: EntryRow) -> Entry:
    return entry._replace(
        seq=row.seq,
        kind=row.kind,
        speaker=row.speaker,
        at=row.at,
        active=row.active,
        block=row.block,
        tokens=row.tokens,
    )


def find_entry(store: Store, name: str) -> tuple[StoredSession, EntryRow]:
    """The session and row of an entry id. A replaced version and a copy are found as they are. Raises NotFound."""
    handle, seq = parse_entry_id(name)
    stored = store.archive.by_handle(handle)
    row = store.archive.entry(stored.no, seq)
    if row is None:
        if 0 <= seq <= stored.last_seq:
            raise NotFound(f"Entry {name} is no longer in the store: it was forgotten on request.")
        raise NotFound(f"Session {handle} has no entry {seq}: its entries go from 0 to {stored.last_seq}.")
    return stored, row


def is_active(store: Store, name: str) -> bool:
    """True if an entry is on the live path of its session; a replaced version is as active as its successor."""
    try:
        _, row = find_entry(store, name)
    except NotFound:
        return False
    return row.active


def original(store: Store, row: EntryRow) -> tuple[StoredSession, EntryRow] | None:
    """The entry that a copied one repeats, in the session that it was copied from; None where it is not known."""
    if row.alias is None:
        return None
    session, seq = seq_of(row.alias)
    found = store.archive.entry(session, seq)
    return None if found is None else (store.archive.by_number(session), found)
