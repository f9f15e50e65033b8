"""What a report tells of notes and reflections: where each came from, what it stands on, what became of it.

Invariant: every note that was ever made in the session is there, those that nobody sees any more with the reason; of the
sessions that it goes on from, those that it still sees.
"""

from __future__ import annotations

from typing import NamedTuple

from obsmem.core.ids import parse_entry_id, shorten
from obsmem.core.model import Memory, Note
from obsmem.store.archive import StoredSession
from obsmem.store.memory import StoredNote
from obsmem.tasks.store import Store

VISIBLE, DROPPED, HIDDEN = "visible", "dropped", "hidden"


class Kept(NamedTuple):
    """A note. ``seq`` is the last of the session's own entries that it cites (-1: none), ``state`` visible, dropped or hidden with
    ``why`` and, of a dropped one, ``dropped_at``; ``worker`` brought it at ``recorded_at`` ('' and 0 where that is not known);
    ``borne`` are the reflections that stand on it. Times in milliseconds."""

    note: Note
    short: str
    session: str
    seq: int
    state: str
    why: str = ""
    dropped_at: int = 0
    worker: str = ""
    recorded_at: int = 0
    borne: tuple[str, ...] = ()


class Lasting(NamedTuple):
    """A reflection with the notes that it stands on, of each its short id and whether it is known here."""

    id: str
    short: str
    text: str
    at: int
    tokens: int
    state: str
    why: str
    supports: tuple[tuple[str, str, bool], ...]


def kept_notes(store: Store, stored: StoredSession, memory: Memory) -> tuple[Kept, ...]:
    """The notes of a session, in the order of what they cite."""
    handle = stored.session.handle
    own = store.memory.notes(handle)
    ids = {one.note.id for one in own}
    inherited = store.memory.notes_by_id(note.id for note in memory.notes if note.id not in ids)
    tombstones = {id_: one.drop for one in store.memory.drops(handle) for id_ in one.drop.note_ids}
    workers = _workers(store, {handle, *(one.session for one in inherited)})
    borne: dict[str, list[str]] = {}
    for reflection in memory.reflections:
        for id_ in reflection.note_ids:
            borne.setdefault(id_, []).append(reflection.id)
    short = shorten(one.note.id for one in (*own, *inherited))
    visible = {note.id for note in memory.notes}
    found = []
    for one in (*inherited, *own):
        id_ = one.note.id
        hidden = memory.hidden.get(id_, "" if id_ in visible else DROPPED)
        state = VISIBLE if not hidden else DROPPED if hidden == DROPPED else HIDDEN
        drop = tombstones.get(id_) if state == DROPPED else None
        found.append(
            Kept(
                one.note,
                short[id_],
                one.session,
                _seq(one, handle),
                state,
                drop.why if drop else hidden,
                drop.at if drop else 0,
                workers.get((one.session, one.first_seq, one.last_seq), ""),
                one.recorded_at,
                tuple(borne.get(id_, ())),
            )
        )
    return tuple(sorted(found, key=lambda one: one.seq))


def _seq(one: StoredNote, handle: str) -> int:
    return max((seq for of, seq in map(parse_entry_id, one.note.entry_ids) if of == handle), default=-1)


def _workers(store: Store, handles: set[str]) -> dict[tuple[str, int, int], str]:
    """Who looked at each stretch of some sessions last and brought something."""
    return {
        (call.session, call.first_seq, call.last_seq): call.worker
        for handle in sorted(handles)
        for call in store.memory.calls(handle)
        if call.task in ("observe", "note") and call.outcome in ("ok", "empty")
    }


def lasting(store: Store, stored: StoredSession, memory: Memory, notes: tuple[Kept, ...]) -> tuple[Lasting, ...]:
    """The reflections of a session, oldest first; those that were replaced, too."""
    handle = stored.session.handle
    known = {one.note.id: one.short for one in notes}
    visible = {one.id: one for one in memory.reflections}
    own = {one.reflection.id: one for one in store.memory.reflections(handle)}
    tombstones = {id_: one.drop.why for one in store.memory.drops(handle) for id_ in one.drop.note_ids}
    reflections = {**{id_: one.reflection for id_, one in own.items()}, **visible}
    short = shorten(reflections)
    return tuple(
        Lasting(
            id_, short[id_], one.text, own[id_].recorded_at if id_ in own else 0, one.tokens,
            VISIBLE if id_ in visible else DROPPED if id_ in tombstones else HIDDEN,
            "" if id_ in visible else tombstones.get(id_, "off the live path, or the same words twice"),
            tuple((name, known.get(name, name[:7]), name in known) for name in one.note_ids),
        )
        for id_, one in reflections.items()
    )  # fmt: skip
