"""Which of some entries and notes hold words of a human that later ones took back, or seem to.

Invariant: the marks are a function of the cards, made when these are; where they cannot be had nothing is marked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from obsmem.core.finds import Hit
from obsmem.core.ids import entry_id, parse_entry_id
from obsmem.store.archive_rows import StoredSession
from obsmem.store.index import LATER
from obsmem.store.schema import Damaged
from obsmem.tasks.store import Store


def outdated_entries(store: Store, names: Iterable[str]) -> dict[str, str]:
    """Of these ids of entries those whose words are not the last on their matter, each with the mark that says so."""
    found: dict[str, str] = {}
    wanted = set(names)
    for handle in {parse_entry_id(name)[0] for name in wanted}:
        found.update(_of_session(store, store.archive.by_handle(handle)))
    return {name: mark for name, mark in found.items() if name in wanted}


def mark_outdated(store: Store, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The same hits, each of a human's words, or of a note of them, with the mark that it bears."""
    spoken = [hit for hit in hits if hit.speaker == "human"]
    said: dict[str, tuple[str, ...]] = {hit.id: (hit.id,) for hit in spoken if hit.kind != "note"}
    notes = store.memory.notes_by_id(hit.id for hit in spoken if hit.kind == "note")
    said.update({one.note.id: one.note.entry_ids for one in notes})
    marks = outdated_entries(store, (name for names in said.values() for name in names))
    if not marks:
        return tuple(hits)
    later = {id_: next((marks[name] for name in names if name in marks), "") for id_, names in said.items()}
    return tuple(hit._replace(later=later.get(hit.id, "")) for hit in hits)


def _of_session(store: Store, stored: StoredSession) -> dict[str, str]:
    try:
        _, marks = store.index.reach(stored.no, LATER)
    except (sqlite3.Error, Damaged):  # it is rebuilt in the background
        return {}
    return {entry_id(stored.session.handle, int(seq)): store.mask(mark) for seq, mark in marks.items()}


def note_outdated(store: Store, stored: StoredSession, up_to: int) -> None:
    """Keep the marks of a session whose cards have come to ``up_to``: whoever searches has no time to compare words."""
    from obsmem.core.fold import Fold  # heavy, and no search needs them
    from obsmem.memory.outdated import outdated

    folding = Fold(stored.session.cwd)
    for fact in store.index.facts_of_kind(stored.no, "instruction"):
        folding.take(fact)
    said = folding.state().instructions
    marks = {str(one.seq): mark for one in said if (mark := outdated(one, stored.session.handle))}
    store.index.move_reach(stored.no, LATER, up_to, marks)
