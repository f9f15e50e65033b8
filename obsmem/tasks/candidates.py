"""Choosing the texts that may answer a question: from the index, from what is not indexed yet, and from the notes.

Invariants: what is not indexed is put into tables of the same make in memory, so that stems, phrases and ranks mean the
same in both; rare words choose, frequent ones only count once something is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from obsmem.core.errors import StoreError
from obsmem.core.identifiers import Term, light_stem, pattern_of, split, whole_names
from obsmem.core.ids import is_entry_id, parse_entry_id
from obsmem.core.tuples import NamedTuple
from obsmem.memory.ranking import Candidate, rarity
from obsmem.store.archive_rows import EntryRow
from obsmem.store.archive_scan import rows_by_number
from obsmem.store.archive_schema import SEQ_BITS, row_number
from obsmem.store.index import Index
from obsmem.store.memory import StoredNote
from obsmem.store.memory_search import MOST_NOTES, dropped_among, notes_holding
from obsmem.store.search import COMMON, Filter, Match, Search, WordRow
from obsmem.tasks.entries import read_entries
from obsmem.tasks.scan import Scan, Stretch, context_of, holds_words
from obsmem.tasks.search_scope import Scope
from obsmem.tasks.store import Store
from obsmem.tasks.word_rows import text_hash, word_rows

CHOSEN = 150  # candidates of one kind of choice that are ranked
POOLED = 400  # entries that are not indexed yet and are ranked with the others; the newest
NOTES_CHOSEN = 100
PHRASES_CHECKED = 40  # texts that are read to see whether they hold a quoted phrase
LEAST_START = 3  # letters of a word whose beginning alone may choose
NOTE_KEY = 1 << 62  # notes stand behind all entries in the order of equals


class Pools:
    """What was chosen, and what is known of it. ``weights`` are those of the terms; ``hashes`` of texts, ``tools``, ``rows`` and
    ``notes`` by id; ``complete`` and ``message`` say what was not looked at. ``deciding`` are the terms (as bits) that chose,
    ``starts`` is True where their beginnings did, too, and ``left_notes`` where there are more notes than were ranked."""

    def __init__(self, index: Index | None, scope: Scope, terms: Sequence[Term]) -> None:
        self.index = index
        self.terms = terms
        self.weights: list[float] = [term.weight for term in terms]
        self.counts: list[int] = [0] * len(terms)
        self.candidates: list[Candidate] = []
        self.hashes: dict[str, int] = {}
        self.tools: dict[str, str] = {}
        self.rows: dict[str, EntryRow] = {}
        self.notes: dict[str, StoredNote] = {}
        self.complete = True
        self.message = ""
        self.deciding = 0
        self.starts = self.left_notes = False
        self.sessions = {one.no: one for one in scope.everything}
        self.harnesses = {one.session.handle: one.session.harness for one in self.sessions.values()}

    def harness_of(self, handle: str) -> str:
        """The harness of a session, '' where it is not in the archive any more."""
        return self.harnesses.get(handle, "")


class _Choice(NamedTuple):
    """Candidates of one set of tables. ``begun`` is True where some were chosen because a word only begins with a term."""

    search: Search
    matches: dict[int, Match]
    counts: Sequence[int]
    begun: bool = False


def usable_index(store: Store) -> Index | None:
    """The index where there is one that answers; None where it was never made, or is damaged and may not be made anew."""
    try:
        index = store.index
    except StoreError:
        return None
    return index if index.searchable else None


def gather(
    store: Store,
    index: Index | None,
    scope: Scope,
    terms: Sequence[Term],
    deadline: float,
    *,
    wanted: Sequence[str] = (),
) -> Pools:
    """Everything that may answer; with ``wanted`` only what these ids name."""
    pools = Pools(index, scope, terms)
    total = index.search.total() if index is not None else 0
    counts = [index.search.count(term) for term in terms] if index is not None else [0] * len(terms)
    pools.counts = counts
    pools.weights = [term.weight * rarity(count, total) for term, count in zip(terms, counts, strict=True)]
    if wanted:
        pools.candidates = _by_name(store, pools, wanted)
        return pools
    if scope.entries:
        if index is not None:
            _take_entries(store, pools, _choose(index.search, terms, counts, scope.filter, pools), terms)
        pool = _pool_unindexed(store, index, scope, terms, deadline, pools)
        if pool is not None:
            _take_entries(store, pools, _choose(pool, terms, [1] * len(terms), scope.filter, pools), terms)
    if scope.notes:
        _take_notes(store, pools, scope, terms)
    return pools


def _choose(search: Search, terms: Sequence[Term], counts: Sequence[int], filter_: Filter, pools: Pools) -> _Choice:
    """The rows that are worth ranking; ``pools`` learns which terms chose them."""
    if not terms:
        return _Choice(search, {match.no: match for match in search.newest(filter_, CHOSEN)}, counts)
    there = [(term, count) for term, count in zip(terms, counts, strict=True) if count]
    rare = [term for term, count in there if count <= COMMON]
    found: dict[int, Match] = {}
    if rare:
        found.update((match.no, match) for match in search.matches(rare, filter_, CHOSEN))
    common = [term for term, count in there if count > COMMON]
    deciding = list(rare)
    if common and len(found) < CHOSEN // 4:
        deciding += common
        for match in search.frequent(common, filter_, CHOSEN):
            found.setdefault(match.no, match)
    if len(rare) > 1 and len(found) >= CHOSEN:
        # What holds every word must not be lost behind many that hold one of them often.
        for match in search.matches(rare, filter_, CHOSEN // 2, every=True):
            found[match.no] = match
    pools.deciding |= sum(1 << number for number, term in enumerate(terms) if term in deciding)
    begun = len(found) < CHOSEN // 10
    if begun:
        pools.starts = True
        for term in terms:
            if len(term.parts) == 1 and len(term.parts[0]) >= LEAST_START:
                for match in search.starting(term.parts[0], filter_, CHOSEN // 4):
                    found.setdefault(match.no, match)
    return _Choice(search, found, counts, begun)


def _take_entries(store: Store, pools: Pools, choice: _Choice, terms: Sequence[Term]) -> None:
    """Make candidates of chosen rows: who spoke, which terms they hold, which paths they name."""
    numbers = list(choice.matches)
    best = max((match.bm25 for match in choice.matches.values()), default=0.0)
    held = _held(choice, terms, numbers)
    facets = choice.search.facets(numbers)
    rows = rows_by_number(store.archive, numbers)
    for number, match in choice.matches.items():
        row, facet = rows.get(number), facets.get(number)
        stored = pools.sessions.get(number >> SEQ_BITS)
        if row is None or facet is None or stored is None or row.replaced_by is not None:
            continue
        name = f"{stored.session.handle}.{row.seq}"
        if name in pools.hashes:
            continue
        pools.hashes[name] = facet.hash
        pools.tools[name] = facet.tool
        pools.rows[name] = row
        pools.candidates.append(
            Candidate(
                (row.at, number), name, row.at, row.kind, row.speaker, held.get(number, frozenset()),
                match.bm25 / best if best > 0 else 0.0, facet.paths, copies=match.copies,
            )
        )  # fmt: skip


def _held(choice: _Choice, terms: Sequence[Term], numbers: Sequence[int]) -> dict[int, frozenset[int]]:
    """Row number -> the terms (by position) that it holds. Whatever was chosen because a word only begins so holds none."""
    if len(terms) == 1 and not choice.begun:  # nothing else chose
        return dict.fromkeys(numbers, frozenset((0,)))
    held: dict[int, set[int]] = {number: set() for number in numbers}
    for index, (term, count) in enumerate(zip(terms, choice.counts, strict=True)):
        for number in choice.search.among(term, numbers, count) if count else ():
            held[number].add(index)
    return {number: frozenset(indexes) for number, indexes in held.items()}


def _pool_unindexed(
    store: Store, index: Index | None, scope: Scope, terms: Sequence[Term], deadline: float, pools: Pools
) -> Search | None:
    """What is not indexed yet of the scope, newest first, in tables of its own; None where all of it is indexed."""
    reaches = index.search.reaches() if index is not None else {}
    stretches = [
        Stretch(one, reaches.get(one.no, -1) + 1, one.last_seq)
        for one in scope.sessions
        if reaches.get(one.no, -1) < one.last_seq
    ]
    if not stretches:
        return None
    scan = Scan(store, stretches, scope.wanted, deadline)
    pool = Search.in_memory()
    count = 0
    pattern = pattern_of(terms) if terms else None
    for stored, entry in scan.entries(holds_words(terms) if terms else lambda data: True):
        if pattern is not None and pattern.search(entry.text) is None:
            continue
        context = context_of(store, stored, entry)
        if not scope.allows(context):
            continue
        calls = {entry.call_id: [context.tool, context.own, list(context.paths)]} if entry.call_id else {}
        pool.add(word_rows(store, stored, [entry], calls))
        count += 1
        if count == POOLED:
            break
    pools.complete = scan.done and count < POOLED
    waiting = sum(stretch.last - stretch.first + 1 for stretch in stretches)
    looked = "all of them were" if pools.complete else f"the newest {_share(scan)} of them were"
    pools.message = f"{waiting} entries are not indexed yet; {looked} looked through directly."
    if not pools.complete:
        pools.message += " 'observational-memory index' makes all of them findable."
    return pool


def _share(scan: Scan) -> str:
    return f"{scan.looked / 1e6:.0f} of {scan.total / 1e6:.0f} MB"


def _take_notes(store: Store, pools: Pools, scope: Scope, terms: Sequence[Term]) -> None:
    """Notes of the scope that hold words of the question; dropped ones are marked."""
    found = notes_of(store, scope, terms)
    if not found:
        return
    dropped = dropped_among(store.memory, found)
    search = Search.in_memory()
    search.add(note_row(number, one) for number, one in enumerate(found))
    choice = _choose(search, terms, [1] * len(terms), Filter(), pools)
    chosen = choice.matches
    pools.left_notes = len(found) >= MOST_NOTES or len(chosen) > NOTES_CHOSEN
    numbers = sorted(chosen, key=lambda number: (-chosen[number].bm25, number))[:NOTES_CHOSEN]
    held = _held(choice, terms, numbers)
    best = max((chosen[number].bm25 for number in numbers), default=0.0)
    for number in numbers:
        one = found[number]
        pools.notes[one.note.id] = one
        pools.hashes[one.note.id] = text_hash(one.note.text)
        pools.candidates.append(
            Candidate(
                (one.note.at, NOTE_KEY + number), one.note.id, one.note.at, "note", _VOICES[one.note.evidence],
                held.get(number, frozenset()), chosen[number].bm25 / best if best > 0 else 0.0,
                dropped=one.note.id in dropped, copies=chosen[number].copies,
            )
        )  # fmt: skip


_VOICES = {"user": "human", "tool": "tool", "agent": "agent"}


def notes_of(store: Store, scope: Scope, terms: Sequence[Term], most: int = MOST_NOTES) -> list[StoredNote]:
    """The newest notes of the scope that hold a word of the question, or one that begins so."""
    handles = {one.session.handle for one in scope.sessions}
    stems = dict.fromkeys(light_stem(part) for term in terms for part in term.parts)
    found = notes_holding(store.memory, list(stems), handles, scope.filter.since, scope.filter.until, most)
    if scope.filter.paths:
        found = [one for one in found if any(path.lower() in one.note.text.lower() for path in scope.filter.paths)]
    return found


def note_row(number: int, one: StoredNote) -> WordRow:
    """A note as it would be indexed."""
    text = one.note.text
    names = " ".join(whole_names(text))
    return WordRow(number, "human", split(text), names, one.note.at, "user", "", 0, text_hash(text))


def named(store: Store, pools: Pools, scope: Scope, names: Iterable[str]) -> list[Candidate]:
    """Candidates for ids that something else than words found; what the scope leaves out is left out."""
    found = _by_name(store, pools, list(names))
    return [one for one in found if one.kind == "note" or _allowed(store, pools, scope, one)]


def _allowed(store: Store, pools: Pools, scope: Scope, one: Candidate) -> bool:
    row, hidden = pools.rows[one.id], scope.filter.hidden
    stored = pools.sessions[row.no >> SEQ_BITS]
    if stored.no not in [session.no for session in scope.sessions] or (hidden and hidden[0] <= row.no <= hidden[1]):
        return False
    entries = read_entries(store, stored, [row], lost=True)
    return bool(entries) and scope.allows(context_of(store, stored, entries[0]))


def _by_name(store: Store, pools: Pools, names: Sequence[str]) -> list[Candidate]:
    """Candidates for ids, in their order; those that are gone or replaced by now are left out."""
    index = pools.index
    handles = {one.session.handle: one for one in pools.sessions.values()}
    wanted: dict[int, str] = {}
    for name in names:
        if is_entry_id(name) and parse_entry_id(name)[0] in handles:
            handle, seq = parse_entry_id(name)
            wanted[row_number(handles[handle].no, seq)] = name
    numbers = list(wanted)
    rows = {no: row for no, row in rows_by_number(store.archive, numbers).items() if row.replaced_by is None}
    facets = index.search.facets(numbers) if index is not None else {}
    held = {}
    if index is not None:
        held = _held(_Choice(index.search, {}, pools.counts, begun=True), pools.terms, numbers)
    found = {}
    for number, row in rows.items():
        facet = facets.get(number)
        pools.rows[wanted[number]] = row
        if facet is not None:
            pools.hashes[wanted[number]], pools.tools[wanted[number]] = facet.hash, facet.tool
        found[wanted[number]] = _plain(row, wanted[number], held.get(number, frozenset()), facet.paths if facet else ())
    notes = store.memory.notes_by_id([name for name in names if not is_entry_id(name)])
    dropped = dropped_among(store.memory, notes)
    for one in notes:
        pools.notes[one.note.id] = one
        found[one.note.id] = Candidate(
            (one.note.at, NOTE_KEY), one.note.id, one.note.at, "note", _VOICES[one.note.evidence], frozenset(),
            dropped=one.note.id in dropped,
        )  # fmt: skip
    return [found[name] for name in names if name in found]


def _plain(row: EntryRow, name: str, held: frozenset[int], paths: tuple[str, ...]) -> Candidate:
    return Candidate((row.at, row.no), name, row.at, row.kind, row.speaker, held, paths=paths)


def with_phrases(store: Store, pools: Pools, candidates: Sequence[Candidate], terms: Sequence[Term]) -> list[Candidate]:
    """The candidates with the share of quoted phrases that their texts really hold; only the first are read."""
    phrases = [_folded(term.quoted) for term in terms if term.quoted]
    found = []
    for number, one in enumerate(candidates):
        share = 0.0
        if number < PHRASES_CHECKED:
            text = _folded(_text(store, pools, one))
            share = sum(phrase in text for phrase in phrases) / len(phrases)
        found.append(one._replace(phrases=share))
    return found


def _text(store: Store, pools: Pools, one: Candidate) -> str:
    note = pools.notes.get(one.id)
    if note is not None:
        return note.note.text
    row = pools.rows[one.id]
    stored = pools.sessions[row.no >> SEQ_BITS]
    return "".join(entry.text for entry in read_entries(store, stored, [row], lost=True))


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
