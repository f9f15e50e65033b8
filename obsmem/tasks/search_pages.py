"""The pages of a search by words: the best hits that the first answer ranked, then everything else that holds its words.

Invariants: a token holds the next ranked ids themselves, what was shown, and where to go on, so that what arrives meanwhile
moves nothing; no hit comes twice; behind the ranked ones every note and entry comes that holds a word by which the first
answer chose, unless a hit that was shown says the same. Equal texts of one page are one hit.
"""

from __future__ import annotations

import binascii
import zlib
from collections.abc import Iterator, Sequence

from obsmem.core.errors import UsageError
from obsmem.core.identifiers import Term, pattern_of
from obsmem.core.ids import is_entry_id, parse_entry_id
from obsmem.core.tuples import NamedTuple
from obsmem.store.archive_scan import rows_by_number
from obsmem.store.archive_schema import SEQ_BITS, row_number
from obsmem.store.index import Index
from obsmem.store.search import Filter, Search, word_expression
from obsmem.tasks.candidates import LEAST_START, note_row, notes_of
from obsmem.tasks.entries import read_entries
from obsmem.tasks.scan import Scan, Stretch, context_of, holds_words
from obsmem.tasks.search_scope import Scope, no_token
from obsmem.tasks.store import Store
from obsmem.tasks.word_rows import text_hash, word_rows

PAGED = 30  # ranked hits that a token can name
PROBED = 2_000  # rows that are looked at to see whether there is anything behind the ranked ones
LONGEST_TOKEN = 6_000  # characters, and a hundred times as many bytes inside
ALL = 1 << 30  # notes
NOTES, EVERY, ANY = 0, 1, 2  # stages: notes; entries that hold all of the words; those that hold one

_TO_TOKEN, _FROM_TOKEN = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")

Named = tuple[str, int]  # an id, and how many equal texts are not shown


class Rest(NamedTuple):
    """What comes behind the ranked hits. ``place`` is where its ``stage`` goes on ('' for the beginning); ``terms`` are the
    words by which the first answer chose, as bits by position; ``starts`` is True where their beginnings counted too;
    ``shown`` are the ids that were shown, or are named before this."""

    stage: int
    place: str
    terms: int
    starts: bool
    shown: tuple[str, ...]


class Page(NamedTuple):
    """What a token holds: the next ranked hits, and what comes behind them (None: nothing)."""

    names: tuple[Named, ...]
    rest: Rest | None = None


def page_token(page: Page) -> str:
    """The token of a page; '' for one without anything."""
    if not page.names and page.rest is None:
        return ""
    names = " ".join(f"{name}*{also}" if also else name for name, also in page.names)
    pieces = [names]
    if page.rest is not None:
        rest = page.rest
        pieces += [f"{rest.stage} {rest.place or '-'} {rest.terms:x} {rest.starts:d}", " ".join(rest.shown)]
    # base64 in the alphabet of file names, without the module that is slow to load.
    data = binascii.b2a_base64(zlib.compress("|".join(pieces).encode("ascii"), 9), newline=False)
    return "p" + data.translate(_TO_TOKEN).decode().rstrip("=")


def read_page(token: str) -> Page:
    """What a token holds. Raises UsageError where it is none of ours."""
    try:
        if not token.startswith("p") or len(token) > LONGEST_TOKEN:
            raise ValueError(token)
        text = token[1:].encode("ascii").translate(_FROM_TOKEN)
        data = binascii.a2b_base64(text + b"=" * (-len(text) % 4))
        unfolded = zlib.decompressobj()
        names, *more = unfolded.decompress(data, LONGEST_TOKEN * 100).decode("ascii").split("|")
        if not unfolded.eof:
            raise ValueError(token)
        found = tuple((name, int(also or 0)) for name, _, also in (one.partition("*") for one in names.split()))
        return Page(found, _read_rest(*more) if more else None)
    except (ValueError, TypeError, binascii.Error, zlib.error):
        raise no_token(token) from None


