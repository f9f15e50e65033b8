"""Sessions as lines of a bundle: what another store needs to hold them as this one does, in names that hold everywhere.

Invariants: a session is (harness, its id there); an entry is its number within its own session, and elsewhere what
``archive_import`` knows it by; words leave masked unless raw bytes were asked for; the same store gives the same lines.
"""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from obsmem.core.errors import NotFound, StoreError
from obsmem.core.ids import is_entry_id, parse_entry_id
from obsmem.store.archive import StoredSession
from obsmem.store.archive_import import Identity, identities
from obsmem.store.archive_raw import id_of, side_source
from obsmem.store.archive_rows import EntryRow
from obsmem.store.memory_import import drops_of, stretches_of
from obsmem.system.files import made_once
from obsmem.system.git_remote import alias_of
from obsmem.tasks.bundle_format import FORMAT, Line, as_text, pack
from obsmem.tasks.bundle_mask import kinds_of_secrets, mask_record
from obsmem.tasks.store import Store

STORE_ID = "store-id"


def store_id(store: Store) -> str:
    """What this store is called among others: 12 hex digits, made once."""
    made = made_once(os.path.join(store.home, STORE_ID), secrets.token_hex(6).encode("ascii") + b"\n")
    return made.decode("ascii", "replace").strip()


def export_bundle(store: Store, sessions: Iterable[StoredSession], *, raw: bool = False) -> bytes:
    """A bundle of some sessions. ``raw`` leaves secrets in."""
    return pack(_lines(store, list(sessions), raw))


def secrets_in(store: Store, sessions: Iterable[StoredSession]) -> Counter[str]:
    """Kind of secret -> how many the records of some sessions hold."""
    found: Counter[str] = Counter()
    for stored in sessions:
        for row, data in _records(store, stored):
            found.update(kinds_of_secrets(store, data.decode("utf-8", "replace")))
            side = store.archive.side(row)
            if side is not None:
                found.update(kinds_of_secrets(store, side.decode("utf-8", "replace")))
    return found


def _lines(store: Store, sessions: list[StoredSession], raw: bool) -> Iterator[Line]:
    yield {
        "line": "manifest",
        "format": FORMAT,
        "store": store_id(store),
        "masked": not raw,
        "sessions": len(sessions),
    }
    names = Names(store)
    for stored in sorted(sessions, key=lambda one: (one.session.harness, one.session.id)):
        yield from _session(store, stored, names, raw)


class Names:
    """What this store's entries are called everywhere."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._known: dict[str, tuple[StoredSession, dict[int, Identity]] | None] = {}

    def session(self, handle: str) -> tuple[StoredSession, dict[int, Identity]] | None:
        """A session with the identities of its entries; None where the archive does not have it."""
        if handle not in self._known:
            try:
                stored = self.store.archive.by_handle(handle)
                self._known[handle] = (stored, identities(self.store.archive, stored.no))
            except NotFound:
                self._known[handle] = None
        return self._known[handle]

    def reference(self, name: str) -> list[Any] | None:
        """An entry as every store names it; None where it is gone."""
        handle, seq = parse_entry_id(name)
        found = self.session(handle)
        if found is None or seq not in found[1]:
            return None
        digest, block, alike = found[1][seq]
        return [found[0].session.harness, found[0].session.id, digest.hex(), block, alike]


def _session(store: Store, stored: StoredSession, names: Names, raw: bool) -> Iterator[Line]:
    session, mask = stored.session, (lambda text: text) if raw else store.mask
    described = {
        "name": mask(session.name), "cwd": mask(session.cwd), "workspace": mask(session.workspace),
        "remote": alias_of(session.workspace), "model": session.model, "parent_id": stored.parent_id,
        "started_at": session.started_at, "window": session.window,
    }  # fmt: skip
    yield {
        "line": "session", "harness": session.harness, "id": session.id, "role": session.role, "rewinds": stored.rewinds,
        "updated_at": stored.updated_at, "parent": _parent(names, stored),
        **{name: value for name, value in described.items() if value},
    }  # fmt: skip
    yield from _record_lines(store, stored, raw)
    yield from _memory_lines(store, stored, names)


def _parent(names: Names, stored: StoredSession) -> list[Any] | None:
    if stored.session.parent is None:
        return None
    handle, seq = stored.session.parent
    found = names.session(handle)
    if found is None:
        return None
    return [found[0].session.harness, found[0].session.id, names.reference(f"{handle}.{seq}") if seq >= 0 else None]


def _records(store: Store, stored: StoredSession) -> Iterator[tuple[EntryRow, bytes]]:
    """The first entry of each record, and the record's bytes; what retention removed is passed over."""
    last = (-1, -1)
    for row in store.archive.entries(stored.no):
        if (row.segment, row.start) != last:
            last = (row.segment, row.start)
            try:
                yield row, store.archive.record(row)
            except StoreError:
                continue


