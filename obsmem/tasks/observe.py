"""Running the three passes over a session: choose a stretch, ask, check, commit; then reflect; then drop.

Invariants: coverage moves only together with the accepted notes of exactly the entries that were shown, by
compare-and-swap; a deliberate empty answer moves it, a failure never does; a stretch that nobody can observe becomes a
gap with its reason. The three passes run in this order, and dropping follows reflecting.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from obsmem.core.clock import Clock
from obsmem.core.errors import StoreError, WorkerError
from obsmem.core.model import Card, Chunk, Reply
from obsmem.memory import drop, observe, reflect
from obsmem.memory.chunk import SMALLEST_CAP, WINDOW_SHARE, chunk_cap, select
from obsmem.memory.lines import pool
from obsmem.memory.observe import Accepted
from obsmem.memory.repair import judge
from obsmem.store.archive import StoredSession
from obsmem.store.memory import WorkerCall
from obsmem.store.memory_coverage import Gap
from obsmem.tasks.ask import ask, cascade, window_of
from obsmem.tasks.cards import cards_of, split_cards
from obsmem.tasks.entries import read_entries
from obsmem.tasks.remember import remember
from obsmem.tasks.store import Store
from obsmem.workers.base import Worker

STATE_CARDS = 400  # cards before a stretch that a worker is given: enough to know what was failing before


class Done(NamedTuple):
    """What the passes did: stretches, notes, rejected proposals, gaps, reflections, drops."""

    stretches: int = 0
    notes: int = 0
    rejected: int = 0
    gaps: int = 0
    reflections: int = 0
    drops: int = 0

    def plus(self, other: Done) -> Done:
        """The sum, field by field."""
        return Done(*(a + b for a, b in zip(self, other, strict=True)))


def observe_clock(store: Store, stored: StoredSession, covered: int) -> int:
    """Tokens of new material after ``covered``: the provider's own growth where it reported it, else the estimate.

    Growth counts only within one context window: after a compaction or a model switch it would be negative or wrong.
    """
    estimate = store.archive.observable_tokens(stored.no, covered)
    measures = store.archive.measures(stored.no)
    before = [context for seq, context in measures if seq <= covered]
    if not measures or not before or covered < 0 or measures[-1][0] <= covered:
        return estimate
    last_seq, last = measures[-1]
    if last < before[-1] or store.archive.boundaries(stored.no, covered + 1):
        return estimate
    return last - before[-1] + store.archive.observable_tokens(stored.no, last_seq)


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
) -> Done:
    """Observe what is due, and reflect and drop when their clock says so.

    ``drain`` observes everything to the end, whatever the clock. ``fast`` asks only the extractive worker. ``gaps``
    tries the gaps once more, first. ``deadline`` (of time.monotonic) ends the work early; what is left stays due.
    ``told`` hears of each stretch.
    """
    team = cascade(store, fast=fast, model=stored.session.model)
    _observe_parent(store, stored, team, clock, deadline)
    cards = cards_of(store, stored)
    done = _fill_gaps(store, stored, cards, team, clock) if gaps else Done()
    while time.monotonic() < deadline:
        covered = store.memory.covered_to(stored.session.handle)
        if not drain and observe_clock(store, stored, covered) < store.config["observe_after_tokens"]:
            break
        step = _observe(store, stored, cards, covered, team, clock)
        if step is None:
            break
        done = done.plus(step)
        done = done.plus(_reflect_and_drop(store, stored, cards, team, clock))
        if told is not None:
            told(done)
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
    cards = cards_of(store, parent)
    while time.monotonic() < deadline:
        covered = store.memory.covered_to(point[0])
        if covered >= point[1] or _observe(store, parent, cards, covered, team, clock, point[1]) is None:
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
    up_to: int | None = None,
) -> Done | None:
    """Observe one stretch (ending at ``up_to`` at the latest); None where nothing is left. Where somebody else was
    faster, nothing was done."""
    handle = stored.session.handle
    last = covered

    def observe_at_most(cap: int) -> Done | None:
        nonlocal last
        chunk = next_chunk(store, stored, covered, cap, clock, up_to)
        if chunk is None:
            return None
        last = chunk.last_seq
        return _observe_chunk(store, stored, cards, covered, (covered + 1, last), chunk, team, clock)

    try:
        return _shrinking(store, team, observe_at_most)
    except StoreError as error:  # bytes that are gone or damaged: what stands behind them must not wait for ever
        last = _last_unreadable(store, stored, covered + 1)
        reason = str(error)
    except WorkerError as error:
        reason = str(error)
    committed = store.memory.commit_gap(handle, covered, covered + 1, last, reason[:200])
    return Done(gaps=int(committed))


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


def _fill_gaps(store: Store, stored: StoredSession, cards: list[Card], team: list[Worker], clock: Clock) -> Done:
    """Try once more to observe what could not be observed. What fails again stays a gap."""
    handle, done = stored.session.handle, Done()

    def fill(gap: Gap, cap: int) -> Done | None:
        chunk = next_chunk(store, stored, gap.first_seq - 1, cap, clock, gap.last_seq)
        if chunk is None:
            return None
        whole = not any(True for _ in store.archive.observable(stored.no, chunk.last_seq + 1, gap.last_seq))
        stretch = (gap.first_seq, gap.last_seq if whole else chunk.last_seq)
        covered = store.memory.covered_to(handle)
        return _observe_chunk(store, stored, cards, covered, stretch, chunk, team, clock)

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
) -> Done:
    """Observe one stretch and commit what holds; nothing is done if it was covered meanwhile. Raises WorkerError."""
    accepted, call = ask_about(store, stored, cards, stretch, chunk, team, clock)
    first, last = stretch
    shown = shown_hash(chunk)
    if not store.memory.commit_stretch(call, covered, first, last, shown, accepted.notes, accepted.refuted):
        return Done()
    return Done(1, len(accepted.notes), len(accepted.rejected))


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


def memory_cap(store: Store, team: list[Worker]) -> int:
    """The most tokens of earlier memory that a request holds: what the user says, and no more than a fifth of the window
    of whoever is asked."""
    most = int(store.config["memory_max_tokens"])
    window = window_of(store, team)
    return min(most, window // WINDOW_SHARE) if window else most


def shown_hash(chunk: Chunk) -> str:
    """What is kept of what a call was shown: its cap and the hash of its text, which selecting the stretch again under
    that cap must give."""
    return f"{chunk.cap}:{hashlib.sha256(chunk.text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _reflect_and_drop(store: Store, stored: StoredSession, cards: list[Card], team: list[Worker], clock: Clock) -> Done:
    """Reflect when enough was observed since the last time, then drop when the pool is over its target."""
    handle = stored.session.handle
    covered = store.memory.covered_to(handle)
    examined = store.memory.progress(handle, "reflect")
    observed = store.archive.observable_tokens(stored.no, examined) - store.archive.observable_tokens(
        stored.no, covered
    )
    if observed < store.config["reflect_after_tokens"]:
        return Done()
    memory = remember(store, stored)
    if not memory.notes:
        return Done()
    seen, _ = split_cards(cards, covered + 1, covered)
    cap = memory_cap(store, team)
    try:
        reply, call = ask(store, team, reflect.build(memory, seen, handle, cap, clock), examined + 1, covered)
    except WorkerError:
        return Done()
    accepted = reflect.accept(reply, memory.notes, memory.reflections)
    reflections = accepted.reflections
    call = call._replace(items=len(reflections))
    committed = store.memory.commit_reflections(
        call, reflections, covered, expected=examined, replaced=accepted.replaced
    )
    if not committed:
        return Done()
    dropped = _drop(store, stored, seen, team, clock, covered, len(reflections))
    return Done(reflections=len(reflections), drops=dropped)


def _drop(
    store: Store, stored: StoredSession, seen: list[Card], team: list[Worker], clock: Clock, covered: int, fresh: int
) -> int:
    """Retire what is safe to retire; returns how many notes."""
    handle = stored.session.handle
    memory = remember(store, stored)
    target = store.config["pool_target_tokens"]
    tokens = pool(memory.notes)
    if not drop.should_run(tokens, target, fresh):
        return 0
    tiers = reflect.tiers(memory.notes, memory.reflections)
    allowed = drop.droppable(memory.notes, tiers, strict=not fresh)
    most = min(len(allowed), drop.limit(len(memory.notes), tokens, target))
    if most <= 0:
        return 0
    cap = memory_cap(store, team)
    request = drop.build(memory._replace(notes=allowed), handle, most, target, cap, clock)._replace(state=tuple(seen))
    try:
        reply, call = ask(store, team, request, 0, covered)
    except WorkerError:
        return 0
    chosen = drop.select(drop.accept(reply.items), allowed, tiers, most)
    store.memory.commit_drops(call._replace(items=len(chosen)), chosen, "retired by the dropper", covered)
    return len(chosen)