def _read_rest(state: str, shown: str) -> Rest:
    stage, place, terms, starts = state.split(" ")
    if stage not in ("0", "1", "2"):
        raise ValueError(stage)
    return Rest(int(stage), place if place != "-" else "", int(terms, 16), starts == "1", tuple(shown.split()))


class Behind:
    """What comes behind the ranked hits, page by page. ``rest`` says where the next one goes on, None at the end; ``late``
    is True where the time was over before a page was full."""

    def __init__(
        self, store: Store, index: Index | None, scope: Scope, terms: Sequence[Term], rest: Rest, deadline: float
    ) -> None:
        self.store, self.index, self.scope, self.terms, self.deadline = store, index, scope, terms, deadline
        self.rest: Rest | None = rest
        self.late = False
        self._sessions = {one.no: one.session.handle for one in scope.sessions}
        self._shown = _hashes(store, index, rest.shown)

    def take(self, count: int) -> list[Named]:
        """The next hits."""
        found: dict[int, list[str | int]] = {}
        while self.rest is not None and not self.late:
            for name, hash_, place, is_near in self._rows(self.rest):
                if hash_ in found:
                    found[hash_][1] = int(found[hash_][1]) + 1
                elif hash_ not in self._shown:
                    if len(found) == count:
                        return _named(found)
                    found[hash_] = [name, 0]
                self.rest = self.rest._replace(place=place)
                if len(found) == count and not is_near:
                    return _named(found)  # to see whether more comes would be another long look
            if not self.late:
                self.rest = self.rest._replace(stage=self.rest.stage + 1, place="") if self.rest.stage < ANY else None
        return _named(found)

    def is_empty(self) -> bool:
        """True if nothing that is indexed comes behind the ranked hits, as far as a short look shows."""
        assert self.rest is not None
        expression = self._expression(self.rest._replace(stage=ANY), whole=True)
        if self.index is None or not self.scope.entries or expression is None:
            return True
        for count, (_, hash_) in enumerate(self.index.search.rows_holding(expression, self.scope.filter)):
            if hash_ not in self._shown or count >= PROBED:
                return False
        return True

    def _rows(self, rest: Rest) -> Iterator[tuple[str, int, str, bool]]:
        """(id, hash of the text, place, whether it was quick to find) of what a stage has from its place on."""
        if rest.stage == NOTES:
            yield from self._notes(rest)
            return
        expression = self._expression(rest)
        if not self.scope.entries or expression is None:
            return
        for number, hash_, is_near in self._entries(expression, _number(rest.place)):
            handle = self._sessions.get(number >> SEQ_BITS)
            if handle is not None:
                yield f"{handle}.{number & ((1 << SEQ_BITS) - 1)}", hash_, f"{number:x}", is_near

    def _expression(self, rest: Rest, *, whole: bool = False) -> str | None:
        """What a stage looks for; None for nothing, '' where no word was asked for. ``whole``: with what came before."""
        words = [word_expression(term) for number, term in enumerate(self.terms) if rest.terms >> number & 1]
        every = " AND ".join(words) if len(words) > 1 else ""
        if rest.stage == EVERY:
            return every or None
        if not self.terms:
            return ""
        if rest.starts:
            words += [f'"{term.parts[0]}" *' for term in self.terms if _may_begin(term)]
        one = " OR ".join(words)
        return (f"({one}) NOT ({every})" if every and not whole else one) or None

    def _entries(self, expression: str, below: int) -> Iterator[tuple[int, int, bool]]:
        """(row number, hash, whether it came from the index), the last first."""
        reaches = self.index.search.reaches() if self.index is not None else {}
        top = below
        for stored in sorted(self.scope.sessions, key=lambda one: -one.no):
            first = row_number(stored.no, reaches.get(stored.no, -1) + 1)
            end = row_number(stored.no, stored.last_seq + 1)
            if first >= end or (top and first >= top):
                continue
            yield from self._indexed(expression, top, min(end, top or end))
            stretch = Stretch(stored, first & ((1 << SEQ_BITS) - 1), stored.last_seq)
            yield from self._scanned(expression, stretch, top)
            if self.late:
                return
            top = first
        yield from self._indexed(expression, top, 0)

    def _indexed(self, expression: str, top: int, low: int) -> Iterator[tuple[int, int, bool]]:
        if self.index is None or (top and top <= low):
            return
        for number, hash_ in self.index.search.rows_holding(expression, self.scope.filter._replace(below=top)):
            if number < low:
                break
            yield number, hash_, True

    def _scanned(self, expression: str, stretch: Stretch, top: int) -> Iterator[tuple[int, int, bool]]:
        scan = Scan(self.store, [stretch], self.scope.wanted._replace(below=top), self.deadline)
        pattern = pattern_of(self.terms) if self.terms else None
        pool = Search.in_memory()
        for stored, entry in scan.entries(holds_words(self.terms) if self.terms else lambda data: True):
            if pattern is not None and pattern.search(entry.text) is None:
                continue
            context = context_of(self.store, stored, entry)
            if not self.scope.allows(context):
                continue
            calls = {entry.call_id: [context.tool, context.own, list(context.paths)]} if entry.call_id else {}
            (row,) = word_rows(self.store, stored, [entry], calls)
            pool.add([row])
            if next(pool.rows_holding(expression, Filter(own=True, below=row.no + 1)), (0, 0))[0] == row.no:
                yield row.no, row.hash, False
        if not scan.done:
            self.late = True
            assert self.rest is not None
            self.rest = self.rest._replace(place=f"{scan.at or top:x}")

    def _notes(self, rest: Rest) -> Iterator[tuple[str, int, str, bool]]:
        if not self.scope.notes:
            return
        found = notes_of(self.store, self.scope, self.terms, ALL)
        pool = Search.in_memory()
        pool.add(note_row(number, one) for number, one in enumerate(found, 1))
        expression = self._expression(rest._replace(stage=ANY, terms=(1 << len(self.terms)) - 1), whole=True)
        held = {number for number, _ in pool.rows_holding(expression or "", Filter())}
        at, _, last = rest.place.partition(".")
        passed = not rest.place
        is_there = any(one.note.id == last for one in found)
        for number, one in enumerate(found, 1):
            if (passed or (not is_there and one.note.at < int(at))) and number in held:
                yield one.note.id, text_hash(one.note.text), f"{one.note.at}.{one.note.id}", True
            passed = passed or one.note.id == last


