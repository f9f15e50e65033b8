"""What must hold of a data folder after any fault: nothing lost, nothing doubled, nothing claimed that was not seen.

Each check gives sentences; none is good. They are read from the databases by statements of their own where that is possible,
so that a mistake of the product's readers cannot hide itself.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.faults.place import Place
from bench.faults.process import leftovers
from obsmem.store.archive_schema import OBSERVABLE

TRANSIENT = (".tmp", ".new")


def check(place: Place, *, whole: bool = True) -> list[str]:
    """What is wrong in a place once a maintainer has been through. ``whole``: the transcript on the disk is all there was."""
    wrong: list[str] = place.ask(lambda: _stored(place, whole))
    wrong += blocks(place)
    wrong += [f"a process is left: {pid}" for pid in leftovers(place.home)]
    wrong += [f"a wish is left: {name}" for name in _names(os.path.join(place.home, "waiting"))]
    return wrong


def blocks(place: Place) -> list[str]:
    """Block files that are neither empty nor whole."""
    from obsmem.system import blockfile

    names = (
        blockfile.NEXT,
        blockfile.DUE,
        blockfile.CURRENT,
        blockfile.KEPT,
        blockfile.RESUME,
        blockfile.RETRY,
        blockfile.RETRIED,
    )
    found = [path for path in sorted(Path(place.home, "sessions").rglob("block.*")) if path.name in names]
    return [
        f"{path.name} is no whole block" for path in found if path.stat().st_size and not blockfile.read(str(path))[1]
    ]


def litter(place: Place) -> list[str]:
    """Files that a killed writer left and nobody removed."""
    return [str(path.relative_to(place.home)) for path in Path(place.home).rglob("*") if path.name.endswith(TRANSIENT)]


def contents(place: Place) -> dict[str, Any]:
    """What must not depend on how the work was interrupted. When reflecting is due is counted from where a run began, so
    reflections and drops may come some entries later after a death: they are checked, and not compared."""
    return place.ask(lambda: _contents(place))  # type: ignore[no-any-return]


def _names(folder: str) -> list[str]:
    return [
        name
        for name in (os.listdir(folder) if os.path.isdir(folder) else [])
        if not name.startswith(".") and not name.endswith(TRANSIENT)
    ]


def _stored(place: Place, whole: bool) -> list[str]:
    from obsmem.tasks.store import open_store

    wrong = _ahead(place.home)
    with open_store(place.home) as store:
        for stored in store.archive.sessions():
            handle = stored.session.handle
            wrong += _entries(store, stored)
            if stored.session.id == place.session and whole:
                wrong += _bytes(store, stored, place.transcript)
            wrong += _coverage(store, stored)
            ids = [one.note.id for one in store.memory.notes(handle)]
            wrong += [f"note {one} stands {n} times" for one, n in Counter(ids).items() if n > 1]
            texts = Counter(one.reflection.id for one in store.memory.reflections(handle))
            wrong += [f"reflection {one} stands {n} times" for one, n in texts.items() if n > 1]
        connection = store.memory.connection
        for table in ("note_entries", "reflection_notes", "drops"):
            sql = f"SELECT count(*) FROM {table} WHERE note NOT IN (SELECT id FROM notes)"
            (orphans,) = connection.execute(sql).fetchone()
            wrong += [f"{orphans} rows of {table} belong to no note"] * bool(orphans)
    for name in ("archive.db", "memory.db", "index.db"):
        path = os.path.join(place.home, name)
        if os.path.exists(path):
            connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            wrong += [f"{name}: {row[0]}" for row in connection.execute("PRAGMA integrity_check(3)") if row[0] != "ok"]
            wrong += [f"{name}: {row}" for row in connection.execute("PRAGMA foreign_key_check").fetchmany(3)]
            connection.close()
    return wrong


def _ahead(home: str) -> list[str]:
    """Sessions that are covered beyond what is archived: looked for before the product's own opening mends that."""
    paths = [os.path.join(home, name) for name in ("archive.db", "memory.db")]
    if not all(map(os.path.exists, paths)):
        return []
    with closing(sqlite3.connect(paths[0])) as connection:
        connection.execute("ATTACH ? AS memory", (paths[1],))
        rows = connection.execute(
            "SELECT handle, max(coverage.last_seq), sessions.last_seq FROM memory.coverage JOIN sessions ON handle=session"
            " GROUP BY handle HAVING max(coverage.last_seq) > sessions.last_seq"
        )
        return [f"{handle} is covered to {covered}, but ends at {last}" for handle, covered, last in rows]


