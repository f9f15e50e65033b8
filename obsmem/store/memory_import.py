"""What another store observed: notes, reflections, tombstones, coverage and pins that come in beside this store's own.

Invariants: all of one session comes in one transaction, and coming twice changes nothing; nothing of this store's own is
taken away; stretches and gaps still never overlap, and what was not observed before a stretch that comes in is a gap.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from obsmem.core.ids import parse_entry_id
from obsmem.core.model import Drop, Note, Reflection
from obsmem.store.memory import MemoryStore, StoredNote, StoredReflection, WorkerCall
from obsmem.store.memory_pins import StoredPin
from obsmem.store.schema import transaction

ELSEWHERE = " elsewhere"  # stands behind the worker's name of a stretch that another store observed
UNOBSERVED = "not observed before later entries came from another store"


class Stretched(NamedTuple):
    """A stretch of a session: covered by ``worker``, or, where that is '', a gap for the ``reason``."""

    first: int
    last: int
    worker: str
    reason: str


class Brought(NamedTuple):
    """What one session brings, in names of this store."""

    handle: str
    notes: Sequence[StoredNote]
    reflections: Sequence[StoredReflection]
    drops: Sequence[tuple[Drop, int]]
    stretches: Sequence[Stretched]
    pins: Sequence[StoredPin]


def take_memory(memory: MemoryStore, brought: Brought) -> int:
    """Write what is not there yet; returns how many rows that were."""
    with transaction(memory.connection):
        return _Writing(memory.connection, brought.handle).write(brought)


def drops_of(memory: MemoryStore, session: str) -> list[tuple[Drop, int]]:
    """The tombstones of a session with the seq up to which notes existed then."""
    return [(one.drop, one.up_to) for one in memory.drops(session)]


def stretches_of(memory: MemoryStore, session: str) -> list[Stretched]:
    """Stretches and gaps of a session, in order."""
    workers = memory.workers_of(session)
    found = [
        Stretched(one.first_seq, one.last_seq, workers.get(one.call, "?"), "") for one in memory.stretches(session)
    ]
    found += [Stretched(one.first_seq, one.last_seq, "", one.reason) for one in memory.gaps(session)]
    return sorted(found)


class _Writing:
    """One transaction's work."""

    def __init__(self, connection: sqlite3.Connection, handle: str) -> None:
        self.run = connection.execute
        self.handle = handle
        self.calls: dict[tuple[str, str], int] = {}

    def write(self, brought: Brought) -> int:
        count = sum(self._note(one) for one in brought.notes)
        count += sum(self._reflection(one) for one in brought.reflections)
        count += sum(self._drop(drop, up_to) for drop, up_to in brought.drops)
        count += sum(self._stretch(one) for one in brought.stretches)
        count += sum(self._pin(one) for one in brought.pins)
        return count

    def _call(self, task: str, worker: str) -> int:
        """The call that stands for those of another store. Its time is 0, so that no day's spending counts it."""
        if (task, worker) not in self.calls:
            call = WorkerCall(self.handle, task, worker, 0, -1, -1, "imported")
            added = self.run(
                "INSERT INTO worker_calls(session, task, worker, at, first_seq, last_seq, outcome, items, rejected,"
                " tokens_in, tokens_out, ms, prompt) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
                call,
            )
            self.calls[task, worker] = int(added.lastrowid or 0)
        return self.calls[task, worker]

    def _note(self, one: StoredNote) -> int:
        note: Note = one.note
        known = self.run("SELECT recorded_at FROM notes WHERE id=?", (note.id,)).fetchone()
        if known is not None:
            if known[0] < one.recorded_at:
                self.run("UPDATE notes SET recorded_at=? WHERE id=?", (one.recorded_at, note.id))
            return int(known[0] < one.recorded_at)
        self.run(
            "INSERT INTO notes(id, session, text, at, relevance, evidence, grounding, missing, tokens, recorded_at,"
            " first_seq, last_seq, call) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (note.id, self.handle, note.text, note.at, note.relevance, note.evidence, note.grounding,
             json.dumps(note.missing), note.tokens, one.recorded_at, one.first_seq, one.last_seq,
             self._call("observe", ELSEWHERE.strip())),
        )  # fmt: skip
        for position, name in enumerate(note.entry_ids):
            self.run("INSERT INTO note_entries VALUES(?,?,?,?)", (note.id, position, *parse_entry_id(name)))
        return 1

    def _reflection(self, one: StoredReflection) -> int:
        made: Reflection = one.reflection
        added = self.run(
            "INSERT OR IGNORE INTO reflections(id, session, text, tokens, recorded_at, up_to, call) VALUES(?,?,?,?,?,?,?)",
            (made.id, self.handle, made.text, made.tokens, one.recorded_at, one.up_to, 0),
        ).rowcount
        if added:
            for position, note in enumerate(made.note_ids):
                self.run("INSERT INTO reflection_notes VALUES(?,?,?)", (made.id, position, note))
        return added

    def _drop(self, drop: Drop, up_to: int) -> int:
        return self.run(
            "INSERT INTO drops(session, note, at, why, up_to, call) SELECT ?1,?2,?3,?4,?5,0 WHERE NOT EXISTS"
            " (SELECT 1 FROM drops WHERE session=?1 AND note=?2 AND at=?3 AND why=?4)",
            (self.handle, drop.note_ids[0], drop.at, drop.why, up_to),
        ).rowcount

    def _stretch(self, one: Stretched) -> int:
        """Cover what of a stretch is still free, after a gap for what lies before it."""
        count = 0
        for first, last in self._free(one.first, one.last):
            before = self._free(0, first - 1)
            for low, high in before:
                self._gap(low, high, UNOBSERVED)
            if one.worker:
                worker = one.worker if one.worker.endswith(ELSEWHERE) else one.worker + ELSEWHERE
                self.run(
                    "INSERT INTO coverage VALUES(?,?,?,?,'')", (self.handle, first, last, self._call("observe", worker))
                )
            else:
                self._gap(first, last, one.reason)
            count += 1
        return count

    def _gap(self, first: int, last: int, reason: str) -> None:
        self.run("INSERT INTO gaps VALUES(?,?,?,?,?)", (self.handle, first, last, reason, int(time.time() * 1000)))

    def _free(self, first: int, last: int) -> list[tuple[int, int]]:
        """The parts of a range that are neither covered nor a gap."""
        taken: Iterable[tuple[int, int]] = self.run(
            "SELECT first_seq, last_seq FROM coverage WHERE session=?1 AND last_seq>=?2 AND first_seq<=?3"
            " UNION SELECT first_seq, last_seq FROM gaps WHERE session=?1 AND last_seq>=?2 AND first_seq<=?3"
            " ORDER BY first_seq",
            (self.handle, first, last),
        ).fetchall()
        found = []
        for low, high in taken:
            if first < low:
                found.append((first, low - 1))
            first = max(first, high + 1)
        return [*found, (first, last)] if first <= last else found

    def _pin(self, one: StoredPin) -> int:
        return self.run(
            "INSERT OR IGNORE INTO pins(id, text, scope, at, source, evidence, session, workspace) VALUES(?,?,?,?,?,?,?,?)",
            (*one.pin, one.session, one.workspace),
        ).rowcount
