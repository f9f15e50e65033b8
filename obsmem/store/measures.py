"""What harnesses reported of a session's requests, as rows of ``archive.db``.

Invariant: a request stands once, where its first record stood, however many records tell of it (what a tool gives back may
stand among them, and was not counted), with the largest output that any of them names.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from obsmem.core import late
from obsmem.core.model import Entry
from obsmem.core.pressure import MEASURE_KINDS, Measure
from obsmem.core.tuples import NamedTuple
from obsmem.store.archive_schema import KIND_CODES, SEQ_BITS, SPEAKER_CODES, row_number

OLD, LOST = (
    "old",
    "lost",
)  # rows of earlier versions, of which only the context is known; those that nobody can complete
SPOKEN_KINDS = frozenset({"assistant", "thinking", "tool_call"})  # what stands in a request's own output
OWN_REQUESTS = ("request", OLD, LOST)  # what counts as the session's own
_CODES: dict[str, int] = {**{kind: code for code, kind in enumerate(MEASURE_KINDS)}, OLD: -1, LOST: -2}
_KINDS = {code: kind for kind, code in _CODES.items()}
_COLUMNS = "seq, kind, context, at, window, output, cached, written, model, how, copied, request"


class Measured(NamedTuple):
    """A measure (core.pressure) and the last entry that it has counted (-1: none). ``kind`` may also be ``old`` or ``lost``.
    ``copied``: it is another session's, whose records this one repeats."""

    seq: int
    kind: str
    context: int
    at: int = 0
    window: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0
    model: str = ""
    trigger: str = ""
    summary: str = ""
    copied: bool = False
    request: int = 0


class Placed(NamedTuple):
    """A measure with the seq of the last entry that it has counted."""

    seq: int
    measure: Measure
    copied: bool = False


def entries_after(place: str, records: Iterable[tuple[Entry, ...]]) -> int:
    """How many entries a measure had not counted; of ``records``, the newest first, the first is the one that it came with."""
    passed = 0
    for entries in records:
        if place == "before":
            return len(entries)
        for entry in reversed(entries):
            if entry.speaker == "agent" and entry.kind in SPOKEN_KINDS:
                return passed
            passed += 1
    return 0


def request_number(name: str) -> int:
    """A request's name as the number that stands for it; 0 for none."""
    digest = late.blake2b(name.encode("utf-8", "surrogatepass"), 8) if name else b""
    return int.from_bytes(digest, "big", signed=True)


def save_measures(connection: sqlite3.Connection, session: int, placed: Iterable[Placed]) -> None:
    """Write measures down, in order; within the caller's transaction."""
    merged: dict[object, Placed] = {}
    for index, one in enumerate(placed):
        key: object = one.measure.request or (one.seq if one.measure.kind == "kept" else (index,))
        before = merged.get(key)
        if before is not None:
            one = _joined(before, one)
        merged[key] = one
    for key, one in merged.items():
        if one.measure.kind == "kept":
            merged[key] = _with_stored(connection, session, one)
    known = _known(connection, session, [request_number(one.measure.request) for one in merged.values()])
    connection.executemany(
        f"INSERT OR REPLACE INTO measures(session, {_COLUMNS}) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
        [_row(session, one, known) for one in merged.values()],
    )


def set_aside(connection: sqlite3.Connection, session: int, source: int, line: int) -> None:
    """The words of a line turn out to be a summariser's: so was the request that gave them."""
    low = session << SEQ_BITS
    connection.execute(
        "UPDATE measures SET kind=? WHERE session=? AND kind=? AND seq IN"
        " (SELECT no - ? FROM entries WHERE no BETWEEN ? AND ? AND source=? AND line=?)",
        (_CODES["side"], session, _CODES["request"], low, low, low + (1 << SEQ_BITS) - 1, source, line),
    )


def _joined(before: Placed, after: Placed) -> Placed:
    """Two records of one request, or of one compaction: the first may say how it came about, the next how much was kept."""
    old, new = before.measure, after.measure
    measure = new._replace(
        context=new.context or old.context,
        output=max(old.output, new.output),
        trigger=new.trigger or old.trigger,
        summary=new.summary or old.summary,
    )
    return after._replace(seq=before.seq, measure=measure)


def _with_stored(connection: sqlite3.Connection, session: int, placed: Placed) -> Placed:
    """What is said of a compaction with what was said of it before, in an earlier commit."""
    row = connection.execute(
        "SELECT context, how FROM measures WHERE session=? AND seq=? AND request=0 AND kind=?",
        (session, placed.seq, _CODES["kept"]),
    ).fetchone()
    if row is None:
        return placed
    trigger, summary = _told(row[1])
    old = placed.measure._replace(context=row[0], trigger=trigger, summary=summary)  # type: ignore[arg-type]
    return _joined(placed._replace(measure=old), placed)


