"""Searching entries and notes: one question in, one answer out, whatever the question.

Invariants: any text is a valid question; filters hold while candidates are chosen; what is not indexed yet is looked
through directly until a deadline, and the answer says what was not; a snippet is masked; the same store and question give
the same answer.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Mapping, Sequence

from obsmem.core.clock import Clock
from obsmem.core.dates import take_date
from obsmem.core.finds import Hit, Hits, Query
from obsmem.core.identifiers import Term, pattern_of, read_terms
from obsmem.core.model import Entry
from obsmem.core.tuples import NamedTuple
from obsmem.memory.ranking import VECTORS_COUNT, Ranked, collapse, join_rankings, rank
from obsmem.memory.snippet import snippet
from obsmem.store.archive_rows import EntryRow
from obsmem.store.archive_schema import SEQ_BITS
from obsmem.store.index import Index
from obsmem.store.schema import is_damage
from obsmem.system.local_time import local_clock
from obsmem.tasks.candidates import Pools, gather, named, usable_index, with_phrases
from obsmem.tasks.entries import read_entries
from obsmem.tasks.outdated import mark_outdated
from obsmem.tasks.scan import telling_terms
from obsmem.tasks.search_pages import PAGED, Behind, Named, Page, Rest, page_token, read_page
from obsmem.tasks.search_scope import Scope, make_scope
from obsmem.tasks.store import Store

SECONDS = 6.0  # that what is not indexed yet is looked through, or all that a scan takes

Ranking = Sequence[str]  # ids of entries and notes, best first


def search(
    store: Store,
    query: Query,
    more_rankings: Sequence[Ranking] = (),
    *,
    now: int = 0,
    clock: Clock = local_clock,
    seconds: float = SECONDS,
    is_watched: bool = False,
) -> Hits:
    """Find what a query asks for, best first (``exact`` and ``regex``: newest first).

    ``more_rankings`` is the seam for other signals: each is an ordered list of ids (entries and notes), best first, that
    already keeps to the query's sessions, kinds and times. They are joined with the ranking by words by reciprocal rank, and
    ``Hit.score`` is then that sum; a hit that only they name is shown like any other. ``now`` (milliseconds) and ``clock`` are
    what "yesterday" is reckoned from; ``seconds`` bounds what is looked through without the index. ``is_watched`` says that
    somebody ends this process when an expression does not: else one runs only where ``can_end`` holds. Never raises for
    ``query.text``; raises NotFound and UsageError for filters that name nothing.
    """
    now = now or int(time.time() * 1000)
    said = ""
    if query.mode == "words":
        query, said = _without_date(query, now, clock)
    scope = make_scope(store, query)
    near, lacking = _nearest(store, query, scope)
    others = (*((ranking, 1.0) for ranking in more_rankings), *[(near, VECTORS_COUNT)] * bool(near))
    may_match = is_watched or (query.mode == "regex" and can_end())
    asked = _Asked(query, scope, others, now, seconds, may_match)
    try:
        hits = _answer(store, usable_index(store), asked)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        hits = _answer(store, None, asked)
        said = f"{said} The index is damaged: 'observational-memory fsck --repair' makes it anew.".strip()
    message = " ".join(part for part in (said, lacking, hits.message) if part)
    return hits._replace(hits=mark_outdated(store, hits.hits), message=message)


def _nearest(store: Store, query: Query, scope: Scope) -> tuple[Ranking, str]:
    """The ranking by vectors, where they are configured, and what has to be said about it."""
    if not store.config["embeddings"]:
        return [], ""
    from obsmem.tasks.vectors import nearest

    return nearest(store, query, scope)


class _Asked(NamedTuple):
    query: Query
    scope: Scope
    more_rankings: tuple[tuple[Ranking, float], ...]  # each with what it counts beside the words
    now: int
    seconds: float
    may_match: bool


def can_end() -> bool:
    """True where an expression that runs past its deadline can be ended from within: the machine has a timer that rings in
    the main thread, and this is it."""
    import signal
    import threading

    return threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")


def _answer(store: Store, index: Index | None, asked: _Asked) -> Hits:
    query, deadline = asked.query, time.monotonic() + asked.seconds
    terms = read_terms(query.text) if query.mode == "words" else []
    if query.mode != "words" or (not terms and query.text.strip()):
        from obsmem.tasks.search_text import search_text  # words go another way

        return search_text(store, index, query, asked.scope, deadline, may_match=asked.may_match)
    return _search_words(store, index, asked, terms, deadline)


def _without_date(query: Query, now: int, clock: Clock) -> tuple[Query, str]:
    """A date among the words becomes a filter, unless the query has bounds already."""
    if query.since or query.until:
        return query, ""
    text, since, until = take_date(query.text, now, clock)
    if not (since or until):
        return query, ""
    bounds = [f"from {clock(since)}"] * bool(since) + [f"to {clock(until)}"] * bool(until)
    said = f"Only what was said {' '.join(bounds)}: put the date in quotation marks to look for it as words."
    return query._replace(text=text, since=since, until=until), said


def _search_words(store: Store, index: Index | None, asked: _Asked, terms: list[Term], deadline: float) -> Hits:
    query, scope, now = asked.query, asked.scope, asked.now
    if query.after:
        return _next_page(store, index, asked, terms, deadline)
    pools = gather(store, index, scope, terms, deadline)
    paths = _paths(query)
    candidates = pools.candidates
    if any(term.quoted for term in terms):
        first = rank(candidates, pools.weights, paths, now)
        candidates = with_phrases(store, pools, [one.candidate for one in first], terms)
    ranked = _joined(store, pools, scope, rank(candidates, pools.weights, paths, now), asked.more_rankings, now)
    kept = collapse(ranked, pools.hashes)
    hits, left = _shown(store, pools, kept, terms, max(1, query.limit))
    names = tuple((one.candidate.id, also) for one, also in left[:PAGED])
    shown = [hit.id for hit in hits] + [name for name, _ in names]
    deciding = pools.deciding & telling_terms(terms) or pools.deciding
    rest = Rest(0, "", deciding, pools.starts, tuple(shown))
    is_more = len(left) > PAGED or pools.left_notes or not pools.complete
    if not is_more and (not pools.candidates or Behind(store, index, scope, terms, rest, deadline).is_empty()):
        return Hits(tuple(hits), pools.complete, pools.message, page_token(Page(names)))
    return Hits(tuple(hits), pools.complete, pools.message, page_token(Page(names, rest)))


def _next_page(store: Store, index: Index | None, asked: _Asked, terms: list[Term], deadline: float) -> Hits:
    """What a token names, as it stands there, and what comes behind it."""
    query, page = asked.query, read_page(asked.query.after)
    limit = max(1, query.limit)
    hits, left = _by_names(store, index, asked, terms, page.names, limit)
    names = tuple((one.candidate.id, also) for one, also in left)
    behind = Behind(store, index, asked.scope, terms, page.rest, deadline) if page.rest is not None else None
    late = False
    while behind is not None and behind.rest is not None and len(hits) < limit and not behind.late:
        taken = behind.take(limit - len(hits))
        hits += _by_names(store, index, asked, terms, taken, limit)[0]
    said = ""
    if behind is not None and behind.late:
        late, said = True, "Not all that is not indexed was looked through in time; the next page goes on there."
    return Hits(tuple(hits), not late, said, page_token(Page(names, behind.rest if behind is not None else None)))


def _by_names(
    store: Store, index: Index | None, asked: _Asked, terms: list[Term], names: Sequence[Named], limit: int
) -> tuple[list[Hit], list[tuple[Ranked, int]]]:
    """The hits that ids name, in their order, and those for which there was no room; what is gone by now is passed over."""
    if not names:
        return [], []
    also = dict(names)
    order = {name: place for place, name in enumerate(also)}
    pools = gather(store, index, asked.scope, terms, 0.0, wanted=list(also))
    ranked = rank(pools.candidates, pools.weights, _paths(asked.query), asked.now)
    ranked.sort(key=lambda one: order[one.candidate.id])
    return _shown(store, pools, [(one, also[one.candidate.id]) for one in ranked], terms, limit)


def _paths(query: Query) -> list[str]:
    """The words that may be paths."""
    return [word for word in query.text.split() if "/" in word or "\\" in word or "." in word.strip(".")]


def _joined(
    store: Store, pools: Pools, scope: Scope, ranked: list[Ranked], more: Sequence[tuple[Ranking, float]], now: int
) -> list[Ranked]:
    """The ranking by words joined with others, where there are any."""
    if not any(ranking for ranking, _ in more):
        return ranked
    known = {one.candidate.id: one for one in ranked}
    missing = dict.fromkeys(name for ranking, _ in more for name in ranking if name not in known)
    for one in rank(named(store, pools, scope, list(missing)), pools.weights, (), now):
        known[one.candidate.id] = one
    places = [{name: place for place, name in enumerate(dict.fromkeys(ranking), 1)} for ranking, _ in more]
    found = []
    for name, score in join_rankings([([one.candidate.id for one in ranked], 1.0), *more]):
        if name in known:
            extra = {f"ranking_{number}": float(at[name]) for number, at in enumerate(places, 1) if name in at}
            found.append(known[name]._replace(score=round(score, 6), signals={**known[name].signals, **extra}))
    return found


def _shown(
    store: Store, pools: Pools, kept: Sequence[tuple[Ranked, int]], terms: list[Term], limit: int
) -> tuple[list[Hit], list[tuple[Ranked, int]]]:
    """The first hits of what was kept, with their texts, and the rest."""
    pattern = pattern_of(terms) if terms else None
    hits: list[Hit] = []
    number = 0
    while len(hits) < limit and number < len(kept):
        some = kept[number : number + limit - len(hits)]  # so many as are sure to be shown, unless bytes are gone
        texts = _texts(store, pools, [ranked.candidate.id for ranked, _ in some])
        found = [_hit(store, pools, ranked, also, pattern, texts) for ranked, also in some]
        hits += [hit for hit in found if hit is not None]
        number += len(some)
    return hits, list(kept[number:])


def _texts(store: Store, pools: Pools, names: Sequence[str]) -> dict[str, Entry]:
    """The entries among these ids with their texts, but for those whose bytes are gone; each session is read once."""
    by_session: dict[int, list[EntryRow]] = {}
    for name in names:
        if name in pools.rows:
            row = pools.rows[name]
            by_session.setdefault(row.no >> SEQ_BITS, []).append(row)
    found = {}
    for number, rows in by_session.items():
        stored = pools.sessions[number]
        for entry in read_entries(store, stored, rows, lost=True, scattered=True):
            found[f"{stored.session.handle}.{entry.seq}"] = entry
    return found


def _hit(
    store: Store,
    pools: Pools,
    ranked: Ranked,
    also: int,
    pattern: re.Pattern[str] | None,
    texts: Mapping[str, Entry],
) -> Hit | None:
    one = ranked.candidate
    note = pools.notes.get(one.id)
    if note is not None:
        text, harness, session, tool = note.note.text, pools.harness_of(note.session), note.session, ""
        if one.dropped:
            text = f"{text} (dropped: no longer in the block)"
    else:
        entry = texts.get(one.id)
        if entry is None:
            return None
        session = one.id.partition(".")[0]
        text, harness = entry.text, pools.harness_of(session)
        tool = pools.tools.get(one.id) or entry.tool
    piece = snippet(text, pattern, store.mask)
    signals = {name: round(value, 4) for name, value in ranked.signals.items()}
    return Hit(one.id, session, harness, one.kind, one.speaker, one.at, tool, piece, ranked.score, signals, also)
