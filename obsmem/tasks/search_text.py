"""Finding a text as it stands, or what a regular expression matches: newest taken in first, by looking.

Invariants: an exact text that stands in any entry is found, indexed or not, or the answer says how far it looked and how to
go on; the index only spares looking at entries that cannot hold it. No expression runs longer than its deadline.
"""

from __future__ import annotations

import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from obsmem.core import late
from obsmem.core.finds import Hit, Hits, Query
from obsmem.core.identifiers import Term, split
from obsmem.core.model import Entry
from obsmem.core.tuples import NamedTuple
from obsmem.memory.snippet import snippet
from obsmem.store.archive import StoredSession
from obsmem.store.archive_scan import rows_by_number
from obsmem.store.archive_schema import row_number
from obsmem.store.index import Index
from obsmem.store.memory_search import dropped_among, notes_holding
from obsmem.store.search import COMMON, Facet
from obsmem.tasks.entries import read_entries
from obsmem.tasks.scan import Context, Scan, Stretch, Test, context_of, holds
from obsmem.tasks.search_scope import Scope, read_row, row_token
from obsmem.tasks.store import Store

BATCH = 50  # entries whose text is read at a time
ALL = 1 << 30  # notes
_RUN = late.pattern(r"[A-Za-z0-9]+")
# In a pattern without any of these, every run of letters and digits stands in what it matches.
_UNSURE = late.pattern(r"[|()\[\]{}?*\\]")
_ANYTHING = late.pattern(
    r"(?:\\[wWdDsSbB]|\.)[+*]?\??"
)  # stands for some characters or none, and says nothing of others


class _Late(Exception):
    """The deadline came while an expression was matching."""


class _Looking(NamedTuple):
    """What is looked for: ``find`` gives the place of the first match in a text, or None; ``test`` passes bytes of records
    that may hold it; ``words`` stand whole in every entry that does."""

    find: Callable[[str], tuple[int, int] | None]
    test: Test
    words: tuple[str, ...]
    pattern: re.Pattern[str]


def search_text(
    store: Store, index: Index | None, query: Query, scope: Scope, deadline: float, *, may_match: bool
) -> Hits:
    """Answer an exact or regex query, or one of words that holds no word. An expression is matched only with ``may_match``:
    where nobody could end it, it is looked for as it stands, which the answer says."""
    looking, said = _looking(query, may_match)
    hits: list[Hit] = []
    below = read_row(query.after)
    limit = max(1, query.limit)
    if scope.notes and not below:
        hits, said = _notes(store, scope, looking, limit, said)
    found = _Entries(store, index, scope, looking, deadline, below)
    found.done = not scope.entries
    more, last = "", below
    try:
        with _bounded(deadline, query.mode == "regex"):
            for stored, entry, context in found.all() if scope.entries else ():
                if len(hits) == limit:
                    more = row_token(last)
                    break
                place = looking.find(entry.text)
                if place is None:
                    continue
                last = row_number(stored.no, entry.seq)
                hits.append(_hit(store, stored, entry, context, looking))
            else:
                if not found.done:
                    more = row_token(found.at)
    except _Late:
        found.done, more = False, row_token(found.at)
        said = f"{said} The expression takes too long; the entry where it did is passed over.".strip()
    # Until a page is full everything above its last hit was looked at; only running out of time leaves something out.
    complete = found.done or (bool(more) and len(hits) == limit)
    if not complete:
        said = f"{said} Looked through {found.share()}; --after {more} goes on from there.".strip()
    return Hits(tuple(hits), complete, said, more)


def _looking(query: Query, may_match: bool) -> tuple[_Looking, str]:
    """What a query looks for, and what has to be said about it."""
    if query.mode == "regex" and not may_match:
        plain, _ = _looking(query._replace(mode="exact"), may_match)
        return plain, "Nobody could end an expression here that takes too long: it was looked for as it stands."
    if query.mode == "regex":
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what a later Python may read otherwise is no concern of who searches
                pattern = re.compile(query.text)
        except (re.error, OverflowError, RecursionError) as error:
            plain, _ = _looking(query._replace(mode="exact"), may_match)
            return plain, f"{query.text!r} is no regular expression ({error}): it was looked for as it stands."
        plain_part = _ANYTHING.sub(" ", query.text)
        test = holds(_surest(plain_part) if not _UNSURE.search(plain_part) else "")
        return _Looking(lambda text: _span(pattern.search(text)), test, (), pattern), ""
    needle = query.text
    pattern = re.compile(re.escape(needle))

    def find(text: str) -> tuple[int, int] | None:
        at = text.find(needle)
        return None if at < 0 else (at, at + len(needle))

    return _Looking(find, holds(needle), inner_words(needle), pattern), ""


def _span(match: re.Match[str] | None) -> tuple[int, int] | None:
    return None if match is None else match.span()


def _surest(pattern: str) -> str:
    """The longest run of letters and digits of a simple pattern; the last of a run before ``+`` may come again."""
    return max(_RUN.findall(pattern), key=len, default="")


def inner_words(needle: str) -> tuple[str, ...]:
    """The words of a text that stand whole, as the index has them, in every text that holds it: those at its ends may be
    pieces of longer ones. Only for ASCII, where it is certain what a word is."""
    if not needle.isascii():
        return ()
    text = split(needle)
    found = [
        match.group() for match in re.finditer(r"[A-Za-z0-9]+", text) if match.start() > 0 and match.end() < len(text)
    ]
    return tuple(dict.fromkeys(found))