def _known(connection: sqlite3.Connection, session: int, numbers: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Number of a request that stands there already -> (seq, output)."""
    found: dict[int, tuple[int, int]] = {}
    for start in range(0, len(numbers), 500):
        part = numbers[start : start + 500]
        rows = connection.execute(
            f"SELECT request, seq, output FROM measures WHERE session=? AND request IN ({','.join('?' * len(part))})",
            (session, *part),
        )
        found.update((number, (seq, output)) for number, seq, output in rows if number)
    return found


def _row(session: int, placed: Placed, known: dict[int, tuple[int, int]]) -> tuple[object, ...]:
    seq, measure, copied = placed
    number, output = request_number(measure.request), measure.output
    if number in known:
        seq, output = known[number][0], max(output, known[number][1])
    how = f"{measure.trigger}/{measure.summary}".strip("/")
    return (
        session, seq, _CODES[measure.kind], measure.context, measure.at, measure.window, output, measure.cached,
        measure.written, measure.model, how, copied, number,
    )  # fmt: skip


def measures_of(connection: sqlite3.Connection, session: int, up_to: int | None = None) -> list[Measured]:
    """What was reported of a session's requests up to an entry, in order."""
    high = up_to if up_to is not None else 1 << 62
    if not _are_named(connection):  # a store of an earlier version that is only read
        old = connection.execute(
            "SELECT seq, context FROM measures WHERE session=? AND seq<=? ORDER BY seq", (session, high)
        )
        return [Measured(seq, OLD, context) for seq, context in old]
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM measures WHERE session=? AND seq<=? ORDER BY seq, at", (session, high)
    )
    return [Measured._make((row[0], _KINDS[row[1]], *row[2:9], *_told(row[9]), bool(row[10]), row[11])) for row in rows]


def _told(how: str) -> tuple[str, str]:
    trigger, _, summary = how.partition("/")
    return (trigger, summary) if trigger not in ("hidden", "none") else ("", trigger)


def sessions_to_complete(connection: sqlite3.Connection) -> list[int]:
    """The numbers of the sessions with rows of earlier versions, the last grown first."""
    if not _are_named(connection):
        return []
    rows = connection.execute(
        "SELECT no FROM sessions WHERE no IN (SELECT session FROM measures WHERE kind=-1) ORDER BY updated_at DESC"
    )
    return [row[0] for row in rows]


def complete_measures(
    connection: sqlite3.Connection, session: int, placed: Sequence[Placed], *, whole: bool = True
) -> None:
    """Replace the rows of earlier versions by what was read again; ``whole`` is False where bytes are gone, and what they
    said stays as it is. Within the caller's transaction."""
    if whole:
        connection.execute("DELETE FROM measures WHERE session=? AND kind=-1", (session,))
    else:
        connection.execute("UPDATE measures SET kind=-2 WHERE session=? AND kind=-1", (session,))
        placed = ()
    rows = connection.execute("SELECT request, seq FROM measures WHERE session=?", (session,)).fetchall()
    known = {row[0] for row in rows if row[0]}
    seqs = {row[1] for row in rows if not row[0]}
    save_measures(connection, session, [
        one for one in placed
        if (request_number(one.measure.request) not in known if one.measure.request else one.seq not in seqs)
    ])  # fmt: skip


def _are_named(connection: sqlite3.Connection) -> bool:
    return any(row[1] == "request" for row in connection.execute("PRAGMA table_info(measures)"))


def live_tokens(connection: sqlite3.Connection, session: int, first: int, last: int, kinds: frozenset[str]) -> int:
    """Estimated tokens of a session's entries ``first``..``last`` (inclusive) of these kinds that are on the live path, no
    sub-agent's."""
    if last < first:
        return 0
    codes = ",".join(str(code) for kind, code in sorted(KIND_CODES.items()) if kind in kinds)
    row = connection.execute(
        f"SELECT coalesce(sum(tokens), 0) FROM entries WHERE no BETWEEN ? AND ? AND kind IN ({codes}) AND speaker<>?"
        " AND active=1 AND replaced_by IS NULL",
        (row_number(session, max(0, first)), row_number(session, max(0, last)), SPEAKER_CODES["subagent"]),
    ).fetchone()
    return int(row[0])


class Spent(NamedTuple):
    """Requests of a session that are alike: their model and day (local, '' where no time was told), how many, and tokens as
    the provider counted them; ``unknown`` of them were only seen by an earlier version, which kept no more than their number."""

    session: str
    model: str
    day: str
    requests: int
    fresh: int
    cached: int
    written: int
    output: int
    unknown: int


def spent_since(connection: sqlite3.Connection, since: int) -> list[Spent]:
    """What all sessions spent since a time in milliseconds; a request without a time counts at its session's last growth."""
    if not _are_named(connection):
        return []
    rows = connection.execute(
        "SELECT s.handle, CASE m.model WHEN '' THEN s.model ELSE m.model END AS answered,"
        " CASE m.at WHEN 0 THEN '' ELSE date(m.at / 1000, 'unixepoch', 'localtime') END AS day, count(*),"
        " sum(CASE WHEN m.kind < 0 THEN 0 ELSE max(0, m.context - m.cached - m.written) END), sum(m.cached), sum(m.written),"
        " sum(m.output), sum(m.kind < 0) FROM measures m JOIN sessions s ON s.no=m.session"
        " WHERE m.copied=0 AND m.kind IN (0, 1, -1, -2) AND CASE m.at WHEN 0 THEN s.updated_at ELSE m.at END >= ?"
        " GROUP BY s.no, answered, day ORDER BY day DESC, count(*) DESC",
        (since,),
    )
    return [Spent(*row) for row in rows]
