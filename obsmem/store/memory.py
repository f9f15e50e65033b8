"""``memory.db``: what was observed, how far, by which worker call; reflections, drops, pins, deliveries.

Invariants: notes and the coverage of their stretch commit together; a stretch is committed only if coverage still
ends where the pass began (compare-and-swap), so an answer that comes too late is thrown away; nothing is ever edited,
dropping adds a tombstone. A covered stretch names the worker call that covered it and the hash of the entries shown.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from obsmem.core.ids import entry_id, parse_entry_id
from obsmem.core.model import Drop, Note, Reflection
from obsmem.core.tuples import NamedTuple
from obsmem.store.memory_coverage import Coverage, Stretch
from obsmem.store.memory_deliveries import Deliveries
from obsmem.store.memory_pins import Pins
from obsmem.store.memory_reductions import Reductions
from obsmem.store.memory_rotations import Rotations
from obsmem.store.memory_schema import MIGRATIONS
from obsmem.store.schema import open_database, transaction

BACKUPS_KEPT = 7


class WorkerCall(NamedTuple):
    """One request to a worker and how it ended. ``outcome``: ok | empty | late (thrown away) | failed: <error class>.
    ``prompt`` is the version of the instructions. Never holds content."""

    session: str
    task: str
    worker: str
    at: int
    first_seq: int
    last_seq: int
    outcome: str
    items: int = 0
    rejected: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    ms: int = 0
    prompt: int = 0


class StoredNote(NamedTuple):
    """A note with when it was recorded (ms) and the stretch that it came from."""

    note: Note
    session: str
    recorded_at: int
    first_seq: int
    last_seq: int


class StoredReflection(NamedTuple):
    """A reflection with when it was recorded (ms) and the seq up to which notes existed then."""

    reflection: Reflection
    session: str
    recorded_at: int
    up_to: int


class StoredDrop(NamedTuple):
    """A tombstone of one session, with the seq up to which notes existed then."""

    drop: Drop
    up_to: int


class MemoryStore(Coverage, Deliveries, Pins, Reductions, Rotations):
    """The notes of one store. One connection, used from one thread at a time."""

    def __init__(self, path: str, *, readonly: bool = False) -> None:
        self.path = path
        self.connection = open_database(path, MIGRATIONS, journal="TRUNCATE", readonly=readonly)
        if not readonly:
            self.connection.execute("PRAGMA secure_delete=ON")

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    # --- coverage

    def commit_stretch(
        self,
        call: WorkerCall,
        covered_to: int,
        first: int,
        last: int,
        shown: str,
        notes: Sequence[Note],
        refuted: Mapping[str, str] = {},
    ) -> bool:
        """Write the notes of a stretch, its coverage and its call in one transaction. ``refuted`` are ids of earlier
        notes, each with that of the new note that shows it to be wrong: tombstones say so.

        ``covered_to`` is where coverage ended when the stretch was read. False, and nothing written but the call,
        if somebody else has covered further since. A gap that the stretch fills is removed, or what it fills of it.
        """
        with transaction(self.connection):
            now = self._now()
            gap = self.connection.execute(
                "SELECT last_seq, reason, at FROM gaps WHERE session=? AND first_seq=? AND last_seq>=?",
                (call.session, first, last),
            ).fetchone()
            current = self.covered_to(call.session) == covered_to or gap is not None
            number = self._insert_call(call if current else call._replace(outcome="late", items=0))
            if not current:
                return False
            if gap is not None:
                self.connection.execute("DELETE FROM gaps WHERE session=? AND first_seq=?", (call.session, first))
                if gap[0] > last:
                    self.connection.execute("INSERT INTO gaps VALUES(?,?,?,?,?)", (call.session, last + 1, *gap))
            self.connection.execute(
                "INSERT INTO coverage VALUES(?,?,?,?,?)", (call.session, first, last, number, shown)
            )
            for note in notes:
                self._insert_note(note, call.session, now, first, last, number)
            self._insert_drops(call.session, {id_: f"refuted by {by}" for id_, by in refuted.items()}, last, number)
        return True

    def replace_stretch(self, call: WorkerCall, stretch: Stretch, notes: Sequence[Note]) -> bool:
        """Put the notes of a new call in the place of those that a stretch had, which get a tombstone; coverage stays.
        False, and nothing written but the call, if somebody else replaced them meanwhile."""
        with transaction(self.connection):
            current = self.connection.execute(
                "SELECT 1 FROM coverage WHERE session=? AND first_seq=? AND last_seq=? AND call=?",
                (call.session, stretch.first_seq, stretch.last_seq, stretch.call),
            ).fetchone()
            number = self._insert_call(call if current else call._replace(outcome="late", items=0))
            if not current:
                return False
            reasons = dict.fromkeys(sorted(self.notes_of(stretch.call)), f"observed again by {call.worker}")
            self._insert_drops(call.session, reasons, stretch.last_seq, number)
            now = self._now()
            for note in notes:
                self._insert_note(note, call.session, now, stretch.first_seq, stretch.last_seq, number)
            self.connection.execute(
                "UPDATE coverage SET call=? WHERE session=? AND first_seq=?", (number, call.session, stretch.first_seq)
            )
        return True

    def add_note(self, call: WorkerCall, note: Note) -> None:
        """Write a note that no observer brought, with its call; coverage stays as it is."""
        with transaction(self.connection):
            number = self._insert_call(call)
            self._insert_note(note, call.session, self._now(), call.first_seq, call.last_seq, number)

    def count_notes(self, sessions: Iterable[str]) -> int:
        """How many notes some sessions have, dropped ones too."""
        run = self.connection.execute
        return sum(int(run("SELECT count(*) FROM notes WHERE session=?", (one,)).fetchone()[0]) for one in sessions)

    def notes_of(self, call: int) -> frozenset[str]:
        """The ids of the notes that a call brought."""
        return frozenset(id_ for (id_,) in self.connection.execute("SELECT id FROM notes WHERE call=?", (call,)))

    # --- worker calls and progress

    def record_call(self, call: WorkerCall) -> int:
        """Write one row about a worker call; returns its number."""
        with transaction(self.connection):
            return self._insert_call(call)

    def _insert_call(self, call: WorkerCall) -> int:
        cursor = self.connection.execute(
            "INSERT INTO worker_calls(session, task, worker, at, first_seq, last_seq, outcome, items, rejected, tokens_in,"
            " tokens_out, ms, prompt) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
            call,
        )
        return int(cursor.lastrowid or 0)

    def calls(self, session: str, task: str = "") -> list[WorkerCall]:
        """The worker calls of a session, oldest first."""
        rows = self.connection.execute(
            "SELECT session, task, worker, at, first_seq, last_seq, outcome, items, rejected, tokens_in, tokens_out, ms,"
            " prompt FROM worker_calls WHERE session=? AND (?='' OR task=?) ORDER BY no",
            (session, task, task),
        )
        return [WorkerCall(*row) for row in rows]

    def progress(self, session: str, task: str) -> int:
        """How far a pass has examined (seq of the newest note's stretch it saw); -1 where it never ran."""
        row = self.connection.execute("SELECT seq FROM progress WHERE session=? AND task=?", (session, task)).fetchone()
        return -1 if row is None else int(row[0])

    def set_progress(self, session: str, task: str, seq: int) -> None:
        """Note how far a session was looked through for something."""
        with transaction(self.connection):
            self._set_progress(session, task, seq)

    def _set_progress(self, session: str, task: str, seq: int) -> None:
        self.connection.execute("INSERT OR REPLACE INTO progress VALUES(?,?,?)", (session, task, seq))

    # --- notes, reflections, drops

    def _insert_note(self, note: Note, session: str, now: int, first: int, last: int, call: int) -> None:
        added = self.connection.execute(
            "INSERT INTO notes(id, session, text, at, relevance, evidence, grounding, missing, tokens, recorded_at,"
            " first_seq, last_seq, call) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(id) DO NOTHING",
            (note.id, session, note.text, note.at, note.relevance, note.evidence, note.grounding,
             json.dumps(note.missing), note.tokens, now, first, last, call),
        ).rowcount  # fmt: skip
        if not added:
            # The same note again: it becomes visible again if it was dropped before.
            self.connection.execute("UPDATE notes SET recorded_at=? WHERE id=?", (now, note.id))
            return
        rows = [(note.id, position, *parse_entry_id(name)) for position, name in enumerate(note.entry_ids)]
        self.connection.executemany("INSERT INTO note_entries VALUES(?,?,?,?)", rows)

    def notes(self, session: str, up_to: int | None = None, texts: Sequence[str] | None = None) -> list[StoredNote]:
        """All notes of a session in the order of their stretches, dropped ones too; ``up_to`` bounds what they cite, and
        ``texts`` leaves out those that say something else."""
        said = "" if texts is None else " AND text IN (SELECT value FROM json_each(?))"
        rows = self.connection.execute(
            f"{_NOTE} WHERE session=?{said} AND NOT EXISTS (SELECT 1 FROM note_entries e WHERE e.note=notes.id"
            " AND e.session=notes.session AND e.seq>?) ORDER BY first_seq, no",
            (session, *([] if texts is None else [json.dumps(texts)]), up_to if up_to is not None else 1 << 62),
        ).fetchall()
        return self._stored_notes(rows)

    def find_notes(self, prefix: str) -> list[StoredNote]:
        """All notes of any session whose id begins with ``prefix``."""
        return self._stored_notes(
            self.connection.execute(f"{_NOTE} WHERE id GLOB ?||'*' ORDER BY no", (prefix,)).fetchall()
        )

    def notes_by_id(self, ids: Iterable[str]) -> list[StoredNote]:
        """The notes with these ids, in the given order; unknown ids are left out."""
        wanted = list(ids)
        rows = self.connection.execute(f"{_NOTE} WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(wanted),))
        found = {row[0]: row for row in rows}
        return self._stored_notes([found[id_] for id_ in wanted if id_ in found])

    def _stored_notes(self, rows: list[Any]) -> list[StoredNote]:
        entries: dict[str, list[str]] = {}
        ids = [row[0] for row in rows]
        for start in range(0, len(ids), 500):
            part = ids[start : start + 500]
            marks = ",".join("?" * len(part))
            for note, session, seq in self.connection.execute(
                f"SELECT note, session, seq FROM note_entries WHERE note IN ({marks}) ORDER BY note, position", part
            ):
                entries.setdefault(note, []).append(entry_id(session, seq))
        stored = []
        for id_, session, text, at, relevance, evidence, grounding, missing, tokens, recorded, first, last in rows:
            note = Note(id_, text, at, relevance, tuple(entries.get(id_, ())), evidence, grounding, tokens,
                        tuple(json.loads(missing)) if missing != "[]" else ())  # fmt: skip
            stored.append(StoredNote(note, session, recorded, first, last))
        return stored

    def commit_reflections(
        self,
        call: WorkerCall,
        reflections: Sequence[Reflection],
        up_to: int,
        *,
        expected: int | None = None,
        replaced: Mapping[str, str] = {},
    ) -> bool:
        """Write reflections and how far the reflector examined, in one transaction. An empty list advances it too.
        ``replaced`` are ids of earlier reflections, each with that of the new one that takes its place.

        False, and only the call written, if the reflector has examined further than ``expected`` since.
        """
        now = int(time.time() * 1000)
        with transaction(self.connection):
            if expected is not None and self.progress(call.session, "reflect") != expected:
                self._insert_call(call._replace(outcome="late", items=0))
                return False
            number = self._insert_call(call)
            for reflection in reflections:
                added = self.connection.execute(
                    "INSERT OR IGNORE INTO reflections(id, session, text, tokens, recorded_at, up_to, call)"
                    " VALUES(?,?,?,?,?,?,?)",
                    (reflection.id, call.session, reflection.text, reflection.tokens, now, up_to, number),
                ).rowcount
                if added:
                    self.connection.executemany(
                        "INSERT INTO reflection_notes VALUES(?,?,?)",
                        [(reflection.id, position, note) for position, note in enumerate(reflection.note_ids)],
                    )
            self._insert_drops(call.session, {id_: f"replaced by {by}" for id_, by in replaced.items()}, up_to, number)
            self._set_progress(call.session, "reflect", up_to)
        return True

    def reflections(self, session: str, up_to: int | None = None) -> list[StoredReflection]:
        """All reflections of a session, oldest first."""
        return self._stored_reflections(
            "WHERE session=? AND up_to<=? ORDER BY no", (session, up_to if up_to is not None else 1 << 62)
        )

    def find_reflections(self, prefix: str) -> list[StoredReflection]:
        """All reflections of any session whose id begins with ``prefix``."""
        return self._stored_reflections("WHERE id GLOB ?||'*' ORDER BY no", (prefix,))

    def _stored_reflections(self, where: str, values: tuple[Any, ...]) -> list[StoredReflection]:
        stored = []
        for id_, session, text, tokens, recorded, up_to in self.connection.execute(
            f"SELECT id, session, text, tokens, recorded_at, up_to FROM reflections {where}", values
        ).fetchall():
            rows = self.connection.execute(
                "SELECT note FROM reflection_notes WHERE reflection=? ORDER BY position", (id_,)
            )
            reflection = Reflection(id_, text, tuple(row[0] for row in rows), tokens)
            stored.append(StoredReflection(reflection, session, recorded, up_to))
        return stored

    def commit_drops(self, call: WorkerCall, note_ids: Sequence[str], why: str, up_to: int) -> None:
        """Add tombstones, and how far the dropper examined, in one transaction."""
        with transaction(self.connection):
            number = self._insert_call(call)
            self._insert_drops(call.session, dict.fromkeys(note_ids, why), up_to, number)
            self._set_progress(call.session, "drop", up_to)

    def _insert_drops(self, session: str, reasons: Mapping[str, str], up_to: int, call: int) -> None:
        recorded = (self.connection.execute("SELECT recorded_at FROM notes WHERE id=?", (id_,)) for id_ in reasons)
        now = max([self._now(), *(at for cursor in recorded for (at,) in cursor)])
        self.connection.executemany(
            "INSERT INTO drops(session, note, at, why, up_to, call) VALUES(?,?,?,?,?,?)",
            [(session, id_, now, why, up_to, call) for id_, why in reasons.items()],
        )

    def _now(self) -> int:
        """Milliseconds since 1970, but always after the last tombstone: what is noted after it shows, whatever the clock."""
        last = self.connection.execute("SELECT at FROM drops ORDER BY no DESC LIMIT 1").fetchone()
        return max(int(time.time() * 1000), 0 if last is None else last[0] + 1)

    def drops(self, session: str, up_to: int | None = None) -> list[StoredDrop]:
        """All tombstones of a session, oldest first, one note each."""
        rows = self.connection.execute(
            "SELECT note, at, why, up_to FROM drops WHERE session=? AND up_to<=? ORDER BY no",
            (session, up_to if up_to is not None else 1 << 62),
        )
        return [StoredDrop(Drop((note,), at, why), seq) for note, at, why, seq in rows]

    # --- care

    def back_up(self, folder: str, *, now: float | None = None) -> str:
        """Copy the database into ``folder`` with SQLite's backup call, at most once a day; keep the newest seven.
        Returns the path of today's copy."""
        os.makedirs(folder, mode=0o700, exist_ok=True)
        name = time.strftime("memory-%Y%m%d.db", time.localtime(now))
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            temporary = f"{path}.{os.getpid()}.tmp"
            os.close(os.open(temporary, os.O_CREAT | os.O_WRONLY, 0o600))
            target = sqlite3.connect(temporary)
            with target:
                self.connection.backup(target)
            target.close()
            os.replace(temporary, path)
            kept = sorted(
                entry for entry in os.listdir(folder) if entry.startswith("memory-") and entry.endswith(".db")
            )
            for old in kept[:-BACKUPS_KEPT]:
                os.unlink(os.path.join(folder, old))
        return path


_NOTE = "SELECT id, session, text, at, relevance, evidence, grounding, missing, tokens, recorded_at, first_seq, last_seq FROM notes"
