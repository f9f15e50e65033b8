"""Entries that another store sent: how one is known again here, and how those that are new come in.

Invariants: an entry is known by the hash that its record had where it was read, its block, and how many alike stand before
it in its session, never by its number; what comes in stands in a source of its own that nobody reads on; all of one
session's entries come in one transaction.
"""

from __future__ import annotations

import hashlib
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from obsmem.core.model import EntryKind, Session, Speaker
from obsmem.store.archive import Archive
from obsmem.store.archive_known import set_parent
from obsmem.store.archive_raw import RAW, raw_path
from obsmem.store.archive_rows import StoredSession
from obsmem.store.archive_schema import KIND_CODES, SEQ_BITS, SPEAKER_CODES, row_number
from obsmem.store.archive_write import LEVEL, SEGMENT
from obsmem.store.schema import transaction

IMPORTED = "bundle"  # the kind of such a source, and the path that it has

Identity = tuple[bytes, int, int]  # hash of the record where it was read, block, how many alike stand before it


class Arriving(NamedTuple):
    """An entry of another store. ``seq`` and ``replaced_by`` are numbers there; ``sha256`` is what its record hashes to
    where it was read, and ``data`` what came of it, which differs where it was masked. ``side`` is its whole output,
    which ``whole`` recalls where it stands in the place of the record's words ('' where it stands beside them)."""

    seq: int
    sha256: bytes
    data: bytes
    block: int
    kind: EntryKind
    speaker: Speaker
    at: int
    tokens: int
    active: bool
    copied: bool
    replaced_by: int | None
    side: bytes | None = None
    whole: str = ""


def identities(archive: Archive, session: int) -> dict[int, Identity]:
    """Seq -> what an entry is known by in every store, for all entries of a session."""
    masked = archive.originals(session)
    rows = archive.connection.execute(
        "SELECT no, sha256, block FROM entries WHERE no BETWEEN ? AND ? ORDER BY no",
        (row_number(session, 0), row_number(session + 1, 0) - 1),
    )
    low = (1 << SEQ_BITS) - 1
    return number_alike((no & low, masked.get(no, bytes(digest)), block) for no, digest, block in rows)


def number_alike(entries: Iterable[tuple[int, bytes, int]]) -> dict[int, Identity]:
    """The same for (seq, hash, block) in the order of seq."""
    seen: Counter[tuple[bytes, int]] = Counter()
    found: dict[int, Identity] = {}
    for seq, digest, block in entries:
        found[seq] = (digest, block, seen[digest, block])
        seen[digest, block] += 1
    return found


def take_in(
    archive: Archive, stored: StoredSession, arriving: Sequence[Arriving], state: tuple[int, int]
) -> dict[int, int]:
    """Write those entries that a session does not have yet, behind its own, in one transaction. Returns number there ->
    seq here for all. ``state`` is (how often its live path changed there, when it last grew): where no transcript of this
    machine says more, the newer one says which entries are on the live path."""
    wanted = number_alike((one.seq, one.sha256, one.block) for one in arriving)
    with transaction(archive.connection):
        known = {identity: seq for seq, identity in identities(archive, stored.no).items()}
        numbers = {one.seq: known[wanted[one.seq]] for one in arriving if wanted[one.seq] in known}
        new = [one for one in arriving if one.seq not in numbers]
        newest = archive.by_number(stored.no)
        for seq, one in enumerate(new, newest.last_seq + 1):
            numbers[one.seq] = seq
        if new:
            _insert(archive, stored.no, new, numbers)
        read_here = any(row.kind in ("file", "rows") for row in archive.sources(stored.no))
        if not read_here and state > (newest.rewinds, newest.updated_at):
            _set_state(archive, stored.no, arriving, numbers, state)
        elif new:
            archive.connection.execute(
                "UPDATE sessions SET updated_at=max(updated_at, ?) WHERE no=?", (state[1], stored.no)
            )
    return numbers


