"""Running the three passes over a session: choose a stretch, ask, check, commit; then reflect; then drop.

Invariants: coverage moves only together with the accepted notes of exactly the entries that were shown, by
compare-and-swap; a deliberate empty answer moves it, a failure never does; a stretch that nobody can observe becomes a
gap with its reason. The three passes run in this order, and dropping follows reflecting.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from obsmem.core.clock import Clock
from obsmem.core.decisions import OBSERVE, WAIT
from obsmem.core.errors import StoreError, WorkerError
from obsmem.core.model import Card, Chunk, Reply
from obsmem.memory import observe
from obsmem.memory.chunk import SMALLEST_CAP, chunk_cap, select
from obsmem.memory.observe import Accepted
from obsmem.memory.repair import judge
from obsmem.store.archive import StoredSession
from obsmem.store.memory import WorkerCall
from obsmem.store.memory_coverage import Gap
from obsmem.store.schema import transaction
from obsmem.tasks.ask import ask, cascade, window_of
from obsmem.tasks.cards import cards_of, split_cards
from obsmem.tasks.decide import DUE, EVERYTHING, FAST, FORK, NO_TIME_LEFT, NOT_DUE, NOTHING_LEFT, decide
from obsmem.tasks.entries import read_entries
from obsmem.tasks.reflect import Done as Done  # also imported from here
from obsmem.tasks.reflect import memory_cap, reflect_and_drop
from obsmem.tasks.remember import remember
from obsmem.tasks.store import Store
from obsmem.workers.base import Worker

STATE_CARDS = 400  # cards before a stretch that a worker is given: enough to know what was failing before


class Clocked(NamedTuple):
    """What the observer's clock shows, and the provider's own counts that were known then: (seq, tokens) of the last one up
    to where coverage ends, and of the newest; none where it had not counted."""

    tokens: int
    counts: tuple[tuple[int, int], ...] = ()


def observe_clock(store: Store, stored: StoredSession, covered: int) -> int:
    """Tokens of new material after ``covered``: the provider's own growth where it reported it, else the estimate."""
    return read_clock(store, stored, covered).tokens


def read_clock(store: Store, stored: StoredSession, covered: int) -> Clocked:
    """The same with the counts behind it. Growth counts only within one context window: after a compaction or a model switch
    it would be negative or wrong."""
    estimate = store.archive.observable_tokens(stored.no, covered)
    measures = store.archive.measures(stored.no)
    before = [one for one in measures if one[0] <= covered][-1:]
    counts = tuple(dict.fromkeys((*before, *measures[-1:])))
    if not before or covered < 0 or measures[-1][0] <= covered:
        return Clocked(estimate, counts)
    (_, base), (last_seq, last) = before[0], measures[-1]
    if last < base or store.archive.boundaries(stored.no, covered + 1):
        return Clocked(estimate, counts)
    return Clocked(last - base + store.archive.observable_tokens(stored.no, last_seq), counts)


def run_passes(
    store: Store,
    stored: StoredSession,
    clock: Clock,
    *,
    drain: bool = False,
    fast: bool = False,
    gaps: bool = True,
    deadline: float = float("inf"),
    told: Callable[[Done], None] | None = None,
    team: list[Worker] | None = None,
) -> Done:
    """Observe what is due, and reflect and drop when their clock says so.

    ``drain`` observes everything to the end, whatever the clock. ``fast`` asks only the extractive worker. ``gaps``
    tries the gaps once more, first. ``deadline`` (of time.monotonic) ends the work early; what is left stays due.
    ``told`` hears of each stretch. ``team`` is asked in place of those that the configuration names.
    """
    team = cascade(store, fast=fast, model=stored.session.model) if team is None else team
    _observe_parent(store, stored, team, clock, deadline)
    cards = cards_of(store, stored)
    run: dict[str, Any] = {"mode": FAST if drain and fast else EVERYTHING if drain else DUE}
    done = _fill_gaps(store, stored, cards, team, clock, run) if gaps else Done()
    why = NO_TIME_LEFT
    while time.monotonic() < deadline:
        covered = store.memory.covered_to(stored.session.handle)
        if not drain:
            threshold = store.config["observe_after_tokens"]
            clocked = read_clock(store, stored, covered)
            run.update(clock=clocked.tokens, threshold=threshold, counts=[list(one) for one in clocked.counts])
            if run["clock"] < threshold:
                why = NOT_DUE
                break
        step = _observe(store, stored, cards, covered, team, clock, run)
        if step is None:
            why = NOTHING_LEFT
            break
        done = done.plus(step)
        done = done.plus(reflect_and_drop(store, stored, cards, team, clock))
        if told is not None:
            told(done)
    decide(store, stored, WAIT, why, routine=True, covered=store.memory.covered_to(stored.session.handle), **run)
    return done


