"""How full a session's window is, and what its requests took.

Invariants: what a provider counted is taken as it is, and only what came after is estimated; sub-agents and side requests
fill another window than the session's own; a copy of another session's request fills the window, but was paid there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from obsmem.core.pressure import Occupancy, Spend
from obsmem.store.archive import StoredSession
from obsmem.store.measures import OWN_REQUESTS, Measured, live_tokens, measures_of
from obsmem.store.windows import RATIOS, known_window
from obsmem.tasks.store import Store
from obsmem.tasks.windows import model_of, window_after

PAIRS = 40  # requests of a session, the newest, by which its own counting is compared with our estimate
ENOUGH = 2_000  # estimated tokens of them that must be there for that
STANDING_SHARE = 4  # of the window that instructions and tools take at most; more was a history that we do not have
UNSAID = 4  # times the output that was reported

# Words that were given to the model between its requests, and those that were its own; not the marks of the harness.
_GIVEN = frozenset({"user", "tool_result", "notice", "summary"})
_SAID = frozenset({"assistant", "thinking", "tool_call"})


def occupancy(store: Store, stored: StoredSession) -> Occupancy:
    """What the session's next request will hold, as far as it is archived."""
    measures = measures_of(store.archive.connection, stored.no)
    return occupancy_after(store, stored, measures, stored.last_seq)


def occupancy_after(store: Store, stored: StoredSession, measures: Sequence[Measured], last: int) -> Occupancy:
    """What the next request would have held once these measures and the entries up to ``last`` were there."""
    window, model = window_after(store, stored, measures), model_of(stored, measures)
    boundaries = [seq for seq in store.archive.boundaries(stored.no) if seq <= last]
    begin = boundaries[-1] if boundaries else -1
    newest = _newest(store, stored, measures, begin)
    scale = ratio(store, stored, measures)
    if newest is not None:
        counted, unsaid = newest.context + newest.output, _unsaid(store, stored, newest, last)
        estimated = unsaid + int(scale * given_tokens(store, stored, newest.seq + 1, last))
        return Occupancy(counted, estimated, newest.at, newest.seq, model, window)
    if begin < 0 and (parent := _before_fork(store, stored)) is not None:
        estimated = int(scale * given_tokens(store, stored, 0, last))
        return parent._replace(estimated=parent.estimated + estimated, window=window)
    standing = min(_standing(store, stored, measures, begin), window.size // STANDING_SHARE)
    estimated = standing + _kept(store, stored, measures, begin, last, scale)
    return Occupancy(0, estimated, model=model, window=window)


def ratio(store: Store, stored: StoredSession, measures: Sequence[Measured]) -> float:
    """Of what the provider counts to our estimate: by the session's newest requests, else as learned of its model."""
    found = measured_ratio(store, stored, measures)
    if not found:
        model = model_of(stored, measures)
        found = known_window(store.memory.connection, stored.session.harness, model).ratio
    return found or 1.0


def measured_ratio(store: Store, stored: StoredSession, measures: Sequence[Measured]) -> float:
    """The same by the session alone; 0 where too little was counted to tell."""
    estimated = counted = 0
    own = [one for one in measures if one.kind in OWN_REQUESTS][-PAIRS:]
    for before, after in pairwise(own):
        unsaid = _unsaid(store, stored, before, after.seq - 1)
        grown = after.context - before.context - before.output - unsaid
        given = given_tokens(store, stored, before.seq + 1, after.seq) if grown > 0 else 0
        if given:
            estimated, counted = estimated + given, counted + grown
    low, high = RATIOS
    return min(high, max(low, counted / estimated)) if estimated >= ENOUGH else 0.0


def _unsaid(store: Store, stored: StoredSession, measure: Measured, last: int) -> int:
    """What the model said beyond the output that was reported: some versions write a reply's output down as it begins. Only
    where that is less than a quarter of what we see, since our estimate is no better than that."""
    said = live_tokens(store.archive.connection, stored.no, measure.seq, last, _SAID)
    return said - measure.output if said > UNSAID * measure.output else 0


def given_tokens(store: Store, stored: StoredSession, first: int, last: int, kinds: frozenset[str] = _GIVEN) -> int:
    """Estimated tokens of what the model was given in the entries ``first``..``last`` (inclusive)."""
    return live_tokens(store.archive.connection, stored.no, first, last, kinds)


def _newest(store: Store, stored: StoredSession, measures: Sequence[Measured], begin: int) -> Measured | None:
    """The newest request of the session's own since its last compaction that is on the live path; None for none."""
    found = [one for one in measures if one.seq > begin and one.kind in (*OWN_REQUESTS, "count") and one.context]
    for one in reversed(found):
        row = store.archive.entry(stored.no, one.seq) if one.seq >= 0 else None
        if row is None or row.active or row.replaced_by is not None:
            return one
    return None


def _kept(
    store: Store, stored: StoredSession, measures: Sequence[Measured], begin: int, last: int, scale: float
) -> int:
    """What a compaction left and what came since: by the harness's own estimate where it makes one, else by ours."""
    told = next((one for one in reversed(measures) if one.kind == "kept" and one.seq >= begin and one.context), None)
    if told is not None and begin >= 0:
        return told.context + int(scale * given_tokens(store, stored, told.seq + 1, last, _GIVEN - {"summary"}))
    return int(scale * given_tokens(store, stored, begin, last))


def _standing(store: Store, stored: StoredSession, measures: Sequence[Measured], begin: int) -> int:
    """What stands in every request beside the entries (instructions, tools): what the first request after the compaction
    before, or of all, held beside what we see; 0 where none was counted."""
    own = [one for one in measures if one.kind in OWN_REQUESTS and one.seq < begin]
    if not own:
        return 0
    boundaries = [seq for seq in store.archive.boundaries(stored.no) if seq < begin]
    for start in (*reversed(boundaries), -1):
        first = next((one for one in own if one.seq > start), None)
        if first is not None:
            seen = [one for one in measures if one.seq < first.seq]
            return max(0, first.context - _kept(store, stored, seen, start, first.seq, 1.0))
    return 0


def _before_fork(store: Store, stored: StoredSession) -> Occupancy | None:
    """What a fork that only refers to its parent's history begins with; None for any other session."""
    parent = stored.session.parent
    if parent is None or parent[1] < 0 or stored.session.role != "main" or store.archive.fork_point(stored.no):
        return None
    origin = store.archive.by_handle(parent[0])
    return occupancy_after(store, origin, measures_of(store.archive.connection, origin.no, parent[1]), parent[1])


def spend(store: Store, stored: StoredSession) -> Spend:
    """What a session's requests took: its own, those at its side that its transcript shows, and its sub-agents'."""
    total = own_spend(store, stored)
    for child in store.archive.agents_of(stored.no):
        total = total.plus(spend(store, child))
    return total


def own_spend(store: Store, stored: StoredSession) -> Spend:
    """What the requests took that stand in the session's own transcript. Of those that only an earlier version of ours saw
    nothing but their number is known."""
    total = Spend()
    for one in measures_of(store.archive.connection, stored.no):
        if one.copied or one.kind in ("kept", "count"):
            continue
        known = one.kind in ("request", "side")
        fresh = max(0, one.context - one.cached - one.written) if known else 0
        total = total.plus(Spend(1, fresh, one.cached, one.written, one.output))
    return total
