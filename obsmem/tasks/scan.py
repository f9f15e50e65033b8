"""Looking through the archived bytes themselves, newest first, for as long as there is time.

Invariants: a record is passed over without parsing only if no text that it yields can hold what is looked for; when the
time is over, what was looked at is everything above one row number, and ``Scan`` says which and how much is left.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence

from obsmem.core import late
from obsmem.core.identifiers import Term, light_stem
from obsmem.core.model import Entry
from obsmem.core.tuples import NamedTuple
from obsmem.memory.own import is_own_call, is_own_text
from obsmem.store.archive import StoredSession
from obsmem.store.archive_rows import EntryRow
from obsmem.store.archive_scan import Group, Wanted, beyond_bytes, calls_before, groups, rows_in, segments_ahead
from obsmem.store.archive_schema import row_number
from obsmem.tasks.entries import read_entries
from obsmem.tasks.store import Store
from obsmem.tasks.word_rows import paths_of

Test = Callable[[bytes], bool]
CALLS_BACK = 30  # tool calls before a result among which its own is looked for
_ESCAPED = late.pattern(rb"\\u00(?:3[0-9]|[4-7])")  # letters and digits, written as escapes
_ROW = b'{"table":'  # how a record begins that is a row of a database; those of a segment are of one kind
_RUN = late.pattern(r"[A-Za-z0-9]+")
_FOREIGN = late.pattern("[\u0080-\ud7ff\ue000-\ufffc\U00010000-\U0010ffff]+")  # what stands in UTF-8 as it is
_STOP_WORDS = (
    "a an and are as at be but by for from had has have how i if in into is it its not of on or that the their then there"
    " they this to was we were what when where which who why will with you"
)
_STOP = frozenset(_STOP_WORDS.split())


class Stretch(NamedTuple):
    """Entries ``first``..``last`` (inclusive) of a session."""

    stored: StoredSession
    first: int
    last: int


class Context(NamedTuple):
    """What only the tool call behind a result says: the tool, whether it was ours, the files that it names."""

    tool: str = ""
    own: bool = False
    paths: tuple[str, ...] = ()


class Scan:
    """One look through stretches, in the given order. ``looked`` and ``total`` count bytes of records; ``at`` is the row
    number above which everything of the current stretch was looked at; ``done`` is False when time ran out."""

    def __init__(self, store: Store, stretches: Sequence[Stretch], wanted: Wanted, deadline: float) -> None:
        self.store = store
        self.stretches = stretches
        self.wanted = wanted
        self.deadline = deadline
        self.looked = self.total = self.at = 0
        self.done = False

    def entries(self, test: Test) -> Iterator[tuple[StoredSession, Entry]]:
        """Yield the entries of all records that pass ``test`` (of a record's bytes), the last first in each stretch."""
        archive, planned = self.store.archive, []
        for stretch in self.stretches:
            found = groups(archive, stretch.stored.no, stretch.first, stretch.last, self.wanted)
            planned.append((stretch, found))
            self.total += sum(group.size for group in found)
            if time.monotonic() >= self.deadline:
                break
        for stretch, found in planned:
            self.at = row_number(stretch.stored.no, stretch.last + 1)
            sides = beyond_bytes(archive, stretch.stored.no)
            read = segments_ahead(archive, [segment for group in found for segment in group.segments])
            for group in found:
                if time.monotonic() >= self.deadline:
                    return
                for entry in self._of_group(stretch.stored, group, test, sides, read):
                    yield stretch.stored, entry
                self.looked += group.size
                self.at = group.low
        self.done = len(planned) == len(self.stretches)

    def _of_group(
        self, stored: StoredSession, group: Group, test: Test, sides: frozenset[int], read: Iterator[bytes | None]
    ) -> Iterator[Entry]:
        rows: list[EntryRow] = []
        for segment in group.segments:
            data = next(read)
            if data is None:
                continue  # removed by retention, or damaged: fsck says so
            has_side = any(group.low <= number <= group.high for number in sides)
            if not has_side and not test(data):
                continue
            for row in rows_in(self.store.archive, segment, group.low, group.high, self.wanted):
                if row.no in sides or test(data[row.start : row.start + row.size]):
                    rows.append(row)
        if len(group.segments) > 1:
            rows.sort(key=lambda row: -row.no)
        yield from read_entries(self.store, stored, rows, lost=True)


def holds(needle: str) -> Test:
    """True for bytes of records whose texts may hold a string exactly. Its longest run of letters and digits must stand
    there as it is: whatever stands between runs may be escaped, or put there when the text is made."""
    runs = _RUN.findall(needle)
    if not runs:
        foreign = _FOREIGN.findall(needle)
        anchors = _written(max(foreign, key=len)) if foreign else []
        return lambda data: not anchors or any(one in data for one in anchors) or _is_hexadecimal(data)
    anchor = max(runs, key=len).encode("ascii")
    return lambda data: anchor in data or _may_hide(data)


def _may_hide(data: bytes) -> bool:
    """True for bytes that may hide any text: a letter written as an escape, a row whose value is kept as hexadecimal digits."""
    if _ESCAPED.search(data) is not None:
        return True
    return _is_hexadecimal(data) or (data.startswith(_ROW) and b'"table":"meta"' in data)


def _is_hexadecimal(data: bytes) -> bool:
    return data.startswith(_ROW) and b'"hex":' in data


def holds_words(terms: Sequence[Term]) -> Test:
    """True for bytes of records that may hold a word which begins as one of the terms does, in any case."""
    parts = dict.fromkeys(part for term in terms for part in term.parts)
    telling = [part for part in parts if _tells(part)] or list(parts)
    small = [anchor for part in telling if part.isascii() for anchor in _anchors(part)]
    exact = [anchor for part in telling if not part.isascii() for anchor in _anchors(part)]

    def test(data: bytes) -> bool:
        low = data.lower()
        return any(one in low for one in small) or any(one in data for one in exact) or _is_hexadecimal(data)

    return test


def telling_terms(terms: Sequence[Term]) -> int:
    """The terms, as bits by position, that are more than words which stand in any text; all where there is no other."""
    told = sum(1 << number for number, term in enumerate(terms) if any(map(_tells, term.parts)))
    return told or (1 << len(terms)) - 1


def _tells(part: str) -> bool:
    return part.lower() not in _STOP and len(part) > 1


def _anchors(part: str) -> list[bytes]:
    """What a word's other forms share, as it may stand in a record."""
    start = light_stem(part)
    if start.isascii():
        return [start.lower().encode("ascii")]
    forms = dict.fromkeys([start, start.lower(), start.upper(), start.capitalize()])
    return [one for form in forms for one in _written(form)]


def _written(text: str) -> list[bytes]:
    """A text beyond ASCII as records hold it: as it is, or as escapes with digits in either case."""
    escaped = json.dumps(text)[1:-1]
    upper = re.sub(r"\\u[0-9a-f]{4}", lambda match: "\\u" + match.group()[2:].upper(), escaped)
    return [text.encode("utf-8", "replace"), escaped.encode("ascii"), upper.encode("ascii")]


def context_of(store: Store, stored: StoredSession, entry: Entry) -> Context:
    """What an entry is part of: its own call's tool and paths, or those of the call that it answers."""
    own = is_own_text(entry)
    if entry.kind == "tool_call":
        return Context(entry.tool, own or is_own_call(entry), paths_of(entry))
    if entry.kind != "tool_result" or not entry.call_id:
        return Context(entry.tool, own)
    for row in calls_before(store.archive, stored.no, entry.seq, CALLS_BACK):
        for call in read_entries(store, stored, [row], lost=True):
            if call.call_id == entry.call_id:
                return Context(entry.tool or call.tool, own or is_own_call(call), paths_of(call))
    return Context(entry.tool, own)