def _entries(store: Any, stored: Any) -> list[str]:
    """Every entry resolves, by its id, to bytes with its hash, and their numbers have no holes."""
    from obsmem.tasks.entries import find_entry

    wrong = []
    for row in store.archive.entries(stored.no):
        name = f"{stored.session.handle}.{row.seq}"
        try:
            _, again = find_entry(store, name)
            store.archive.record(again)  # which compares the bytes with their hash
        except Exception as error:
            wrong.append(f"{name} cannot be read: {type(error).__name__} {error}")
    seqs = [row.seq for row in store.archive.entries(stored.no)]
    if seqs != list(range(len(seqs))):
        wrong.append(f"the numbers of {stored.session.handle} have holes: {seqs[:5]}… of {len(seqs)}")
    return wrong


def _bytes(store: Any, stored: Any, path: str) -> list[str]:
    rows = [row for row in store.archive.sources(stored.no) if row.kind == "file" and row.path == path]
    if not rows:
        return ["the transcript is no source of its session"]
    kept = b"".join(store.archive.bytes_of(rows[-1].no))
    try:
        wanted = Path(path).read_bytes()
    except OSError:
        return []
    wanted = wanted[: wanted.rfind(b"\n") + 1]  # a torn last line waits until it is whole
    return [] if kept == wanted else [f"{len(kept)} bytes are archived, {len(wanted)} were written, and they differ"]


def _coverage(store: Any, stored: Any) -> list[str]:
    """Coverage is disjoint, never beyond the archive, and each stretch names one answered call that was shown just it."""
    handle = stored.session.handle
    stretches, gaps = store.memory.stretches(handle), store.memory.gaps(handle)
    parts = sorted((one.first_seq, one.last_seq) for one in (*stretches, *gaps))
    wrong = [f"{handle}: {a} and {b} overlap" for a, b in itertools.pairwise(parts) if a[1] >= b[0]]
    covered_to = store.memory.covered_to(handle)
    sql = f"SELECT no & 0xffffffff FROM entries WHERE no >> 32 = ? AND {OBSERVABLE}"
    observable = {int(row[0]) for row in store.archive.connection.execute(sql, (stored.no,))}
    covered = {seq for first, last in parts for seq in range(first, last + 1)}
    missed = sorted(seq for seq in observable if seq <= covered_to and seq not in covered)
    if missed:
        wrong.append(f"{handle}: {len(missed)} entries up to {covered_to} are neither covered nor a gap: {missed[:3]}")
    for one in stretches:
        (found,) = store.memory.connection.execute(
            "SELECT count(*) FROM worker_calls WHERE no=? AND session=? AND task='observe' AND first_seq=? AND last_seq=?"
            " AND outcome IN ('ok','empty')",
            (one.call, handle, one.first_seq, one.last_seq),
        ).fetchone()
        if found != 1:
            wrong.append(f"{handle}: {found} calls answered for {one.first_seq}-{one.last_seq}")
    for one in store.memory.notes(handle):
        outside = [
            name for name in one.note.entry_ids if not one.first_seq <= int(name.rpartition(".")[2]) <= one.last_seq
        ]
        if outside:
            wrong.append(f"note {one.note.id} cites {outside[0]}, which it was not shown")
    return wrong


def _contents(place: Place) -> dict[str, Any]:
    from obsmem.tasks.entries import read_entries
    from obsmem.tasks.store import open_store

    with open_store(place.home) as store:
        (stored,) = [one for one in store.archive.sessions() if one.session.id == place.session]
        handle = stored.session.handle
        kept = b"".join(b"".join(store.archive.bytes_of(row.no)) for row in store.archive.sources(stored.no))
        return {
            "bytes": hashlib.sha256(kept).hexdigest(),
            "entries": [
                (one.seq, one.kind, one.speaker, one.text)
                for one in read_entries(store, stored, store.archive.entries(stored.no))
            ],
            "notes": sorted({one.note.text for one in store.memory.notes(handle)}),
            "covered": store.memory.covered_to(handle),
            "gaps": [(one.first_seq, one.last_seq) for one in store.memory.gaps(handle)],
        }
