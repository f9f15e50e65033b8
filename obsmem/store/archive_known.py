"""What the archive knows already of a record or a session that comes again: whose it is, and where it stands.

Invariant: of sessions that share a history none descends from itself.
"""

from __future__ import annotations

from obsmem.store.archive import Archive
from obsmem.store.archive_rows import EntryRow, key_number
from obsmem.store.archive_schema import row_number
from obsmem.store.schema import transaction


def set_parent(archive: Archive, session: int, parent: int, seq: int) -> None:
    """Link a session to the one that it was forked from or spawned by; ``seq`` is the last shared entry (-1 unknown).

    Not done where that one already descends from it: of two that share a history, the one that was read later inherits.
    """
    with transaction(archive.connection):
        (circle,) = archive.connection.execute(
            "WITH RECURSIVE line(no) AS (SELECT ? UNION SELECT s.parent FROM sessions s JOIN line l ON s.no=l.no)"
            " SELECT count(*) FROM line WHERE no=?",
            (parent, session),
        ).fetchone()
        if circle:
            return
        archive.connection.execute("UPDATE sessions SET parent=?, parent_seq=? WHERE no=?", (parent, seq, session))


def find_link(archive: Archive, key: str, session: int) -> tuple[int, int] | None:
    """(source, line) where another session holds a record of this link key; the earliest, None where there is none."""
    row = archive.connection.execute(
        "SELECT l.source, l.line FROM links l JOIN sources s ON s.no=l.source WHERE l.id=? AND s.session<>? ORDER BY l.source LIMIT 1",
        (key_number(key), session),
    ).fetchone()
    return None if row is None else (row[0], row[1])


def positions(archive: Archive, source: int) -> dict[tuple[int, int], int]:
    """(line, block) -> row number of the entry, for every entry of a source; an alias leads to its original."""
    session = archive.source(source).session
    rows = archive.connection.execute(
        "SELECT line, block, coalesce(alias, no) FROM entries WHERE no BETWEEN ? AND ? AND source=?",
        (row_number(session, 0), row_number(session + 1, 0) - 1, source),
    )
    return {(line, block): number for line, block, number in rows}


def known_records(archive: Archive, session: int, source: int) -> dict[bytes, list[tuple[int, ...]]]:
    """Hash of a record -> seqs of its entries, once for each time that it stands in another file of this session."""
    files = {row.no for row in archive.sources(session) if row.kind in ("file", "bundle")} - {source}
    masked = archive.originals(session) if files else {}
    places: dict[tuple[int, int], list[EntryRow]] = {}
    for entry in archive.entries(session) if files else ():
        if entry.source in files:
            places.setdefault((entry.segment, entry.start), []).append(entry)
    found: dict[bytes, list[tuple[int, ...]]] = {}
    for rows in places.values():
        digest = masked.get(rows[0].no, rows[0].sha256)
        found.setdefault(digest, []).append(tuple(row.seq for row in rows))
    return found
