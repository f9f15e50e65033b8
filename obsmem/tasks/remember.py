"""What is visible of a session now: its own notes folded, and for a fork those of its parent up to the fork point.

Invariant: what a parent reflects or drops after the fork point does not touch the child.
"""

from __future__ import annotations

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
    for _ in range(DEEPEST_LINEAGE):
        handle = current.session.handle
        own = store.memory.notes(handle, bound)
        notes = [Recorded(one.note, one.recorded_at) for one in own] + notes
        reflections = [one.reflection for one in store.memory.reflections(handle, bound)] + reflections
        drops = [one.drop for one in store.memory.drops(handle, bound)] + drops
        live.update((handle, seq) for seq in _live(store, current, {p for one in own for p in one.note.entry_ids}))
        parent = current.session.parent
        if parent is None or parent[1] < 0 or current.session.role != "main":
            break
        current, bound = store.archive.by_handle(parent[0]), parent[1]
    pins = store.memory.pins(stored.session.handle, stored.session.workspace)
    return fold(notes, reflections, drops, pins, lambda name: parse_entry_id(name) in live)


def _live(store: Store, stored: StoredSession, names: set[str]) -> set[int]:
    """Which of the cited entries of a session are on its live path."""
    seqs = {seq for handle, seq in map(parse_entry_id, names) if handle == stored.session.handle}
    found: set[int] = set()
    ordered = sorted(seqs)
    for start in range(0, len(ordered), 500):
        part = ordered[start : start + 500]
        marks = ",".join("?" * len(part))
        numbers = [row_number(stored.no, seq) for seq in part]
        rows = store.archive.connection.execute(f"SELECT no FROM entries WHERE active=1 AND no IN ({marks})", numbers)
        found.update(row[0] - row_number(stored.no, 0) for row in rows)
    return found
