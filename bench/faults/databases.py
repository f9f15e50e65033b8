"""Transcripts that are databases: torn, locked, rewritten, with rows gone, left in the middle of a commit, grown while read.

What was archived once stays, byte for byte, by the ids that were given; what was never committed is never archived; and once
the database is whole again, what is live is what a store that saw nothing of this would hold.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.faults import transcripts
from bench.faults.disks import good_command, good_hook
from bench.faults.invariants import check
from bench.faults.kills import FIRST, THEN
from bench.faults.parts import Part
from bench.faults.place import Place
from bench.faults.process import Holder, until_quiet
from bench.faults.programs import WHOLE, RowsPlace, formats
from obsmem.harnesses import TURN_ENDS

NEVER = "ZQXNEVERCOMMITTED"
Way = Callable[[RowsPlace, random.Random], str]


def databases(short: bool, chance: random.Random) -> Part:
    """Each thing that can happen to a program's database, in both kinds of journals, with a maintainer after each."""
    part = Part("transcript that is a database, mangled")
    ways: tuple[Way, ...] = (
        _torn, _bytes, _locked, _writing, _killed_in_a_commit, _log_lost, _rewritten, _rows_deleted, _rows_emptied, _other,
        *(_as_file(way) for way in (
            transcripts._deleted, transcripts._garbage, transcripts._emptied, transcripts._folder, transcripts._pipe,
            transcripts._device, transcripts._loop,
        )),
    )  # fmt: skip
    for form in formats():
        for wal in (True, False):
            with RowsPlace(form, wal=wal) as place:
                place.grow(FIRST)
                good_command(part, f"{form.name}, read first", place.maintain())
                place.grow(THEN)
                place.keep("before")
                place.grow(WHOLE)
                place.maintain("--before-compact")
                wanted = _live(place)
                part.expect(len(wanted) > 20, form.name, f"only {len(wanted)} entries are live in an undisturbed run")
                for way in ways:
                    for _ in range(1 if short else 3):
                        place.restore("before")
                        where = f"{form.name}, {'log' if wal else 'journal'}, {way.__name__.strip('_')}"
                        _try(part, place, where, way, chance, wanted)
    return part


def _try(part: Part, place: RowsPlace, where: str, way: Way, chance: random.Random, wanted: list[Any]) -> None:
    before = transcripts._records_of(place)
    what = way(place, chance)
    where = f"{where}: {what}"
    good_command(part, f"{where}, maintain", place.maintain())
    good_command(part, f"{where}, before a compaction", place.maintain("--before-compact"))
    _turn_ends(part, place, where)
    Holder.end_all()
    transcripts._kept(part, place, where, before)
    for sentence in check(place, whole=False):
        part.fault(where, sentence)
    _start_anew(place)
    place.grow(WHOLE)
    good_command(part, f"{where}, whole again", place.maintain("--before-compact"))
    for sentence in check(place, whole=False):
        part.fault(f"{where}, whole again", sentence)
    transcripts._kept(part, place, f"{where}, whole again", before)
    found = _live(place)
    part.expect(found == wanted, f"{where}, whole again", f"other entries are live: {_difference(found, wanted)}")
    never = [name for name, data in transcripts._records_of(place).items() if NEVER.encode() in data]
    part.expect(not never, where, f"{len(never)} entries were never committed: {never[:3]}")


def _turn_ends(part: Part, place: RowsPlace, where: str) -> None:
    event, session, transcript, cwd, _, _ = TURN_ENDS[place.harness]
    payload = {session: place.session, transcript: place.transcript, cwd: place.project}
    good_hook(part, f"{where}, hook {event}", place.hook(event, json.dumps(payload).encode()))
    until_quiet(place.home)


def _start_anew(place: RowsPlace) -> None:
    """The program starts: it rolls back what was left, or, where it cannot read its database, makes another."""
    transcripts._remove_odd(place.transcript)
    try:
        with closing(place.open()) as connection:
            if connection.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",):
                return
    except sqlite3.Error:
        pass
    for path in Path(place.transcript).parent.glob(f"{place.form.file}*"):
        path.unlink()


def _live(place: Place) -> list[Any]:
    """What of the session is live and newest, as a store gives it."""

    def find() -> list[Any]:
        from obsmem.tasks.entries import read_entries
        from obsmem.tasks.store import open_store

        with open_store(place.home) as store:
            (stored,) = [one for one in store.archive.sessions() if one.session.id == place.session]
            rows = [row for row in store.archive.entries(stored.no, where="replaced_by IS NULL") if row.active]
            return sorted((one.kind, one.speaker, one.text) for one in read_entries(store, stored, rows))

    return place.ask(find)  # type: ignore[no-any-return]


def _difference(found: list[Any], wanted: list[Any]) -> str:
    more, less = [one for one in found if one not in wanted], [one for one in wanted if one not in found]
    return f"{len(found)} for {len(wanted)}, {more[:2]!r:.200} too many, {less[:2]!r:.200} missing"


