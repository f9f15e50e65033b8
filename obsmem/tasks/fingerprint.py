"""What two stores must agree on after a merge, as one hash: all that they share, in names that hold everywhere.

Counted in: each session, its entries (known by the hash of the record where it was read; kind, speaker, time), notes with
what they cite, reflections, tombstones, pins. Left out: handles and numbers, which are each store's own; what is on the live
path, which the store says that reads the transcript; how far each has observed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from obsmem.store.archive import StoredSession
from obsmem.tasks.bundle import Names
from obsmem.tasks.store import Store


def fingerprint(store: Store) -> str:
    """The hash (hex) of everything that this store shares with others."""
    names = Names(store)
    ids: dict[str, str] = {}
    facts: list[str] = []
    for stored in store.archive.sessions():
        facts += [json.dumps(fact, sort_keys=True) for fact in _facts(store, stored, names, ids)]
    return hashlib.sha256("\n".join(sorted(facts)).encode("utf-8", "surrogatepass")).hexdigest()


def _facts(store: Store, stored: StoredSession, names: Names, ids: dict[str, str]) -> Iterator[list[Any]]:
    session = [stored.session.harness, stored.session.id]
    handle = stored.session.handle
    yield ["session", *session]
    for row in store.archive.entries(stored.no):
        yield ["entry", names.reference(f"{handle}.{row.seq}"), row.kind, row.speaker, row.at]
    for one in store.memory.notes(handle):
        note = one.note
        cited = sorted((names.reference(name) or [name] for name in note.entry_ids), key=str)
        ids[note.id] = _hash([note.text, cited])
        yield ["note", session, ids[note.id], note.at, note.relevance, one.recorded_at]
    for made in store.memory.reflections(handle):
        on = sorted(ids.get(id_, id_) for id_ in made.reflection.note_ids)
        ids[made.reflection.id] = _hash([made.reflection.text, on])
        yield ["reflection", session, ids[made.reflection.id]]
    for drop in store.memory.drops(handle):
        yield ["drop", session, ids.get(drop.drop.note_ids[0], drop.drop.note_ids[0]), drop.drop.at, drop.drop.why]
    for pinned in store.memory.all_pins():
        if pinned.session == handle:
            yield ["pin", session, pinned.pin.text, pinned.pin.scope, pinned.pin.at]


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode("utf-8", "surrogatepass")).hexdigest()