def _observe_parent(store: Store, stored: StoredSession, team: list[Worker], clock: Clock, deadline: float) -> None:
    """A fork's memory is its parent's up to the fork point: observe what is missing there, whatever its clock says."""
    point = stored.session.parent
    if point is None or point[1] < 0 or stored.session.role != "main":
        return
    parent = store.archive.by_handle(point[0])
    if store.memory.covered_to(point[0]) >= point[1]:
        return
    _observe_parent(store, parent, team, clock, deadline)
    observe_up_to(store, parent, point[1], team, clock, deadline)


def observe_up_to(
    store: Store, stored: StoredSession, last: int, team: list[Worker], clock: Clock, deadline: float = float("inf")
) -> None:
    """Observe a session up to seq ``last``, where a fork begins, whatever its clock says."""
    cards = cards_of(store, stored)
    run = {"mode": FORK, "up_to": last}
    while time.monotonic() < deadline:
        covered = store.memory.covered_to(stored.session.handle)
        if covered >= last or _observe(store, stored, cards, covered, team, clock, run, last) is None:
            return


def next_chunk(
    store: Store, stored: StoredSession, covered: int, cap: int, clock: Clock, last: int | None = None
) -> Chunk | None:
    """The oldest stretch after ``covered`` (up to ``last``) that fits into ``cap`` tokens; None where nothing is left."""
    rows, tokens = [], 0
    for row in store.archive.observable(stored.no, covered + 1, last):
        rows.append(row)
        tokens += row.tokens
        if tokens > cap and len(rows) > 1:
            break
    entries = read_entries(store, stored, rows)
    if store.secrets:
        entries = [entry._replace(text=store.mask(entry.text)) for entry in entries]
    return select(entries, stored.session.handle, cap, clock) if rows else None


def _observe(
    store: Store,
    stored: StoredSession,
    cards: list[Card],
    covered: int,
    team: list[Worker],
    clock: Clock,
    run: Mapping[str, Any],
    up_to: int | None = None,
) -> Done | None:
    """Observe one stretch (ending at ``up_to`` at the latest); None where nothing is left. Where somebody else was
    faster, nothing was done."""
    last = covered

    def observe_at_most(cap: int) -> Done | None:
        nonlocal last
        chunk = next_chunk(store, stored, covered, cap, clock, up_to)
        if chunk is None:
            return None
        last = chunk.last_seq
        return _observe_chunk(store, stored, cards, covered, (covered + 1, last), chunk, team, clock, run)

    try:
        return _shrinking(store, team, observe_at_most)
    except StoreError as error:  # bytes that are gone or damaged: what stands behind them must not wait for ever
        last = _last_unreadable(store, stored, covered + 1)
        reason, why = str(error), "the bytes are gone or damaged"
    except WorkerError as error:
        reason, why = str(error), "nobody answered"
    return Done(gaps=int(leave_gap(store, stored, covered, last, reason[:200], why, **run)))


def leave_gap(store: Store, stored: StoredSession, covered: int, last: int, reason: str, why: str, **run: Any) -> bool:
    """Make a gap of what follows ``covered`` up to ``last``; False where somebody else was faster."""
    with transaction(store.memory.connection):
        committed = store.memory.commit_gap(stored.session.handle, covered, covered + 1, last, reason)
        if committed:
            decide(store, stored, OBSERVE, why, **run, first=covered + 1, last=last, outcome="gap")
    return committed