def _insert(archive: Archive, session: int, new: Sequence[Arriving], numbers: Mapping[int, int]) -> None:
    run = archive.connection.execute
    source, generation = _open(archive, session, IMPORTED, "bundle")
    for group in _groups(new):
        raw = b"".join(next(same).data for _, same in groupby(group, lambda one: id(one.data)))
        line = numbers[group[0].seq] + 1
        segment = run(
            "INSERT INTO segments(source, line, offset, size, data) VALUES(?,?,?,?,?)",
            (source, line, 0, len(raw), zlib.compress(raw, LEVEL)),
        ).lastrowid
        start, last = 0, group[0]
        for one in group:
            if one.data is not last.data:
                start += len(last.data)
            last, number = one, row_number(session, numbers[one.seq])
            digest = hashlib.sha256(one.data).digest()
            after = None if one.replaced_by is None else numbers.get(one.replaced_by, -1)
            run(
                "INSERT INTO entries VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                (number, source, segment, start, len(one.data), digest, one.block, numbers[one.seq] + 1,
                 KIND_CODES[one.kind], SPEAKER_CODES[one.speaker], one.at, one.tokens, one.active, one.copied, None, after),
            )  # fmt: skip
            if digest != one.sha256:
                run("INSERT OR REPLACE INTO originals VALUES(?,?)", (number, one.sha256))
            if one.side is not None:
                _add_side(archive, session, number, generation, one)
    run("UPDATE sessions SET last_seq=max(last_seq, ?) WHERE no=?", (max(numbers[one.seq] for one in new), session))
    archive.drop_cache()


def _open(archive: Archive, session: int, path: str, kind: str) -> tuple[int, int]:
    run = archive.connection.execute
    (generation,) = run(
        "SELECT coalesce(max(generation)+1, 0) FROM sources WHERE path=? AND session=?", (path, session)
    ).fetchone()
    added = run(
        "INSERT INTO sources(session, path, kind, generation, read_at) VALUES(?,?,?,?,?)",
        (session, path, kind, generation, int(time.time() * 1000)),
    )
    return int(added.lastrowid or 0), int(generation)


def _add_side(archive: Archive, session: int, entry: int, generation: int, one: Arriving) -> None:
    name, data = f"{IMPORTED}-{generation}-{entry}", one.side or b""
    source, _ = _open(archive, session, *((raw_path(one.whole, name), RAW) if one.whole else (name, "side")))
    archive.connection.execute(
        "INSERT INTO segments(source, line, offset, size, data) VALUES(?,?,?,?,?)",
        (source, 1, 0, len(data), zlib.compress(data, LEVEL)),
    )
    archive.connection.execute("INSERT OR REPLACE INTO sides VALUES(?,?)", (entry, source))


def _groups(new: Sequence[Arriving]) -> Iterable[list[Arriving]]:
    """Entries whose records are compressed together; those of one record stay together."""
    group: list[Arriving] = []
    size = 0
    for one in new:
        fresh = not group or one.data is not group[-1].data
        if group and fresh and size >= SEGMENT:
            yield group
            group, size = [], 0
        group.append(one)
        size += len(one.data) if fresh else 0
    if group:
        yield group


def _set_state(
    archive: Archive, session: int, arriving: Sequence[Arriving], numbers: Mapping[int, int], state: tuple[int, int]
) -> None:
    run = archive.connection.execute
    changed = 0
    for one in arriving:
        changed += run(
            "UPDATE entries SET active=?1 WHERE no=?2 AND active<>?1",
            (one.active, row_number(session, numbers[one.seq])),
        ).rowcount
    run("UPDATE sessions SET rewinds=max(rewinds, ?), updated_at=max(updated_at, ?) WHERE no=?", (*state, session))
    if changed:
        archive.count_rewind(session)


def describe(archive: Archive, stored: StoredSession, session: Session) -> None:
    """Tell of a session what another store knows and this one does not."""
    values = {
        name: getattr(session, name)
        for name in ("name", "cwd", "workspace", "started_at", "model", "window")
        if getattr(session, name) and not getattr(stored.session, name)
    }
    if values:
        columns = ", ".join(f"{name}=?" for name in values)
        with transaction(archive.connection):
            archive.connection.execute(f"UPDATE sessions SET {columns} WHERE no=?", (*values.values(), stored.no))


def descend(archive: Archive, stored: StoredSession, parent: StoredSession, seq: int) -> None:
    """Link a session to the one that it came from elsewhere, unless it is linked already."""
    if stored.session.parent is None and stored.no != parent.no:
        set_parent(archive, stored.no, parent.no, seq)