def _as_file(way: Callable[[Place, random.Random], str]) -> Way:
    """What happens to a file happens to one without a log beside it."""

    def changed(place: RowsPlace, chance: random.Random) -> str:
        return way(place, chance)

    changed.__name__ = way.__name__
    return changed


def _torn(place: RowsPlace, chance: random.Random) -> str:
    size = os.path.getsize(place.transcript)
    keep = chance.randrange(1, size)
    os.truncate(place.transcript, keep)
    return f"{keep} of {size} bytes"


def _bytes(place: RowsPlace, chance: random.Random) -> str:
    size = os.path.getsize(place.transcript)
    at, length = chance.randrange(size), chance.choice((1, 16, 4096))
    with open(place.transcript, "r+b") as file:
        file.seek(at)
        file.write(chance.randbytes(min(length, size - at)))
    return f"{length} bytes at {at}"


def _unsaid(place: RowsPlace) -> str:
    """All words of the session become others that are never committed, in a cache that is too small for them."""
    table, _, words = place.form.words
    said = json.dumps({"type": 1, "text": NEVER, "role": "user", "content": NEVER})
    return f"PRAGMA cache_size=1; BEGIN EXCLUSIVE; UPDATE {table} SET {words}='{said}'"


def _locked(place: RowsPlace, chance: random.Random) -> str:
    Holder(place.transcript, "BEGIN EXCLUSIVE")
    return "by the program"


def _writing(place: RowsPlace, chance: random.Random) -> str:
    Holder(place.transcript, _unsaid(place))
    return "a long transaction"


def _killed_in_a_commit(place: RowsPlace, chance: random.Random) -> str:
    Holder(place.transcript, _unsaid(place)).kill()
    return "its journal is left"


def _log_lost(place: RowsPlace, chance: random.Random) -> str:
    """The last writer was killed, and its write-ahead log, or its journal, went with it."""
    table, keys, _ = place.form.words
    Holder(place.transcript, f"DELETE FROM {table} WHERE {keys} IN (SELECT {keys} FROM {table} LIMIT 3)").kill()
    for ending in ("-wal", "-journal", "-shm"):
        if os.path.exists(place.transcript + ending):
            os.unlink(place.transcript + ending)
    return "-wal or -journal"


def _rewritten(place: RowsPlace, chance: random.Random) -> str:
    table, _, words = place.form.words
    with closing(place.open()) as connection:
        connection.execute(f"UPDATE {table} SET {words}=replace({words}, 'the', 'le') WHERE random() % 2")
        connection.execute("VACUUM")
    return "half of its rows, and packed"


def _rows_deleted(place: RowsPlace, chance: random.Random) -> str:
    table, keys, _ = place.form.words
    with closing(place.open()) as connection:
        names = [name for (name,) in connection.execute(f"SELECT {keys} FROM {table} ORDER BY {keys}")]
        gone = chance.sample(names, len(names) // 3)
        connection.executemany(f"DELETE FROM {table} WHERE {keys}=?", [(name,) for name in gone])
    return f"{len(gone)} of {len(names)}"


def _rows_emptied(place: RowsPlace, chance: random.Random) -> str:
    table, _, words = place.form.words
    value = chance.choice(("NULL", "''", "'{'", "x'ff00'", "7", "'[]'"))
    with closing(place.open()) as connection:
        connection.execute(f"UPDATE {table} SET {words}={value} WHERE random() % 3 = 0")
    return value


def _other(place: RowsPlace, chance: random.Random) -> str:
    for path in Path(place.transcript).parent.glob(f"{place.form.file}*"):
        path.unlink()
    with closing(sqlite3.connect(place.transcript)) as connection:
        connection.executescript(place.form.tables)
    return "another database, in which nothing stands"


def growing_rows(short: bool, chance: random.Random) -> Part:
    """The program writes step after step while maintainers read; then it has ended."""
    part = Part("transcript that is a database, grows while read")
    for form in formats():
        for wal in (True, False):
            for _ in range(1 if short else 10):
                with RowsPlace(form, wal=wal) as place:
                    place.grow(2)

                    def write(place: RowsPlace = place) -> None:
                        with closing(place.open()) as connection:
                            for step in place.written(WHOLE):
                                connection.execute("BEGIN IMMEDIATE")
                                for sql, values in step:
                                    connection.execute(sql, values)
                                    time.sleep(0.002)
                                connection.execute("COMMIT")
                                time.sleep(0.02)

                    writer = threading.Thread(target=write)
                    writer.start()
                    where = f"{form.name}, {'log' if wal else 'journal'}"
                    while writer.is_alive():
                        more = ("--before-compact",) * chance.randrange(2)
                        good_command(part, f"{where}, while it grows", place.maintain(*more))
                    writer.join()
                    place.maintain("--before-compact")
                    for sentence in check(place, whole=False):
                        part.fault(where, sentence)
                    transcripts._once(part, place, where)
                    found = _live(place)
                    with RowsPlace(form, wal=wal) as fresh:
                        fresh.grow(WHOLE)
                        fresh.maintain("--before-compact")
                        part.expect(found == (wanted := _live(fresh)), where, _difference(found, wanted))
    return part