def _shrinking(store: Store, team: list[Worker], work: Callable[[int], Done | None]) -> Done | None:
    """Do work on chunks of at most as many tokens as a model can take, and of half as many each time that it cannot."""
    cap = chunk_cap(store.config["chunk_max_tokens"], window_of(store, team))
    while True:
        try:
            return work(cap)
        except WorkerError as error:
            if error.fault != "overflow" or cap <= SMALLEST_CAP:
                raise
            cap = max(SMALLEST_CAP, min(cap, error.counted or cap) // 2)


def _last_unreadable(store: Store, stored: StoredSession, first: int) -> int:
    """The last seq, from ``first`` on, before an observable entry whose bytes can be had behind one whose cannot."""
    met = False
    for row in store.archive.observable(stored.no, first):
        readable = bool(read_entries(store, stored, [row], lost=True))
        if met and readable:
            return row.seq - 1
        met = met or not readable
    return stored.last_seq


def _fill_gaps(
    store: Store, stored: StoredSession, cards: list[Card], team: list[Worker], clock: Clock, run: Mapping[str, Any]
) -> Done:
    """Try once more to observe what could not be observed. What fails again stays a gap."""
    handle, done = stored.session.handle, Done()

    def fill(gap: Gap, cap: int) -> Done | None:
        chunk = next_chunk(store, stored, gap.first_seq - 1, cap, clock, gap.last_seq)
        if chunk is None:
            return None
        whole = not any(True for _ in store.archive.observable(stored.no, chunk.last_seq + 1, gap.last_seq))
        stretch = (gap.first_seq, gap.last_seq if whole else chunk.last_seq)
        covered = store.memory.covered_to(handle)
        return _observe_chunk(store, stored, cards, covered, stretch, chunk, team, clock, {**run, "gap": True})

    for gap in store.memory.gaps(handle):
        try:
            done = done.plus(_shrinking(store, team, partial(fill, gap)) or Done())
        except (StoreError, WorkerError):
            continue
    return done


def _observe_chunk(
    store: Store,
    stored: StoredSession,
    cards: list[Card],
    covered: int,
    stretch: tuple[int, int],
    chunk: Chunk,
    team: list[Worker],
    clock: Clock,
    run: Mapping[str, Any],
) -> Done:
    """Observe one stretch and commit what holds; nothing is done if it was covered meanwhile. Raises WorkerError."""
    accepted, call = ask_about(store, stored, cards, stretch, chunk, team, clock)
    first, last = stretch
    with transaction(store.memory.connection):
        committed = store.memory.commit_stretch(
            call, covered, first, last, shown_hash(chunk), accepted.notes, accepted.refuted
        )
        decide(
            store, stored, OBSERVE, _why_observed(run), **run, first=first, last=last, entries=len(chunk.entries),
            tokens=chunk.tokens, cap=chunk.cap, worker=call.worker, outcome="committed" if committed else "late",
            notes=len(accepted.notes), rejected=len(accepted.rejected), refuted=len(accepted.refuted),
            tokens_in=call.tokens_in, tokens_out=call.tokens_out,
        )  # fmt: skip
    return Done(1, len(accepted.notes), len(accepted.rejected)) if committed else Done()


def _why_observed(run: Mapping[str, Any]) -> str:
    """In a few words, why an observer call was due."""
    if run.get("gap"):
        return "a gap is tried again"
    return {
        DUE: "the clock has reached its threshold", EVERYTHING: "everything is wanted", FAST: "a compaction comes",
        FORK: "a fork begins behind it",
    }[run["mode"]]  # fmt: skip


def ask_about(
    store: Store,
    stored: StoredSession,
    cards: list[Card],
    stretch: tuple[int, int],
    chunk: Chunk,
    team: list[Worker],
    clock: Clock,
    without: frozenset[str] = frozenset(),
) -> tuple[Accepted, WorkerCall]:
    """Ask a team about one stretch; what holds of the answer, and the row of the call. ``without`` are ids of notes
    that it is to know nothing of. Raises WorkerError."""
    first, last = stretch
    before, within = split_cards(cards, first, last)
    memory = remember(store, stored)
    memory = memory._replace(notes=tuple(note for note in memory.notes if note.id not in without))
    now = int(time.time() * 1000)
    request = observe.build(chunk, within, before[-STATE_CARDS:], memory, clock(now), memory_cap(store, team), clock)
    only_grounded = store.config["ungrounded"] == "reject"

    def accept(reply: Reply) -> Accepted:
        return observe.accept(reply, chunk, memory.notes, now, clock, only_grounded=only_grounded)

    reply, call = ask(store, team, request, first, last, lambda reply: judge(accept(reply)))
    accepted = accept(reply)
    return accepted, call._replace(items=len(accepted.notes), rejected=len(accepted.rejected))


def shown_hash(chunk: Chunk) -> str:
    """What is kept of what a call was shown: its cap and the hash of its text, which selecting the stretch again under
    that cap must give."""
    return f"{chunk.cap}:{hashlib.sha256(chunk.text.encode('utf-8', 'surrogatepass')).hexdigest()}"
