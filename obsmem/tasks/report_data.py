"""What a report tells of a session, as values: its turns, how full its window was, its notes, what was asked and decided.

Invariants: nothing is decided or written here; every text is masked before it is cut, so that no half of a secret is left; the
entries themselves come one by one (``report_data_entries``), since a session may be larger than memory should be.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from obsmem.core.clock import Clock
from obsmem.core.errors import NotFound, StoreError
from obsmem.core.model import Card, Pin
from obsmem.core.pressure import Occupancy, Spend
from obsmem.memory.timeline import Line
from obsmem.store.archive import StoredSession
from obsmem.store.archive_schema import SPEAKER_CODES
from obsmem.store.measures import OWN_REQUESTS, Measured, measures_of
from obsmem.store.memory import WorkerCall
from obsmem.store.memory_coverage import Gap
from obsmem.tasks.cards import cards_of
from obsmem.tasks.explain import Given, Happened, history, last_block
from obsmem.tasks.look import session_lines
from obsmem.tasks.occupancy import occupancy_after, spend
from obsmem.tasks.remember import remember
from obsmem.tasks.report_data_compactions import Crossing, crossings
from obsmem.tasks.report_data_notes import Kept, Lasting, kept_notes, lasting
from obsmem.tasks.report_data_words import clean_words
from obsmem.tasks.store import Store

WORDS = 200  # characters of what a human said that stand for a turn
SAMPLES = 160  # points at which the window is estimated where no request was counted
MOST_HAPPENED = 3_000  # decisions and lines of the log, the newest
MOST_LINES = 5_000  # of the timeline in words, the newest


class Turn(NamedTuple):
    """What a human said and what followed until the human spoke again: tool calls, estimated tokens, files that were changed,
    commands that failed; ``lines`` of the timeline. ``at`` in milliseconds."""

    number: int
    seq: int
    at: int
    words: str
    calls: int
    tokens: int
    edited: tuple[str, ...]
    failed: int
    lines: tuple[Line, ...] = ()


class Point(NamedTuple):
    """How much the window held at an entry; ``counted`` by the provider, else estimated."""

    seq: int
    at: int
    tokens: int
    counted: bool


class Report(NamedTuple):
    """All of it but the entries. ``moments`` are (seq, milliseconds), some hundreds of them, in order: when was what;
    ``receipts`` (delivery, part, seq, milliseconds) of each part of a block that the transcript shows."""

    stored: StoredSession
    name: str
    occupancy: Occupancy
    spent: Spend
    sizes: tuple[int, int]
    moments: tuple[tuple[int, int], ...]
    points: tuple[Point, ...]
    turns: tuple[Turn, ...]
    crossings: tuple[Crossing, ...]
    receipts: tuple[tuple[str, str, int, int], ...]
    notes: tuple[Kept, ...]
    reflections: tuple[Lasting, ...]
    pins: tuple[Pin, ...]
    given: Given | None
    calls: tuple[WorkerCall, ...]
    gaps: tuple[Gap, ...]
    happened: tuple[Happened, ...]
    agents: tuple[StoredSession, ...]


def gather(store: Store, stored: StoredSession, clock: Clock) -> Report:
    """Everything that is known of a session, but its entries. Writes nothing but cards that the index lacks."""
    measures = measures_of(store.archive.connection, stored.no)
    cards = cards_of(store, stored)
    handle = stored.session.handle
    memory = remember(store, stored)
    notes = kept_notes(store, stored, memory)
    return Report(
        stored,
        clean_words(store, stored.session.name),
        occupancy_after(store, stored, measures, stored.last_seq),
        spend(store, stored),
        store.archive.sizes(stored.no),
        _moments(store, stored),
        tuple(_points(store, stored, measures)),
        tuple(_turns(store, stored, cards)),
        tuple(crossings(store, stored, cards, measures, notes, clock)),
        tuple(store.memory.receipts(handle)),
        notes,
        lasting(store, stored, memory, notes),
        memory.pins,
        _given(store, stored),
        tuple(store.memory.calls(handle)),
        tuple(store.memory.gaps(handle)),
        tuple(history(store, stored)[-MOST_HAPPENED:]),
        tuple(store.archive.agents_of(stored.no)),
    )


def _given(store: Store, stored: StoredSession) -> Given | None:
    try:
        return last_block(store, stored)
    except (NotFound, StoreError):
        return None


def _moments(store: Store, stored: StoredSession) -> tuple[tuple[int, int], ...]:
    step = max(1, (stored.last_seq + 1) // 400)
    rows = [*store.archive.entries(stored.no, where=f"at>0 AND active=1 AND no % {step} = 0")]
    last = store.archive.entry(stored.no, stored.last_seq)
    if last is not None and last.at and (not rows or rows[-1].seq < last.seq):
        rows.append(last)
    return tuple((row.seq, row.at) for row in rows)


def _points(store: Store, stored: StoredSession, measures: Sequence[Measured]) -> Iterable[Point]:
    """What each request of the session's own held, its answer included; estimates where none was counted."""
    own = [one for one in measures if one.kind in OWN_REQUESTS and one.context and one.seq >= 0]
    if own:
        yield from (Point(one.seq, one.at, one.context + one.output, True) for one in own)
        return
    step = max(1, (stored.last_seq + 1) // SAMPLES)
    for seq in (*range(step - 1, stored.last_seq, step), stored.last_seq):
        before = [one for one in measures if one.seq <= seq]
        yield Point(seq, 0, occupancy_after(store, stored, before, seq).tokens, False)


def _turns(store: Store, stored: StoredSession, cards: Sequence[Card]) -> list[Turn]:
    said = {
        fact.seqs[-1]: fact.text or fact.subject
        for card in cards
        for fact in card.facts
        if fact.kind in ("instruction", "answer")
    }
    speakers = ",".join(str(SPEAKER_CODES[name]) for name in ("human", "agent", "tool"))
    where = f"active=1 AND replaced_by IS NULL AND speaker IN ({speakers})"
    turns: list[Turn] = []
    for row in store.archive.entries(stored.no, where=where):
        if row.kind == "user" and row.speaker == "human":
            words = clean_words(store, said.get(row.seq, ""), WORDS)
            turns.append(Turn(len(turns) + 1, row.seq, row.at, words, 0, row.tokens, (), 0))
        elif turns:
            last = turns[-1]
            turns[-1] = last._replace(calls=last.calls + (row.kind == "tool_call"), tokens=last.tokens + row.tokens)
    return _with_deeds(turns, cards, session_lines(store, stored)[-MOST_LINES:])


def _with_deeds(turns: list[Turn], cards: Sequence[Card], lines: Sequence[Line]) -> list[Turn]:
    """The turns with the files that were changed in each, the commands that failed, and the lines of the timeline."""
    starts = [turn.seq for turn in turns]
    edited: list[dict[str, None]] = [{} for _ in turns]
    failed = [0] * len(turns)
    told: list[list[Line]] = [[] for _ in turns]
    for fact in (fact for card in cards for fact in card.facts):
        place = max(0, bisect_right(starts, max(fact.seqs)) - 1)
        if fact.kind in ("edit", "write", "delete") and turns:
            edited[place][fact.subject] = None
        elif fact.kind == "command" and fact.ok is False and turns:
            failed[place] += 1
    for line in lines if turns else ():
        told[max(0, bisect_right(starts, line.seq) - 1)].append(line)
    return [
        turn._replace(edited=tuple(edited[place]), failed=failed[place], lines=tuple(told[place]))
        for place, turn in enumerate(turns)
    ]