def _may_begin(term: Term) -> bool:
    return len(term.parts) == 1 and len(term.parts[0]) >= LEAST_START


def _named(found: dict[int, list[str | int]]) -> list[Named]:
    return [(str(name), int(also)) for name, also in found.values()]


def _number(place: str) -> int:
    try:
        return int(place, 16) if place else 0
    except ValueError:
        raise UsageError(f"{place!r} is no place in this search: give the 'more' of the page before.") from None


def _hashes(store: Store, index: Index | None, names: Sequence[str]) -> frozenset[int]:
    """The hashes of the texts that were shown."""
    found = {text_hash(one.note.text) for one in store.memory.notes_by_id([n for n in names if not is_entry_id(n)])}
    handles = {one.session.handle: one for one in store.archive.sessions()}
    wanted = {}
    for name in names:
        if is_entry_id(name) and parse_entry_id(name)[0] in handles:
            handle, seq = parse_entry_id(name)
            wanted[row_number(handles[handle].no, seq)] = handles[handle]
    facets = index.search.facets(list(wanted)) if index is not None else {}
    found |= {facet.hash for facet in facets.values()}
    rows = rows_by_number(store.archive, [number for number in wanted if number not in facets])
    for number, row in rows.items():
        found |= {text_hash(entry.text) for entry in read_entries(store, wanted[number], [row], lost=True)}
    return frozenset(found)
