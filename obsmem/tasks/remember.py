"""What is visible of a session now: its own notes folded, and for a fork those of its parent up to the fork point.

Invariant: what a parent reflects, drops or rewinds after the fork point does not touch the child: where the child
copied an entry, its own copy says whether that is on its live path.
"""

from __future__ import annotations

from collections.abc import Mapping

from obsmem.core.ids import parse_entry_id
from obsmem.core.model import Drop, Memory, Reflection
from obsmem.memory.fold import Recorded, fold
from obsmem.store.archive import StoredSession
from obsmem.store.archive_schema import row_number
from obsmem.tasks.store import Store

DEEPEST_LINEAGE = 20


def remember(store: Store, stored: StoredSession, up_to: int | None = None) -> Memory:
    """Fold everything recorded for a session (on stretches up to seq ``up_to``) into its visible memory."""
    notes: list[Recorded] = []
    reflections: list[Reflection] = []
    drops: list[Drop] = []
    live: set[tuple[str, int]] = set()
    current, bound = stored, up_to
    copies = store.archive.copies_of(stored.no) if stored.session.parent is not None else {}
    for _ in range(DEEPEST_LINEAGE):
        handle = current.session.handle
        own = store.memory.notes(handle, bound)
        notes = [Recorded(one.note, one.recorded_at) for one in own] + notes
        reflections = [one.reflection for one in store.memory.reflections(handle, bound)] + reflections
        drops = [one.drop for one in store.memory.drops(handle, bound)] + drops
        cited = {parse_entry_id(name)[1] for one in own for name in one.note.entry_ids}
        live.update((handle, seq) for seq in _live(store, current, cited, copies))
        parent = current.session.parent
        if parent is None or parent[1] < 0 or current.session.role != "main":
            break
        current, bound = store.archive.by_handle(parent[0]), parent[1]
    pins = store.memory.pins(stored.session.handle, stored.session.workspace)
    return fold(notes, reflections, drops, pins, lambda name: parse_entry_id(name) in live)


def _live(store: Store, owner: StoredSession, seqs: set[int], copies: Mapping[int, bool]) -> set[int]:
    """Which of these entries of a session are on the live path: its own, or that of the session that copied them."""
    numbers = {row_number(owner.no, seq): seq for seq in seqs}
    found = {seq for number, seq in numbers.items() if copies.get(number)}
    ordered = sorted(numbers.keys() - copies.keys())
    return found | {numbers[number] for number in store.archive.active_among(ordered)}
