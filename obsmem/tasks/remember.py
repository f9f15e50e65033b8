"""What is visible of a session now: its own notes folded, and for a fork those of its parent up to the fork point.

Invariant: what a parent reflects, drops, pins or rewinds after the fork point does not touch the child: where the child
copied an entry, its own copy says whether that is on its live path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from obsmem.core.errors import NotFound
from obsmem.core.ids import parse_entry_id
from obsmem.core.model import Drop, Memory, Note, Pin, Reflection
from obsmem.memory.fold import Recorded, fold
from obsmem.store.archive import StoredSession
from obsmem.store.archive_schema import row_number
from obsmem.tasks.entries import is_active
from obsmem.tasks.store import Store

DEEPEST_LINEAGE = 20
T = TypeVar("T", Note, Reflection, Pin)


def remember(
    store: Store, stored: StoredSession, up_to: int | None = None, texts: Sequence[str] | None = None
) -> Memory:
    """Fold everything recorded for a session (on stretches up to seq ``up_to``) into its visible memory. With ``texts`` only
    notes that say one of these: whether one of them was dropped depends on no other."""
    notes: list[Recorded] = []
    reflections: list[Reflection] = []
    drops: list[Drop] = []
    live: set[tuple[str, int]] = set()
    lineage: set[str] = set()
    current, bound = stored, up_to
    copies = store.archive.copies_of(stored.no) if stored.session.parent is not None else {}
    for _ in range(DEEPEST_LINEAGE):
        handle = current.session.handle
        own = store.memory.notes(handle, bound, texts)
        notes = [Recorded(one.note, one.recorded_at) for one in own] + notes
        reflections = [one.reflection for one in store.memory.reflections(handle, bound)] + reflections
        drops = [one.drop for one in store.memory.drops(handle, bound)] + drops
        names = (parse_entry_id(name) for one in own for name in one.note.entry_ids)
        cited = {seq for of, seq in names if of == handle}
        live.update((handle, seq) for seq in _live(store, current, cited, copies))
        lineage.add(handle)
        parent = goes_on_from(store, current)
        if parent is None:
            break
        current, bound = store.archive.by_handle(parent[0]), parent[1]

    def is_live(name: str) -> bool:
        # A note by hand may cite another session, whose live path says whether the entry is on it.
        return parse_entry_id(name) in live or (parse_entry_id(name)[0] not in lineage and is_active(store, name))

    memory = fold(notes, reflections, drops, visible_pins(store, stored), is_live)
    if not store.secrets:
        return memory
    return memory._replace(
        notes=tuple(masked(store, one) for one in memory.notes),
        reflections=tuple(masked(store, one) for one in memory.reflections),
    )


def visible_pins(store: Store, stored: StoredSession) -> list[Pin]:
    """What the user fixed for a session, its workspace or everywhere, oldest first; and for the sessions that it was
    forked from, as far as that was done before it said its own first words."""
    ancestors: list[tuple[str, int]] = []
    current, until = stored, 1 << 62
    for _ in range(DEEPEST_LINEAGE):
        parent = goes_on_from(store, current)
        if parent is None:
            break
        first = next(store.archive.entries(current.no, where="copied=0 AND at>0"), None)
        until = min(until, first.at if first else until)
        ancestors.append((parent[0], until))
        current = store.archive.by_handle(parent[0])
    return [masked(store, one) for one in store.memory.pins(stored.session.handle, stored.session.workspace, ancestors)]


def masked(store: Store, one: T) -> T:
    """A record as it may be shown: an older one may hold what is known as a secret by now, or the user's pattern names."""
    return one._replace(text=store.mask(one.text))


def descendants(store: Store, handle: str) -> list[StoredSession]:
    """The sessions that inherit from one, however far down, as forks, sub-agents or successors: their blocks show its notes."""
    everybody = store.archive.sessions()
    before = {
        one.no: (*(one.session.parent or ())[:1], store.memory.predecessor(one.session.handle)) for one in everybody
    }
    found: dict[int, StoredSession] = {}
    handles = {handle}
    while new := [one for one in everybody if handles.intersection(before[one.no]) and one.no not in found]:
        found.update((one.no, one) for one in new)
        handles = {one.session.handle for one in new}
    return list(found.values())


def goes_on_from(store: Store, stored: StoredSession) -> tuple[str, int] | None:
    """(handle, seq) of the point where a session was forked from another, or took over from it; None for neither."""
    parent = stored.session.parent
    if stored.session.role != "main" or (parent is not None and parent[1] < 0):
        return None
    if parent is not None:
        return parent
    predecessor = store.memory.predecessor(stored.session.handle)
    try:
        return (predecessor, store.archive.by_handle(predecessor).last_seq) if predecessor else None
    except NotFound:  # it was forgotten
        return None


def _live(store: Store, owner: StoredSession, seqs: set[int], copies: Mapping[int, bool]) -> set[int]:
    """Which of these entries of a session are on the live path: its own, or that of the session that copied them."""
    numbers = {row_number(owner.no, seq): seq for seq in seqs}
    found = {seq for number, seq in numbers.items() if copies.get(number)}
    ordered = sorted(numbers.keys() - copies.keys())
    return found | {numbers[number] for number in store.archive.active_among(ordered)}