def _record_lines(store: Store, stored: StoredSession, raw: bool) -> Iterator[Line]:
    known = store.archive.originals(stored.no)
    line: Line = {}
    last = (-1, -1)
    for row in store.archive.entries(stored.no):
        if (row.segment, row.start) != last:
            if line.get("entries"):
                yield line
            last, line = (row.segment, row.start), _record(store, stored, row, known, raw)
        if line:
            line["entries"].append(_entry(store, row, raw))
    if line.get("entries"):
        yield line


def _record(store: Store, stored: StoredSession, row: EntryRow, known: dict[int, bytes], raw: bool) -> Line:
    try:
        data = store.archive.record(row)
    except StoreError:
        return {}
    sent = data if raw else mask_record(store, stored.session.harness, data)
    if sent is None:
        return {}
    changed = sent != data or row.no in known
    return {
        "line": "record",
        "sha256": known.get(row.no, row.sha256).hex(),
        **as_text(sent),
        **({"masked": True} if changed else {}),
        "entries": [],
    }


def _entry(store: Store, row: EntryRow, raw: bool) -> Line:
    line: Line = {
        "seq": row.seq,
        "block": row.block,
        "kind": row.kind,
        "speaker": row.speaker,
        "at": row.at,
        "tokens": row.tokens,
    }
    if not row.active:
        line["off"] = True
    if row.copied:
        line["copied"] = True
    if row.replaced_by is not None:
        line["replaced_by"] = row.replaced_by
    try:
        side = store.archive.side(row)
    except StoreError:
        side = None
    if side is not None:
        text = side.decode("utf-8", "replace")
        line["side"] = text if raw else store.mask(text)
        if whole := _whole_id(store, row):
            line["whole"] = whole
    return line


def _whole_id(store: Store, row: EntryRow) -> str:
    """The id of an entry's whole output, where that stands in the place of what its record has; '' else."""
    source = side_source(store.archive, row)
    return "" if source is None else id_of(source)


def _memory_lines(store: Store, stored: StoredSession, names: Names) -> Iterator[Line]:
    handle = stored.session.handle
    for one in store.memory.notes(handle):
        note = one.note
        cited = [_cited(names, handle, name) for name in note.entry_ids]
        if None in cited:
            continue  # what it stands on was forgotten
        yield {
            "line": "note", "id": note.id, "text": store.mask(note.text), "at": note.at, "relevance": note.relevance,
            "entries": cited, "evidence": note.evidence, "grounding": note.grounding, "tokens": note.tokens,
            "missing": [store.mask(text) for text in note.missing], "recorded_at": one.recorded_at,
            "first": one.first_seq, "last": one.last_seq,
        }  # fmt: skip
    for made in store.memory.reflections(handle):
        yield {
            "line": "reflection", "id": made.reflection.id, "text": store.mask(made.reflection.text),
            "notes": list(made.reflection.note_ids), "tokens": made.reflection.tokens, "recorded_at": made.recorded_at,
            "up_to": made.up_to,
        }  # fmt: skip
    for drop, up_to in drops_of(store.memory, handle):
        yield {
            "line": "drop",
            "note": drop.note_ids[0],
            "at": drop.at,
            "why": drop.why,
            "up_to": min(up_to, (1 << 31) - 1),
        }
    for stretch in stretches_of(store.memory, handle):
        yield {"line": "stretch", **stretch._asdict()}
    yield from _pin_lines(store, stored, names)


def _cited(names: Names, handle: str, name: str) -> int | list[Any] | None:
    of, seq = parse_entry_id(name)
    found = names.session(of)
    if of == handle:
        return seq if found is not None and seq in found[1] else None
    return names.reference(name)


def _pin_lines(store: Store, stored: StoredSession, names: Names) -> Iterator[Line]:
    """The pins that were made in a session."""
    for one in store.memory.all_pins():
        if one.session != stored.session.handle:
            continue
        source: Any = one.pin.source
        if is_entry_id(source):
            source = _cited(names, one.session, source)
        yield {
            "line": "pin", "text": store.mask(one.pin.text), "scope": one.pin.scope, "at": one.pin.at,
            "evidence": one.pin.evidence, **({"source": source} if source not in ("", None) else {}),
            **({"workspace": alias_of(one.workspace) or one.workspace} if one.workspace else {}),
        }  # fmt: skip
