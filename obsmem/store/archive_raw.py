"""Whole outputs in the archive, of results that stand shortened in their transcript: each a source of its own, tied to the
entry of the result as a side file is.

Invariant: such a source's path names the id by which the output is recalled and the call that gave it, so that neither is
lost with ``memory.db``; its state holds the SHA-256 of its bytes, which are checked before the file that they came from goes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from obsmem.core import late
from obsmem.store.archive import Archive, StoredSession
from obsmem.store.archive_rows import EntryRow, SourceRow, source_row
from obsmem.store.archive_schema import row_number, seq_of

RAW = "raw"  # the kind of such a source, and how its path begins


def raw_path(id_: str, call_id: str) -> str:
    """The path that such a source has."""
    return f"{RAW}/{id_}/{call_id}"


def id_of(source: SourceRow) -> str:
    """The id by which a whole output is recalled; '' for another source."""
    return source.path.split("/", 2)[1] if source.kind == RAW else ""


def side_source(archive: Archive, row: EntryRow) -> SourceRow | None:
    """The source with an entry's whole output, or that of the entry which it repeats; None where there is none."""
    return side_sources(archive, [row]).get(row.no)


def side_sources(archive: Archive, rows: Sequence[EntryRow]) -> dict[int, SourceRow]:
    """The same for many entries, by row number, for those that have one."""
    numbers = [row.no for row in rows] + [row.alias for row in rows if row.alias is not None]
    found = {
        entry: source_row(source)
        for entry, *source in archive.connection.execute(
            "SELECT x.entry, s.* FROM json_each(?) j CROSS JOIN sides x ON x.entry=j.value JOIN sources s ON s.no=x.source",
            (json.dumps(numbers),),
        )
    }
    if not found:
        return found
    named = ((row.no, found.get(row.no) or found.get(row.no if row.alias is None else row.alias)) for row in rows)
    return {number: source for number, source in named if source is not None}


def archived_raw(archive: Archive, session: int, id_: str, call_id: str) -> SourceRow | None:
    """A session's whole output with this id, of this call, if it is archived."""
    found = archive.connection.execute(
        "SELECT * FROM sources WHERE path=? AND session=? AND kind=? ORDER BY generation DESC LIMIT 1",
        (raw_path(id_, call_id), session, RAW),
    ).fetchone()
    return None if found is None else source_row(found)


def find_raw_source(archive: Archive, id_: str) -> tuple[SourceRow, tuple[int, int] | None] | None:
    """The archived whole output with an id, and (session, seq) of the newest entry that it belongs to; None for none."""
    prefix = f"{RAW}/{id_}/"
    found = archive.connection.execute(
        "SELECT s.*, (SELECT max(x.entry) FROM sides x WHERE x.source=s.no) FROM sources s"
        " WHERE s.kind=? AND s.path>=? AND s.path<? ORDER BY s.no LIMIT 1",
        (RAW, prefix, prefix[:-1] + "0"),  # "0" is what follows "/"
    ).fetchone()
    if found is None:
        return None
    return source_row(found[:-1]), None if found[-1] is None else seq_of(found[-1])


def add_raw(archive: Archive, stored: StoredSession, id_: str, call_id: str, data: bytes) -> SourceRow:
    """Archive a whole output, once; returns its source. What is there already is not written again."""
    from obsmem.store.archive_write import SourceWriter  # slow to load, and whoever only reads waits

    writer = SourceWriter(archive, stored.no, raw_path(id_, call_id), RAW)
    try:
        if writer.position == 0:
            for offset in range(0, len(data), 1 << 20):
                writer.add(data[offset : offset + (1 << 20)], 1, offset, ())
            writer.commit({"sha256": late.sha256(data).hex()}, stored.session._replace(transcript=""), "")
        return writer.row
    finally:
        writer.close()


def is_sound(archive: Archive, source: SourceRow) -> bool:
    """True if a whole output has the digest that it came with. Raises StoreError where its bytes cannot be had."""
    state = json.loads(source.state or "{}")
    wanted = state.get("sha256") if isinstance(state, dict) else None
    return wanted is None or wanted == late.sha256(raw_bytes(archive, source)).hex()


def raw_bytes(archive: Archive, source: SourceRow) -> bytes:
    """The bytes of a whole output. Raises StoreError."""
    return b"".join(archive.bytes_of(source.no))


def tie_raw(archive: Archive, session: int, seq: int, source: SourceRow) -> None:
    """Let a whole output be that of an entry, in the place of what its transcript has."""
    archive.add_side(session, seq, source.no)


def raws_of(archive: Archive, session: int) -> list[tuple[SourceRow, int]]:
    """A session's whole outputs, each with the seq of the newest entry that it belongs to (-1 for none)."""
    rows = archive.connection.execute(
        "SELECT s.*, (SELECT max(x.entry) FROM sides x WHERE x.source=s.no AND x.entry BETWEEN ?1 AND ?2) FROM sources s"
        " WHERE s.session=?3 AND s.kind=?4 ORDER BY s.no",
        (row_number(session, 0), row_number(session + 1, 0) - 1, session, RAW),
    )
    return [(source_row(row[:-1]), -1 if row[-1] is None else seq_of(row[-1])[1]) for row in rows]