@contextmanager
def _bounded(deadline: float, on: bool) -> Iterator[None]:
    """End a match that runs past the deadline: the matcher looks for signals now and then."""
    if not on or threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(number: int, frame: Any) -> None:
        raise _Late

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(0.05, deadline + 0.5 - time.monotonic()))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _Entries:
    """The entries that may hold a text, the last taken in first; below row number ``at`` nothing was looked at yet."""

    def __init__(
        self, store: Store, index: Index | None, scope: Scope, looking: _Looking, deadline: float, below: int
    ) -> None:
        self.store, self.index, self.scope, self.looking, self.deadline = store, index, scope, looking, deadline
        self.below = below
        self.at = below
        self.done = False
        self.looked = self.total = 0

    def all(self) -> Iterator[tuple[StoredSession, Entry, Context]]:
        """Yield them until there are no more, or no more time; ``done`` says which."""
        reaches = self.index.search.reaches() if self.index is not None else {}
        narrow = self.index is not None and self._tells()
        for stored in sorted(self.scope.sessions, key=lambda one: -one.no):
            if self.below and row_number(stored.no, 0) >= self.below:
                continue
            indexed = min(reaches.get(stored.no, -1), stored.last_seq) if narrow else -1
            yield from self._scanned(Stretch(stored, indexed + 1, stored.last_seq))
            if self._late:
                return
            if indexed >= 0 and self.index is not None:
                yield from self._indexed(self.index, stored, indexed)
                if self._late:
                    return
        self.done = True

    _late = False

    def _tells(self) -> bool:
        """True if the words of the text leave few entries to look at."""
        if self.index is None or not self.looking.words:
            return False
        return any(self.index.search.count(Term((word,))) <= COMMON for word in self.looking.words)

    def _scanned(self, stretch: Stretch) -> Iterator[tuple[StoredSession, Entry, Context]]:
        if stretch.first > stretch.last:
            return
        scan = Scan(self.store, [stretch], self.scope.wanted._replace(below=self.below), self.deadline)
        for stored, entry in scan.entries(self.looking.test):
            self.at = row_number(
                stored.no, entry.seq
            )  # where an expression takes too long, the next page goes on below it
            if self.looking.find(entry.text) is not None:
                context = self._context(stored, entry)
                if self.scope.allows(context):
                    yield stored, entry, context
        self.looked += scan.looked
        self.total += scan.total
        self.at = scan.at or self.at
        self._late = not scan.done

    def _indexed(
        self, index: Index, stored: StoredSession, last: int
    ) -> Iterator[tuple[StoredSession, Entry, Context]]:
        top = row_number(stored.no, last + 1)
        below = min(self.below, top) if self.below else top
        filter_ = self.scope.filter._replace(sessions=frozenset((stored.no,)), below=below)
        numbers = list(index.search.holding(self.looking.words, filter_))
        for start in range(0, len(numbers), BATCH):
            part = numbers[start : start + BATCH]
            facets = index.search.facets(part)
            rows = rows_by_number(self.store.archive, part)
            for number in part:
                if time.monotonic() >= self.deadline:
                    self._late = True
                    return
                self.at = number
                row = rows.get(number)
                if row is not None and row.replaced_by is None:
                    for entry in read_entries(self.store, stored, [row], lost=True):
                        yield stored, entry, _of_facet(facets.get(number))

    def _context(self, stored: StoredSession, entry: Entry) -> Context:
        """What the entry is part of, from the index where it is there."""
        if self.index is not None:
            facet = self.index.search.facets([row_number(stored.no, entry.seq)])
            if facet:
                return _of_facet(next(iter(facet.values())))
        return context_of(self.store, stored, entry)

    def share(self) -> str:
        """How far it got, in words."""
        if not self.total:
            return "a part of the record"
        return f"the newest {self.looked / 1e6:.0f} of at least {self.total / 1e6:.0f} MB"


def _of_facet(facet: Facet | None) -> Context:
    return Context() if facet is None else Context(facet.tool, bool(facet.flags & 1), facet.paths)


def _hit(store: Store, stored: StoredSession, entry: Entry, context: Context, looking: _Looking) -> Hit:
    piece = snippet(entry.text, looking.pattern, store.mask)
    session = stored.session
    name = f"{session.handle}.{entry.seq}"
    tool = context.tool or entry.tool
    return Hit(name, session.handle, session.harness, entry.kind, entry.speaker, entry.at, tool, piece, 1.0)


def _notes(store: Store, scope: Scope, looking: _Looking, limit: int, said: str) -> tuple[list[Hit], str]:
    """The newest notes that hold the text, which stand before the entries; they leave room for those."""
    handles = {one.session.handle: one.session.harness for one in scope.sessions}
    notes = notes_holding(store.memory, [], handles, scope.filter.since, scope.filter.until, most=ALL)
    found = [one for one in notes if looking.find(one.note.text) is not None]
    if scope.filter.paths:
        found = [one for one in found if any(path.lower() in one.note.text.lower() for path in scope.filter.paths)]
    dropped = dropped_among(store.memory, found)
    room = max(1, limit // 2) if scope.entries else limit
    hits = []
    for one in found[:room]:
        note = one.note
        speaker = {"user": "human"}.get(note.evidence, note.evidence)
        piece = snippet(note.text, looking.pattern, store.mask) + _mark(note.id in dropped)
        hits.append(Hit(note.id, one.session, handles[one.session], "note", speaker, note.at, "", piece, 1.0))
    if len(found) > room:
        said = f"{said} {len(found) - room} more notes hold it.".strip()
    return hits, said


def _mark(dropped: bool) -> str:
    return " (dropped: no longer in the block)" if dropped else ""
